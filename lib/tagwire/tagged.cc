// SPDX-License-Identifier: BSD-3-Clause
// Posting and cancelling tagged operations. Each call either takes full effect or
// none: everything that can refuse it comes before the first change.
#include <cinttypes>

#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"

namespace tagwire {

using transport::PeerId;

namespace {

constexpr const char* kNotEnabled = "the endpoint is not enabled: call tw_ep_enable first";
constexpr const char* kQueueFull =
    "the completion queue has no room for another operation: read it, or open it larger";
constexpr const char* kPoolEmpty =
    "max_operations are outstanding: call tw_progress and read completions";

// Copies what holds bytes. 0, or a negative errno.
int take_iov(const iovec* iov, size_t count, iovec* to, uint32_t* to_count, uint64_t* total) {
    if (count > TW_IOV_LIMIT) {
        return refuse(EINVAL, "at most TW_IOV_LIMIT (8) entries in an iovec");
    }
    if (iov == nullptr && count != 0) {
        return refuse(EINVAL, "iov is NULL and count is not 0");
    }
    uint64_t sum = 0;
    uint32_t used = 0;
    for (size_t i = 0; i < count; ++i) {
        if (iov[i].iov_len == 0) {
            continue;
        }
        if (iov[i].iov_base == nullptr) {
            return refuse(EINVAL, "a buffer of more than 0 bytes is NULL");
        }
        if (__builtin_add_overflow(sum, iov[i].iov_len, &sum)) {
            return refuse(EINVAL, "the lengths of the buffers exceed the address space");
        }
        to[used++] = iov[i];
    }
    *to_count = used;
    *total = sum;
    return 0;
}

}  // namespace

int Endpoint::send(const iovec* iov, size_t count, tw_addr dest, uint64_t tag,
                   void* context) noexcept {
    if (!enabled_) [[unlikely]] {
        return refuse(TW_EOPBADSTATE, kNotEnabled);
    }
    SendRequest* request = worker_.sends().acquire();
    if (request == nullptr) [[unlikely]] {
        return refuse(EAGAIN, kPoolEmpty);
    }
    transport::SendOperation& operation = request->operation;
    const auto undo = [&](int error) {
        worker_.sends().release(request);
        return error;
    };
    if (const int error =
            take_iov(iov, count, operation.iov, &operation.iov_count, &operation.header.length);
        error != 0) [[unlikely]] {
        return undo(error);
    }
    if (operation.header.length > TW_MAX_MESSAGE_SIZE) [[unlikely]] {
        return undo(refuse(EMSGSIZE, "a message has at most TW_MAX_MESSAGE_SIZE (2^30) bytes"));
    }
    PeerId peer;
    if (const int error = peer_for(dest, &peer); error != 0) [[unlikely]] {
        return undo(error);
    }
    if (!send_cq_->reserve()) [[unlikely]] {
        return undo(refuse(EAGAIN, kQueueFull));
    }
    operation.header.tag = tag;
    operation.header.data = 0;
    operation.header.kind = transport::MessageKind::kTagged;
    operation.header.flags = 0;
    operation.user = request;
    operation.state = {};
    request->endpoint = this;
    request->context = context;
    request->buffer = count != 0 ? iov[0].iov_base : nullptr;
    if (const int error = worker_.transport().send(peer, operation); error != 0) [[unlikely]] {
        send_cq_->unreserve();
        return undo(refuse(-error, error == -EAGAIN
                                       ? "the send queue is full: call tw_progress and try again"
                                       : "the transport refused the message"));
    }
    ++sends_;
    return 0;
}

int Endpoint::receive(const iovec* iov, size_t count, tw_addr source, uint64_t tag, uint64_t ignore,
                      void* context) noexcept {
    if (!enabled_) [[unlikely]] {
        return refuse(TW_EOPBADSTATE, kNotEnabled);
    }
    ReceiveRequest* request = worker_.receives().acquire();
    if (request == nullptr) [[unlikely]] {
        return refuse(EAGAIN, kPoolEmpty);
    }
    transport::ReceiveOperation& operation = request->operation;
    const auto undo = [&](int error) {
        worker_.receives().release(request);
        return error;
    };
    request->posted = false;
    if (const int error =
            take_iov(iov, count, operation.iov, &operation.iov_count, &operation.capacity);
        error != 0) [[unlikely]] {
        return undo(error);
    }
    PeerId peer = match::kAnySource;
    if (source != TW_ADDR_UNSPEC) {
        if (const int error = peer_for(source, &peer); error != 0) [[unlikely]] {
            return undo(error);
        }
    }
    if (!receive_cq_->reserve()) [[unlikely]] {
        return undo(refuse(EAGAIN, kQueueFull));
    }
    operation.user = request;
    request->endpoint = this;
    request->context = context;
    request->buffer = count != 0 ? iov[0].iov_base : nullptr;
    request->sequence = worker_.next_sequence();
    const match::Slot found = unexpected_->take(tag, ignore, peer);
    if (found == match::kNone) {
        request->posted = true;
        posted_->post(worker_.receives().index_of(request), tag, ignore, peer);
        return 0;
    }
    UnexpectedMessage& unexpected = worker_.unexpected()[found];
    transport::IncomingMessage& message = *unexpected.message;
    transport::user_of(message) = nullptr;
    worker_.unexpected().release(&unexpected);
    ++worker_.counters().matched_unexpected;
    deliver(*request, message);
    return 0;
}

int Endpoint::cancel(void* context) noexcept {
    if (!enabled_) {
        return refuse(TW_EOPBADSTATE, kNotEnabled);
    }
    Pool<ReceiveRequest>& pool = worker_.receives();
    ReceiveRequest* oldest = nullptr;
    for (uint32_t i = 0; i < pool.touched(); ++i) {
        ReceiveRequest& request = pool[i];
        if (request.posted && request.endpoint == this && request.context == context &&
            (oldest == nullptr || request.sequence < oldest->sequence)) {
            oldest = &request;
        }
    }
    if (oldest == nullptr) {
        return refuse(ENOENT, "no receive with that context is posted; a matched one completes");
    }
    posted_->remove(pool.index_of(oldest));
    complete_cancelled(*oldest);
    return 0;
}

// A peer is opened when its address is first used; no frame leaves for that.
int Endpoint::peer_for(tw_addr address, PeerId* peer) noexcept {
    if (address < peers_.size() && peers_[address] != transport::kNoPeer) [[likely]] {
        *peer = peers_[address];
        return 0;
    }
    return guarded([&] { return open_peer(address, peer); });
}

int Endpoint::open_peer(tw_addr address, PeerId* peer) noexcept {
    const transport::EndpointAddress* remote = av_->lookup(address);
    if (remote == nullptr) {
        return fail(EINVAL, "address %" PRIu64 " is not in the endpoint's address vector", address);
    }
    const transport::EndpointAddress& own = worker_.address();
    if (remote->ip == own.ip && remote->udp_port == own.udp_port) {
        return fail(EOPNOTSUPP, "%s is an endpoint of this worker: the wire brings no frame back",
                    transport::format(*remote).c_str());
    }
    if (address >= peers_.size()) {
        peers_.resize(av_->size(), transport::kNoPeer);
    }
    if (const int error = worker_.transport().open_peer(number_, *remote, transport::kNoKey, peer);
        error != 0) {
        return fail(-error, "no session to %s: %s%s", transport::format(*remote).c_str(),
                    tw_strerror(error), error == -ENOSPC ? " (max_peers)" : "");
    }
    peers_[address] = *peer;
    return 0;
}

}  // namespace tagwire

int tw_tsend(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t tag,
             void* context) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_tsend: ep cannot be NULL");
    }
    const iovec iov{const_cast<void*>(buffer), length};
    return ep->send(&iov, 1, dest, tag, context);
}

int tw_tsendv(tw_ep* ep, const iovec* iov, size_t count, tw_addr dest, uint64_t tag,
              void* context) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_tsendv: ep cannot be NULL");
    }
    return ep->send(iov, count, dest, tag, context);
}

int tw_trecv(tw_ep* ep, void* buffer, size_t length, tw_addr source, uint64_t tag, uint64_t ignore,
             void* context) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_trecv: ep cannot be NULL");
    }
    const iovec iov{buffer, length};
    return ep->receive(&iov, 1, source, tag, ignore, context);
}

int tw_trecvv(tw_ep* ep, const iovec* iov, size_t count, tw_addr source, uint64_t tag,
              uint64_t ignore, void* context) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_trecvv: ep cannot be NULL");
    }
    return ep->receive(iov, count, source, tag, ignore, context);
}

int tw_cancel(tw_ep* ep, void* context) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_cancel: ep cannot be NULL");
    }
    return ep->cancel(context);
}
