// SPDX-License-Identifier: BSD-3-Clause
// A pipeline polled the port and offers what came: ours is taken, the rest given back as it was.
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <utility>

#include "lib/transport/engine.h"
#include "lib/transport/frame_parts.h"
#include "lib/wire/claim.h"

namespace tagwire::transport {

uint32_t Engine::input(std::span<rte_mbuf*> packets, uint16_t* given_back,
                       std::span<Event> events) noexcept {
    advance_clock();
    if (events_.empty()) {
        free_finished();
    }
    events_.begin(events);
    uint16_t foreign = 0;
    for (size_t i = 0; i < packets.size(); ++i) {
        if (i + 1 < packets.size()) {
            rte_prefetch0(rte_pktmbuf_mtod(packets[i + 1], void*));
        }
        if (!take_if_ours(packets[i])) {
            packets[foreign++] = packets[i];
        }
    }
    counters_[Counter::input_given_back] += foreign;
    *given_back = foreign;
    return events_.finish();
}

bool Engine::take_if_ours(rte_mbuf* packet) noexcept {
    // Headers may lie across segments; a frame that is not ours stays as it is.
    uint8_t copy[wire::kLongestHeaders];
    const uint32_t length = std::min(packet->pkt_len, wire::kLongestHeaders);
    const auto* head =
        static_cast<const uint8_t*>(rte_pktmbuf_read(packet, 0, length, static_cast<void*>(copy)));
    if (head == nullptr) [[unlikely]] {
        return false;
    }
    switch (wire::claim_frame(head, length, decode_)) {
        case wire::Claim::kForeign:
            return false;
        case wire::Claim::kOverheard:
            overhear(head, length);
            return false;
        case wire::Claim::kOurs:
            break;
    }
    if (!receive_pool_known_) [[unlikely]] {
        note_receive_pool(packet);
    }
    count(Counter::rx_frames);
    count(receive_frame(packet));
    if (!std::exchange(frame_retained_, false)) {
        free_frame(packet);
    }
    return true;
}

// What everybody was told is for us to know, and for others to receive.
void Engine::overhear(const uint8_t* frame, uint32_t length) noexcept {
    wire::FrameView view;
    if (wire::decode_frame(frame, length, decode_, {}, view) == wire::Reject::kNone) {
        receive_arp(view);
    }
}

}  // namespace tagwire::transport
