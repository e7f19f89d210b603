// SPDX-License-Identifier: BSD-3-Clause
// A send is posted. It takes full effect or none: everything that can refuse it comes
// before the first change.
#include <cinttypes>

#include "lib/tagwire/connection.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/iov.h"
#include "lib/transport/scatter.h"

namespace tagwire {

using transport::PeerId;

namespace {

constexpr uint64_t kNotPlain =
    TW_INJECT | TW_FENCE | TW_REMOTE_CQ_DATA | TW_DELIVERY_COMPLETE | TW_MATCH_COMPLETE;

// The payload in the request itself, so that the caller's buffer is free.
int copy_payload(SendRequest& request) {
    transport::SendOperation& operation = request.operation;
    const uint64_t length = operation.header.length;
    if (length > TW_INJECT_SIZE) {
        return refuse(EINVAL, "an injected message has at most TW_INJECT_SIZE (256) bytes");
    }
    if (length != 0) {
        transport::gather(operation.iov, 0, request.copy, static_cast<uint32_t>(length));
        operation.iov[0] = {request.copy, length};
        operation.iov_count = 1;
    }
    return 0;
}

uint8_t header_flags(uint64_t flags) {
    return static_cast<uint8_t>(
        ((flags & TW_REMOTE_CQ_DATA) != 0 ? transport::kHasData : 0) |
        ((flags & TW_DELIVERY_COMPLETE) != 0 ? transport::kWantsDeliveryNote : 0) |
        ((flags & TW_MATCH_COMPLETE) != 0 ? transport::kWantsMatchNote : 0) |
        ((flags & TW_FENCE) != 0 ? transport::kFence : 0));
}

}  // namespace

int Endpoint::send(const SendCall& call) noexcept {
    if (!can_send_) [[unlikely]] {
        return enabled_
                   ? connection_->refuse_send()
                   : refuse(TW_EOPBADSTATE, "the endpoint is not enabled: call tw_ep_enable first");
    }
    SendRequest* request = worker_.sends().acquire();
    if (request == nullptr) [[unlikely]] {
        return refuse(EAGAIN,
                      "max_operations are outstanding: call tw_progress and read completions");
    }
    transport::SendOperation& operation = request->operation;
    const auto undo = [&](int error) {
        worker_.sends().release(request);
        return error;
    };
    if (const int error = take_iov(call.iov, call.count, operation.iov, &operation.iov_count,
                                   &operation.header.length);
        error != 0) [[unlikely]] {
        return undo(error);
    }
    if (operation.header.length > TW_MAX_MESSAGE_SIZE) [[unlikely]] {
        return undo(
            refuse(EMSGSIZE, "a message has at most TW_MAX_MESSAGE_SIZE (2^32 - 2^16) bytes"));
    }
    PeerId peer;
    if (const int error = peer_for(call.dest, &peer); error != 0) [[unlikely]] {
        return undo(error);
    }
    operation.header.tag = call.tag;
    operation.header.data = call.data;
    operation.header.kind = call.kind;
    operation.header.flags = 0;
    operation.user = request;
    request->endpoint = this;
    request->context = call.context;
    request->buffer = call.count != 0 ? call.iov[0].iov_base : nullptr;
    const bool silent = (call.flags & TW_COMPLETION) == 0;
    request->ends = {.usual = !silent && call.kind == transport::MessageKind::kTagged,
                     .silent = silent,
                     .completed = false};
    if ((call.flags & kNotPlain) != 0) [[unlikely]] {
        operation.header.flags = header_flags(call.flags);
        if ((call.flags & TW_INJECT) != 0) {
            if (const int error = copy_payload(*request); error != 0) {
                return undo(error);
            }
        }
    }
    if (!send_cq_->reserve()) [[unlikely]] {
        return undo(refuse(
            EAGAIN,
            "the completion queue has no room for another operation: read it, or open it larger"));
    }
    if (const int error = worker_.transport().send(peer, operation); error != 0) [[unlikely]] {
        send_cq_->unreserve();
        return send_refused(*request, error);
    }
    ++sends_;
    // fi_cq(3): an inject completion may come before the data is on the network.
    constexpr uint64_t kAtOnce = TW_INJECT | TW_INJECT_COMPLETE;
    if ((call.flags & kAtOnce) == kAtOnce && !silent) [[unlikely]] {
        write_sent(*request, 0);
        request->ends.completed = true;
        request->ends.usual = false;
    }
    return 0;
}

int Endpoint::send_refused(SendRequest& request, int error) noexcept {
    worker_.sends().release(&request);
    return refuse(-error, error == -EAGAIN
                              ? "the send queue is full: call tw_progress and try again"
                              : "the transport refused the message");
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
    if (connection_ != nullptr) {  // whatever the address
        if (peers_.empty()) {
            return connection_->refuse_send();
        }
        *peer = peers_.front();
        return 0;
    }
    const AddressVector::Entry* remote = av_->lookup(address);
    if (remote == nullptr) {
        if (address == TW_ADDR_UNSPEC) {
            return refuse(EINVAL,
                          "TW_ADDR_UNSPEC is no destination: name an address of the vector");
        }
        return fail(EINVAL, "address %" PRIu64 " is not in the endpoint's address vector", address);
    }
    if (address >= peers_.size()) {
        peers_.resize(av_->size(), transport::kNoPeer);
    }
    const transport::KeyDigest key = remote->has_key ? remote->key : key_;
    if (const int error = worker_.transport().open_peer(number_, remote->address, key, peer);
        error != 0) {
        return fail(-error, "no session to %s: %s%s", transport::format(remote->address).c_str(),
                    tw_strerror(error), error == -ENOSPC ? " (max_peers)" : "");
    }
    peers_[address] = *peer;  // held until the address or the endpoint goes
    return 0;
}

int Endpoint::reset_peer(tw_addr address) noexcept {
    if (!enabled_) {
        return refuse(TW_EOPBADSTATE, "the endpoint is not enabled: call tw_ep_enable first");
    }
    transport::PeerId peer;
    if (const int error = peer_for(address, &peer); error != 0) {
        return error;
    }
    worker_.transport().reset_peer(peer);
    return 0;
}

int Endpoint::peer_is_up(tw_addr address) noexcept {
    if (!enabled_) {
        return refuse(TW_EOPBADSTATE, "the endpoint is not enabled: call tw_ep_enable first");
    }
    transport::PeerId peer;
    if (const int error = peer_for(address, &peer); error != 0) {
        return error;
    }
    return worker_.transport().is_up(peer) ? 1 : 0;
}

bool Endpoint::is_busy(tw_addr address) const {
    return address < peers_.size() && peers_[address] != transport::kNoPeer &&
           worker_.transport().is_busy(peers_[address]);
}

void Endpoint::forget_address(tw_addr address) {
    if (address < peers_.size() && peers_[address] != transport::kNoPeer) {
        worker_.transport().release_peer(peers_[address]);
        peers_[address] = transport::kNoPeer;
    }
}

}  // namespace tagwire
