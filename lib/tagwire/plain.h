// SPDX-License-Identifier: BSD-3-Clause
// Operations as most are: one buffer with at least a byte, no flag that asks for more, a peer
// that is known; of sends: tagged and short. They do what Endpoint::send() and Endpoint::receive()
// do, in less steps, and leave to those whatever is out of the ordinary.
#pragma once

#include <cstring>

#include "lib/tagwire/endpoint.h"

namespace tagwire {

[[gnu::always_inline]] inline bool Endpoint::takes_plain(bool flags_are_plain, const void* buffer,
                                                         size_t length,
                                                         tw_addr dest) const noexcept {
    return flags_are_plain && buffer != nullptr && length - 1 < transport::kShortMessage &&
           dest < peers_.size() && peers_[dest] != transport::kNoPeer && send_cq_->has_room() &&
           worker_.sends().has_freed();
}

// Whether send_plain() may be called with the default flags.
[[gnu::always_inline]] inline bool Endpoint::takes_plain_send(const void* buffer, size_t length,
                                                              tw_addr dest) const noexcept {
    return takes_plain(plain_sends_, buffer, length, dest);
}

// Whether send_plain() may be called for a message that is copied and has no completion.
[[gnu::always_inline]] inline bool Endpoint::takes_plain_inject(const void* buffer, size_t length,
                                                                tw_addr dest) const noexcept {
    return takes_plain(plain_copies_, buffer, length, dest);
}

// With kCopies the payload goes into the request, and the caller's buffer is free (TW_INJECT).
template <bool kCopies>
[[gnu::always_inline]] inline int Endpoint::send_plain(const void* buffer, size_t length,
                                                       tw_addr dest, uint64_t tag, void* context,
                                                       SendRequest::End ends) noexcept {
    const transport::PeerId peer = peers_[dest];
    SendRequest* request = worker_.sends().acquire_freed();
    request->endpoint = this;
    request->context = context;
    request->buffer = buffer;
    request->ends = ends;
    transport::SendOperation& operation = request->operation;
    operation.header.tag = tag;
    operation.header.data = 0;
    operation.header.length = length;
    operation.header.kind = transport::MessageKind::kTagged;
    operation.header.flags = 0;
    if constexpr (kCopies) {
        static_assert(sizeof(request->copy) >= transport::kShortMessage);
        if (length == sizeof(uint64_t)) [[likely]] {
            std::memcpy(request->copy, buffer, sizeof(uint64_t));
        } else {
            std::memcpy(request->copy, buffer, length);
        }
        operation.iov[0] = {request->copy, length};
    } else {
        operation.iov[0] = {const_cast<void*>(buffer), length};
    }
    operation.iov_count = 1;
    operation.user = request;
    if (const int error = worker_.transport().send_short(peer, operation); error != 0)
        [[unlikely]] {
        return send_refused(*request, error);
    }
    send_cq_->take_room();
    ++sends_;
    return 0;
}

// Whether a message of tw_tsendmsg is a plain one that is copied and has a completion.
[[gnu::always_inline]] inline bool Endpoint::takes_plain_copy(const tw_msg_tagged& message,
                                                              uint64_t flags) const noexcept {
    return message_send_flags(flags) == (TW_INJECT | TW_COMPLETION) && message.iov_count == 1 &&
           message.iov != nullptr &&
           takes_plain(plain_copies_, message.iov->iov_base, message.iov->iov_len, message.addr);
}

// Whether receive_plain() may be called.
[[gnu::always_inline]] inline bool Endpoint::takes_plain_receive(
    const void* buffer, size_t length, tw_addr source, transport::MessageKind kind) const noexcept {
    const Side& side = sides_[static_cast<size_t>(kind)];
    return plain_receives_ && buffer != nullptr && length != 0 && !blocked() &&
           receive_cq_->has_room() && worker_.receives().has_freed() && side.unexpected->empty() &&
           (source == TW_ADDR_UNSPEC ||
            (source < peers_.size() && peers_[source] != transport::kNoPeer));
}

[[gnu::always_inline]] inline int Endpoint::receive_plain(void* buffer, size_t length,
                                                          tw_addr source, uint64_t tag,
                                                          uint64_t ignore, void* context,
                                                          transport::MessageKind kind) noexcept {
    ReceiveRequest* request = worker_.receives().acquire_freed();
    receive_cq_->take_room();
    request->endpoint = this;
    request->context = context;
    request->buffer = buffer;
    request->parent = nullptr;
    request->plain = !silent_receives_;
    request->posted = true;
    request->silent = silent_receives_;
    request->untagged = kind == transport::MessageKind::kUntagged;
    request->multi = false;
    transport::ReceiveOperation& operation = request->operation;
    operation.iov[0] = {buffer, length};
    operation.iov_count = 1;
    operation.capacity = length;
    operation.user = request;
    if (worker_.contexts().active()) [[unlikely]] {
        index_context(*request);
    }
    const uint32_t peer = source == TW_ADDR_UNSPEC ? match::kAnySource : peers_[source];
    request->source = peer;
    side_of(kind).posted->post(worker_.receives().index_of(request), tag, ignore, peer);
    return 0;
}

}  // namespace tagwire
