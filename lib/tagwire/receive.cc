// SPDX-License-Identifier: BSD-3-Clause
// A receive is posted, or cancelled.
#include "lib/tagwire/connection.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/iov.h"

namespace tagwire {

namespace {

constexpr const char* kOthersReceives =
    "the endpoint has its receives in another, its receiver (tw_ep_bind_receiver)";

}  // namespace

int Endpoint::receive(const ReceiveCall& call) noexcept {
    if (!can_receive_) [[unlikely]] {
        if (const int error = check_receive(call); error != 0) {
            return error;
        }
    }
    if (blocked()) [[unlikely]] {
        resume();
        if (blocked()) {
            return refuse(EAGAIN, "the completion queue is full: read it, and call tw_progress");
        }
    }
    if ((call.flags & (TW_PEEK | TW_CLAIM | TW_DISCARD)) != 0) [[unlikely]] {
        return (call.flags & TW_PEEK) != 0 ? peek(call) : claim(call);
    }
    ReceiveRequest* request = worker_.receives().acquire();
    if (request == nullptr) [[unlikely]] {
        return refuse(EAGAIN,
                      "max_operations are outstanding: call tw_progress and read completions");
    }
    const auto undo = [&](int error) {
        worker_.receives().release(request);
        return error;
    };
    transport::ReceiveOperation& operation = request->operation;
    if (const int error = take_iov(call.iov, call.count, operation.iov, &operation.iov_count,
                                   &operation.capacity);
        error != 0) [[unlikely]] {
        return undo(error);
    }
    request->multi = (call.flags & TW_MULTI_RECV) != 0;
    if (request->multi && operation.iov_count != 1) [[unlikely]] {
        return undo(refuse(EINVAL, "TW_MULTI_RECV takes one buffer of at least one byte"));
    }
    uint32_t source;
    if (const int error = source_for(call, &source); error != 0) [[unlikely]] {
        return undo(error);
    }
    if (!receive_cq_->reserve()) [[unlikely]] {
        return undo(refuse(
            EAGAIN,
            "the completion queue has no room for another operation: read it, or open it larger"));
    }
    operation.user = request;
    request->endpoint = this;
    request->context = call.context;
    request->source = source;
    request->buffer = call.count != 0 ? call.iov[0].iov_base : nullptr;
    request->parent = nullptr;
    request->silent = (call.flags & TW_COMPLETION) == 0;
    request->plain =
        call.count == 1 && operation.iov_count == 1 && !request->multi && !request->silent;
    request->untagged = call.kind == transport::MessageKind::kUntagged;
    return post(*request, side_of(call.kind), call);
}

// After the end of a connection only what came before it can be received.
int Endpoint::check_receive(const ReceiveCall& call) noexcept {
    if (!enabled_) {
        return refuse(TW_EOPBADSTATE, "the endpoint is not enabled: call tw_ep_enable first");
    }
    if (receiver_ != this) {
        return refuse(EOPNOTSUPP, kOthersReceives);
    }
    const bool looks = (call.flags & (TW_PEEK | TW_CLAIM | TW_DISCARD)) != 0;
    const bool left = (call.flags & TW_MULTI_RECV) == 0 &&
                      side_of(call.kind).unexpected->find(call.tag, call.ignore,
                                                          match::kAnySource) != match::kNone;
    return connection_->ended_by_peer() && (looks || left) ? 0 : connection_->refuse_receive();
}

// Everything that can fail has been done.
int Endpoint::post(ReceiveRequest& request, Side& side, const ReceiveCall& call) noexcept {
    const uint32_t source = request.source;
    if (request.multi) [[unlikely]] {
        request.cancelled = 0;
        request.hungry = false;
        request.filling = 0;
        request.least = min_multi_receive_;
        request.used = 0;
        request.tag = call.tag;
        request.ignore = call.ignore;
        request.posted = true;
        if (call.context != nullptr && worker_.contexts().active()) {
            worker_.contexts().insert(request);
        }
        side.posted->post(worker_.receives().index_of(&request), call.tag, call.ignore, source,
                          match::PostedQueue::Life::kStays);
        if (!fill_from_unexpected(request)) {
            ++worker_.counters().blocked;
            worker_.add_blocked(*this);
            make_hungry(request, false);
        }
        return 0;
    }
    const match::Slot found = side.unexpected->take(call.tag, call.ignore, source);
    if (found == match::kNone) {
        request.posted = true;
        if (call.context != nullptr && worker_.contexts().active()) {
            worker_.contexts().insert(request);
        }
        side.posted->post(worker_.receives().index_of(&request), call.tag, call.ignore, source);
        return 0;
    }
    request.posted = false;
    ++worker_.counters().matched_unexpected;
    deliver(request, take(worker_.unexpected()[found]));
    return 0;
}

// The peer, the group of a key, or any.
int Endpoint::source_for(const ReceiveCall& call, uint32_t* source) noexcept {
    if ((call.flags & TW_AUTH_KEY) != 0) [[unlikely]] {
        uint32_t key;
        if (!av_->key_number(call.source, &key)) {
            return refuse(EINVAL, "TW_AUTH_KEY: the address is not one of tw_av_insert_auth_key");
        }
        *source = match::key_group(key);
        return 0;
    }
    if (call.source == TW_ADDR_UNSPEC || connection_ != nullptr) {
        *source = match::kAnySource;
        return 0;
    }
    return peer_for(call.source, source);
}

void Endpoint::unpost(ReceiveRequest& request, Side& side) noexcept {
    request.posted = false;
    if (request.multi && request.hungry) {
        unlink_hungry(request);
    }
    if (request.context != nullptr && worker_.contexts().active()) {
        worker_.contexts().erase(request);
    }
    side.posted->remove(worker_.receives().index_of(&request));
}

void Endpoint::index_context(ReceiveRequest& request) noexcept {
    if (request.context != nullptr) {
        worker_.contexts().insert(request);
    }
}

bool Endpoint::is_matching_short() const {
    return sides_[0].posted->is_short() && sides_[1].posted->is_short();
}

ReceiveRequest* Endpoint::find_posted(const void* context) noexcept {
    if (context == nullptr) {
        return nullptr;
    }
    if (worker_.contexts().active()) {
        return worker_.contexts().oldest(this, context);
    }
    for (Side& side : sides_) {
        const match::Slot found = side.posted->oldest_short(
            [&](match::Slot slot) { return worker_.receives()[slot].context == context; });
        if (found != match::kNone) {
            return &worker_.receives()[found];
        }
    }
    return nullptr;
}

int Endpoint::cancel(void* context) noexcept {
    if (!enabled_) {
        return refuse(TW_EOPBADSTATE, "the endpoint is not enabled: call tw_ep_enable first");
    }
    if (receiver_ != this) {
        return refuse(EOPNOTSUPP, kOthersReceives);
    }
    if (!worker_.contexts().active() && !is_matching_short()) {
        const auto index = [this] {
            worker_.index_contexts();
            return 0;
        };
        if (const int error = guarded(index); error != 0) {
            return error;
        }
    }
    ReceiveRequest* request = find_posted(context);
    if (request == nullptr) {
        return refuse(ENOENT, "no receive with that context is posted; a matched one completes");
    }
    take_back(*request, ECANCELED);
    return 0;
}

void Endpoint::peer_down(transport::PeerId peer, int error) noexcept {
    if (!watches_sources_) {
        return;
    }
    for (Side& side : open_sides()) {
        for (const match::Slot slot : side.posted->slots()) {
            ReceiveRequest& request = worker_.receives()[slot];
            if (request.source == peer) {
                take_back(request, error);
            }
        }
    }
}

void Endpoint::take_back(ReceiveRequest& request, int error) noexcept {
    unpost(request, side_of(request));
    if (!request.multi) {
        complete_cancelled(request, error);
        return;
    }
    request.cancelled = error;
    if (request.filling == 0) {
        release_multi(request, nullptr);
    }
}

}  // namespace tagwire
