// SPDX-License-Identifier: BSD-3-Clause
// Receives that look at unexpected messages, fi_tagged(3): FI_PEEK, FI_CLAIM, FI_DISCARD.
//
// A peek ends when it is posted, always with an entry in the completion queue. What it
// claimed is named by the caller's tw_context: a handle, which is checked and never
// followed, so a context with any other content is refused.
#include <algorithm>

#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/iov.h"

namespace tagwire {

namespace {

constexpr const char* kQueueFull =
    "the completion queue has no room for another operation: read it, or open it larger";
constexpr uintptr_t kLostMark = 0x74776c6f7374;  // "twlost"

tw_context& context_of(void* context) {
    return *static_cast<tw_context*>(context);
}

}  // namespace

int Endpoint::peek(const ReceiveCall& call) noexcept {
    const bool claims = (call.flags & TW_CLAIM) != 0;
    if ((call.flags & TW_MULTI_RECV) != 0 || (claims && (call.flags & TW_DISCARD) != 0)) {
        return refuse(EINVAL,
                      "TW_PEEK goes with TW_CLAIM or with TW_DISCARD, and with no "
                      "TW_MULTI_RECV");
    }
    if (claims && call.context == nullptr) {
        return refuse(EINVAL, "TW_CLAIM: the context must be a struct tw_context");
    }
    uint32_t source;
    if (const int error = source_for(call, &source); error != 0) {
        return error;
    }
    if (!receive_cq_->reserve()) {
        return refuse(EAGAIN, kQueueFull);
    }
    match::UnexpectedQueue& queue = *side_of(call.kind).unexpected;
    const match::Slot found = queue.find(call.tag, call.ignore, source);
    Completion& completion = receive_cq_->write();
    if (found == match::kNone) {
        completion = {};
        completion.entry.context = call.context;
        completion.entry.flags = TW_RECV | TW_TAGGED;
        completion.entry.tag = call.tag;
        completion.entry.source = call.source;
        completion.error = ENOMSG;
        return 0;
    }
    UnexpectedMessage& unexpected = worker_.unexpected()[found];
    fill(completion, call.context, arrival_of(*unexpected.message));
    completion.entry.length = completion.message_length;
    if (claims) {
        unexpected.state = UnexpectedMessage::State::kClaimed;
        unexpected.context = call.context;
        unexpected.handle = queue.claim(found);
        context_of(call.context) = {};
        context_of(call.context).internal[0] = std::bit_cast<void*>(unexpected.handle);
    } else if ((call.flags & TW_DISCARD) != 0) {
        queue.remove(found);
        worker_.transport().discard(take(unexpected));
        ++worker_.counters().discarded;
    }
    return 0;
}

// A receive for what a peek claimed, or the end of it.
int Endpoint::claim(const ReceiveCall& call) noexcept {
    if ((call.flags & TW_CLAIM) == 0) {
        return refuse(EINVAL, "TW_DISCARD goes with TW_PEEK or with TW_CLAIM");
    }
    if (call.context == nullptr || (call.flags & TW_MULTI_RECV) != 0) {
        return refuse(EINVAL,
                      "TW_CLAIM: the context must be a struct tw_context; no TW_MULTI_RECV");
    }
    tw_context& context = context_of(call.context);
    match::UnexpectedQueue& queue = *side_of(call.kind).unexpected;
    const auto handle = std::bit_cast<match::Handle>(context.internal[0]);
    const bool claimed = queue.is_claimed(handle) &&
                         worker_.unexpected()[match::slot_of(handle)].context == call.context;
    const bool lost = handle == 0 && context.internal[1] == std::bit_cast<void*>(kLostMark);
    if (!claimed && !lost) {
        return refuse(EINVAL, "TW_CLAIM: no message is claimed with this context");
    }
    const bool discard = (call.flags & TW_DISCARD) != 0;
    transport::ReceiveOperation operation{};
    if (const int error = discard ? 0
                                  : take_iov(call.iov, call.count, operation.iov,
                                             &operation.iov_count, &operation.capacity);
        error != 0) {
        return error;
    }
    ReceiveRequest* request = worker_.receives().acquire();
    if (request == nullptr) {
        return refuse(EAGAIN,
                      "max_operations are outstanding: call tw_progress and read completions");
    }
    if (!receive_cq_->reserve()) {
        worker_.receives().release(request);
        return refuse(EAGAIN, kQueueFull);
    }
    request->endpoint = this;
    request->context = call.context;
    request->buffer = discard || call.count == 0 ? nullptr : call.iov[0].iov_base;
    request->parent = nullptr;
    request->posted = false;
    request->plain = false;
    request->silent = (call.flags & TW_COMPLETION) == 0;
    request->untagged = false;
    request->multi = false;
    request->operation = operation;
    request->operation.user = request;
    const tw_context held = std::exchange(context, {});
    if (lost) {
        Arrival arrival{{}, transport::kNoPeer};
        arrival.header.tag = std::bit_cast<uint64_t>(held.internal[3]);
        complete(*request, arrival, static_cast<int>(std::bit_cast<intptr_t>(held.internal[2])));
        return 0;
    }
    transport::IncomingMessage& message = take(worker_.unexpected()[queue.redeem(handle)]);
    if (discard) {
        Arrival arrival = arrival_of(message);
        worker_.transport().discard(message);
        ++worker_.counters().discarded;
        arrival.header.length = 0;  // nothing was placed, and nothing is missing
        complete(*request, arrival, 0);
        return 0;
    }
    ++worker_.counters().matched_unexpected;
    deliver(*request, message);
    return 0;
}

// Its sender died. The context, which is ours until it claims, keeps the news.
void Endpoint::lose_claimed(UnexpectedMessage& unexpected, int status) noexcept {
    side_of(transport::header_of(*unexpected.message).kind).unexpected->redeem(unexpected.handle);
    tw_context& context = context_of(unexpected.context);
    context.internal[0] = nullptr;
    context.internal[1] = std::bit_cast<void*>(kLostMark);
    context.internal[2] = std::bit_cast<void*>(intptr_t{status});
    context.internal[3] = std::bit_cast<void*>(transport::header_of(*unexpected.message).tag);
}

}  // namespace tagwire
