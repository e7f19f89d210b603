// SPDX-License-Identifier: BSD-3-Clause
// A put is placed straight into the region, and reported where it carries data.
#include "lib/rma/remote_memory.h"

namespace tagwire {

using transport::IncomingMessage;
using transport::MessageHeader;
using transport::PeerId;
using transport::ReceiveOperation;

bool RemoteMemory::serve_put(Endpoint& endpoint, PeerQueue& queue,
                             IncomingMessage& message) noexcept {
    const MessageHeader header = transport::header_of(message);
    const bool has_data = (header.flags & transport::kHasData) != 0;
    const uint64_t head = has_data ? sizeof(wire::PutData) : 0;
    if (header.length < head) [[unlikely]] {
        refuse_message(message, EPROTO);
        return true;
    }
    Region* region;
    const uint64_t length = header.length - head;
    if (const int error = find_region(header.tag, header.data, length, TW_REMOTE_WRITE, &region);
        error != 0) [[unlikely]] {
        refuse_message(message, error);
        return true;
    }
    if (placements_.in_use() == placements_.capacity() ||
        (has_data && !endpoint.receive_queue().reserve())) [[unlikely]] {
        return false;
    }
    Placement& placement = *placements_.acquire();
    ReceiveOperation& receive = placement.receive;
    receive.capacity = header.length;
    receive.iov_count = 0;
    receive.user = &placement;
    if (has_data) {
        receive.iov[receive.iov_count++] = {&placement.data, sizeof(placement.data)};
    }
    if (length != 0) [[likely]] {
        receive.iov_count += region->pieces(header.data, length, receive.iov + receive.iov_count);
    }
    const PeerId peer = transport::peer_of(message);
    switch (worker_.transport().accept(message, receive)) {
        case 1:
            placed(endpoint, region, header, peer, placement.data.data);
            break;
        case 0:
            placement.endpoint = &endpoint;
            placement.message = &message;
            placement.region = region;
            link(placement);
            ++queue.under_way;
            return true;
        default:  // its session ended
            if (has_data) {
                endpoint.receive_queue().unreserve();
            }
    }
    placements_.release(&placement);
    return true;
}

void RemoteMemory::placed(Endpoint& endpoint, Region* region, const MessageHeader& header,
                          PeerId peer, uint64_t data) noexcept {
    ++counters_.puts;
    endpoint.count(Counted::kRemoteWrite, 0);
    if (region != nullptr) {
        region->count_write();
    }
    if ((header.flags & transport::kHasData) != 0) {
        Completion& completion = endpoint.receive_queue().write();
        completion = {};
        completion.entry.flags = TW_RMA | TW_REMOTE_WRITE | TW_REMOTE_CQ_DATA;
        completion.entry.length = header.length - sizeof(wire::PutData);
        completion.entry.data = data;
        completion.entry.source = worker_.address_of(peer);
    }
}

void RemoteMemory::link(Placement& placement) noexcept {
    if (placement.region == nullptr) {  // of 0 bytes
        return;
    }
    placement.previous = nullptr;
    placement.next = placement.region->placements;
    if (placement.next != nullptr) {
        placement.next->previous = &placement;
    }
    placement.region->placements = &placement;
}

void RemoteMemory::unlink(Placement& placement) noexcept {
    if (placement.region == nullptr) {
        return;
    }
    (placement.previous != nullptr ? placement.previous->next : placement.region->placements) =
        placement.next;
    if (placement.next != nullptr) {
        placement.next->previous = placement.previous;
    }
}

void RemoteMemory::put_done(Placement& placement, const IncomingMessage& message,
                            int status) noexcept {
    const PeerId peer = transport::peer_of(message);
    const MessageHeader& header = transport::header_of(message);
    if (status == 0) [[likely]] {
        placed(*placement.endpoint, placement.region, header, peer, placement.data.data);
    } else if ((header.flags & transport::kHasData) != 0) {
        placement.endpoint->receive_queue().unreserve();
    }
    unlink(placement);
    placements_.release(&placement);
    one_ended(peer);
}

}  // namespace tagwire
