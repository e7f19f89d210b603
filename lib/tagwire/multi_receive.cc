// SPDX-License-Identifier: BSD-3-Clause
// A buffer for many messages, fi_msg(3) FI_MULTI_RECV. They are packed without gaps;
// each has an entry with its place in the buffer. The buffer is released once: with
// the last message to be complete, or with an entry of its own, for which the one
// reserved at posting is kept.
#include <algorithm>

#include "lib/tagwire/endpoint.h"

namespace tagwire {

using transport::IncomingMessage;

namespace {

uint64_t space_of(const ReceiveRequest& multi) {
    return multi.operation.capacity - multi.used;
}

uint64_t placed_length(const ReceiveRequest& multi, const IncomingMessage& message) {
    return std::min(space_of(multi), transport::header_of(message).length);
}

// No other message goes in behind this one.
bool is_last(const ReceiveRequest& multi, const IncomingMessage& message) {
    return space_of(multi) - placed_length(multi, message) < multi.least;
}

}  // namespace

// Places a message, or says false: no room in the completion queue or for the request.
bool Endpoint::feed(ReceiveRequest& multi, IncomingMessage& message) noexcept {
    ReceiveRequest* part = worker_.receives().acquire();
    if (part == nullptr) {
        return false;
    }
    if (!receive_cq_->reserve()) {
        worker_.receives().release(part);
        return false;
    }
    const uint64_t space = space_of(multi);
    const bool last = is_last(multi, message);
    part->endpoint = this;
    part->context = multi.context;
    part->buffer = static_cast<uint8_t*>(multi.buffer) + multi.used;
    part->parent = &multi;
    part->posted = false;
    part->plain = false;
    part->multi = false;
    part->silent = multi.silent;
    part->untagged = multi.untagged;
    part->operation.iov[0] = {part->buffer, space};
    part->operation.iov_count = space != 0 ? 1 : 0;
    part->operation.capacity = space;
    part->operation.user = part;
    multi.used += placed_length(multi, message);
    ++multi.filling;
    ++worker_.counters().matched_posted;
    if (last) {
        unpost(multi, side_of(multi));
    }
    deliver(*part, message);
    return true;
}

// Unexpected messages that it would have taken had it been there. False: more wait.
bool Endpoint::fill_from_unexpected(ReceiveRequest& multi) noexcept {
    match::UnexpectedQueue& unexpected = *side_of(multi).unexpected;
    while (multi.posted) {
        const match::Slot found = unexpected.find(multi.tag, multi.ignore, multi.source);
        if (found == match::kNone) {
            return true;
        }
        if (worker_.receives().in_use() == worker_.receives().capacity() ||
            !receive_cq_->has_room()) {
            return false;
        }
        unexpected.remove(found);
        IncomingMessage& message = take(worker_.unexpected()[found]);
        const bool last = is_last(multi, message);
        feed(multi, message);
        if (last) {
            return true;  // and it may be released already
        }
    }
    return true;
}

// `completion`: the entry that says so, if it has one.
void Endpoint::part_ended(ReceiveRequest& multi, Completion* completion) noexcept {
    if (--multi.filling == 0 && !multi.posted) {
        release_multi(multi, completion);
    }
}

void Endpoint::release_multi(ReceiveRequest& multi, Completion* completion) noexcept {
    if (multi.cancelled != 0) {
        complete_cancelled(multi, multi.cancelled);
        return;
    }
    if (completion != nullptr && completion->error == 0) {
        completion->entry.flags |= TW_MULTI_RECV;
        receive_cq_->unreserve();
    } else {
        // fi_cq(3): no other flag, so the entry belongs to no message.
        Completion& released = receive_cq_->write();
        released = {};
        released.entry.context = multi.context;
        released.entry.flags = TW_MULTI_RECV;
        released.entry.buffer = multi.buffer;
        released.entry.source = TW_ADDR_NOTAVAIL;
    }
    worker_.receives().release(&multi);
}

}  // namespace tagwire
