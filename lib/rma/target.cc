// SPDX-License-Identifier: BSD-3-Clause
// Messages for remote memory arrive: rights and bounds are checked before a byte is
// touched, and what must wait for earlier ones of its peer waits here.
#include <algorithm>

#include "lib/rma/remote_memory.h"
#include "lib/tagwire/error.h"

namespace tagwire {

using transport::IncomingMessage;
using transport::MessageHeader;
using transport::MessageKind;
using transport::PeerId;

namespace {

// Puts of more bytes do not wait for each other: each may need a grant, and one at a
// time would leave the network idle between them.
constexpr uint64_t kOrdered = 64 * 1024;

IncomingMessage*& next_of(IncomingMessage& message) {
    return reinterpret_cast<IncomingMessage*&>(transport::user_of(message));
}

}  // namespace

RemoteMemory::RemoteMemory(Worker& worker)
    : worker_(worker),
      requests_(worker.sends().capacity()),
      operands_(worker.sends().capacity()),
      placements_(worker.sends().capacity()),
      replies_(worker.sends().capacity()),
      salt_(random_()) {}

RemoteMemory::PeerQueue& RemoteMemory::queue_of(PeerId peer) {
    if (peer >= queues_.size()) [[unlikely]] {
        queues_.resize(size_t{peer} + 1);
    }
    return queues_[peer];
}

bool RemoteMemory::may_start(const PeerQueue& queue, const MessageHeader& header) noexcept {
    return queue.under_way == 0 || (header.kind == MessageKind::kPut && header.length > kOrdered &&
                                    (header.flags & transport::kHasData) == 0);
}

void RemoteMemory::arrived(Endpoint& endpoint, IncomingMessage& message) noexcept {
    const MessageHeader& header = transport::header_of(message);
    if (header.kind == MessageKind::kGetReply || header.kind == MessageKind::kAtomicReply) {
        reply_arrived(message);
        return;
    }
    const PeerId peer = transport::peer_of(message);
    PeerQueue& queue = queue_of(peer);
    const bool first = queue.first == nullptr;
    if (first && may_start(queue, header)) [[likely]] {
        if (serve(endpoint, queue, message)) [[likely]] {
            return;
        }
        stall(peer);
    }
    ++counters_.waited;
    (first ? queue.first : next_of(*queue.last)) = &message;
    queue.last = &message;
    next_of(message) = nullptr;
}

// False when there is no room for what it needs; it is untouched then.
bool RemoteMemory::serve(Endpoint& endpoint, PeerQueue& queue, IncomingMessage& message) noexcept {
    if (!worker_.transport().is_current(message)) [[unlikely]] {
        worker_.transport().discard(message);
        return true;
    }
    switch (transport::header_of(message).kind) {
        case MessageKind::kPut:
            return serve_put(endpoint, queue, message);
        case MessageKind::kGetRequest:
            return serve_get(endpoint, message);
        default:
            return serve_atomic(endpoint, queue, message);
    }
}

void RemoteMemory::advance(PeerId peer) noexcept {
    while (!queues_[peer].stalled && queues_[peer].first != nullptr) {
        PeerQueue& queue = queues_[peer];
        IncomingMessage& message = *queue.first;
        if (!may_start(queue, transport::header_of(message))) {
            return;
        }
        IncomingMessage* const next = next_of(message);
        Endpoint* const endpoint = worker_.endpoint_of(peer);
        if (endpoint == nullptr) {
            worker_.transport().refuse(message, ECANCELED);
        } else if (!serve(*endpoint, queue, message)) {
            stall(peer);
            return;
        }
        queue.first = next;
    }
}

// Its first message waits for room, and is tried again in each turn.
void RemoteMemory::stall(PeerId peer) noexcept {
    ++counters_.stalled;
    queues_[peer].stalled = true;
    stalled_.push_back(peer);
    worker_.set_stalled(this);
}

void RemoteMemory::resume() noexcept {
    if (!can_resume()) {
        return;
    }
    resuming_.swap(stalled_);
    worker_.set_stalled(nullptr);
    for (const PeerId peer : resuming_) {
        queues_[peer].stalled = false;
        advance(peer);
    }
    resuming_.clear();
}

bool RemoteMemory::can_resume() const noexcept {
    if (replies_.in_use() == replies_.capacity() ||
        placements_.in_use() == placements_.capacity()) {
        return false;
    }
    return std::any_of(stalled_.begin(), stalled_.end(), [this](PeerId peer) {
        const Endpoint* const endpoint = worker_.endpoint_of(peer);
        return endpoint == nullptr || endpoint->receive_queue().has_room();
    });
}

// One that was accepted is no longer under way.
void RemoteMemory::one_ended(PeerId peer) noexcept {
    --queues_[peer].under_way;
    advance(peer);
}

// Its sender died before it was complete.
void RemoteMemory::lost(IncomingMessage& message, int) noexcept {
    const PeerId peer = transport::peer_of(message);
    PeerQueue& queue = queue_of(peer);
    IncomingMessage* previous = nullptr;
    for (IncomingMessage* at = queue.first; at != nullptr; previous = at, at = next_of(*at)) {
        if (at == &message) {
            (previous != nullptr ? next_of(*previous) : queue.first) = next_of(message);
            queue.last = queue.last == at ? previous : queue.last;
            break;
        }
    }
    advance(peer);
}

// 0, or the positive errno of the refusal. An access of 0 bytes needs no region.
int RemoteMemory::find_region(uint64_t key, uint64_t address, uint64_t length, uint64_t access,
                              Region** region) noexcept {
    *region = regions_.find(key);
    if (length == 0) {
        return 0;
    }
    return *region == nullptr ? ENOKEY : (*region)->check(access, address, length);
}

void RemoteMemory::count_refusal(int error) noexcept {
    switch (error) {
        case ENOKEY:
            ++counters_.refused_key;
            break;
        case EACCES:
            ++counters_.refused_access;
            break;
        case EFAULT:
            ++counters_.refused_range;
            break;
        case EINVAL:
            ++counters_.refused_alignment;
            break;
        case EOPNOTSUPP:
            ++counters_.refused_operation;
            break;
        default:
            ++counters_.malformed;
            break;
    }
}

void RemoteMemory::refuse_message(IncomingMessage& message, int error) noexcept {
    count_refusal(error);
    worker_.transport().refuse(message, static_cast<uint16_t>(error));
}

int RemoteMemory::stats(tw_stat* stats, int count) const {
    const tw_stat all[] = {
        {"rma_outstanding", requests_.in_use()},
        {"rma_errors", counters_.errors},
        {"rma_regions", regions_.size()},
        {"rma_puts", counters_.puts},
        {"rma_gets", counters_.gets},
        {"rma_atomics", counters_.atomics},
        {"rma_refused_key", counters_.refused_key},
        {"rma_refused_access", counters_.refused_access},
        {"rma_refused_range", counters_.refused_range},
        {"rma_refused_alignment", counters_.refused_alignment},
        {"rma_refused_operation", counters_.refused_operation},
        {"rma_refused_closed", counters_.refused_closed},
        {"rma_malformed", counters_.malformed},
        {"rma_waited", counters_.waited},
        {"rma_stalled", counters_.stalled},
        {"rma_stale_replies", counters_.stale_replies},
    };
    std::copy_n(all, std::min(count, static_cast<int>(std::size(all))), stats);
    return static_cast<int>(std::size(all));
}

}  // namespace tagwire

std::unique_ptr<tagwire::KindHandler> tagwire::make_remote_memory(Worker& worker) {
    return std::make_unique<RemoteMemory>(worker);
}
