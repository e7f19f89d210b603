// SPDX-License-Identifier: BSD-3-Clause
// A PSN arrived: once, twice, early or late.
#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>

#include "lib/transport/engine.h"
#include "lib/transport/psn.h"

namespace tagwire::transport {
namespace {

// Neither taken nor to be acknowledged.
bool is_drop(Counter outcome) noexcept {
    return outcome < Counter::rx_data;
}

}  // namespace

Counter Engine::receive_sequenced(Session& s, rte_mbuf* packet,
                                  const wire::FrameView& view) noexcept {
    const uint64_t psn = expand_psn(view.base->psn, s.receive_next);
    if (psn != s.receive_next || s.receive_end != psn) [[unlikely]] {
        return receive_out_of_order(s, psn, packet, view);
    }
    const Counter outcome = view.base->type() == wire::PacketType::kMessages
                                ? receive_messages(s, packet, view)
                                : receive_content(s, packet, view);
    if (is_drop(outcome)) [[unlikely]] {
        return outcome == Counter::drop_inconsistent ? contradicted(s, view) : outcome;
    }
    s.receive_next = s.receive_end = psn + 1;
    s.echo = view.base->timestamp;
    s.echo_valid = true;
    need_ack(s, (view.base->flags & wire::kFlagAckNow) != 0 ? AckNeed::kNow : AckNeed::kSoon);
    return outcome;
}

// Resending cannot help: the two sides disagree about the session.
Counter Engine::contradicted(Session& s, const wire::FrameView& view) noexcept {
    send_reset(view);
    end_session(s, -EPROTO);
    return Counter::drop_inconsistent;
}

Counter Engine::receive_out_of_order(Session& s, uint64_t psn, rte_mbuf* packet,
                                     const wire::FrameView& view) noexcept {
    if (psn >= s.receive_next + wire::kPsnWindow) {
        return Counter::drop_out_of_window;
    }
    if (psn < s.receive_next || s.is_received(psn)) {
        s.saw_duplicate = true;
        need_ack(s, AckNeed::kNow);
        return Counter::drop_duplicate;
    }
    const Counter outcome = receive_content(s, packet, view);
    if (is_drop(outcome)) {
        return outcome == Counter::drop_inconsistent ? contradicted(s, view) : outcome;
    }
    const uint64_t bit = psn % wire::kPsnWindow;
    s.received[bit / 64] |= uint64_t{1} << (bit % 64);
    s.receive_end = std::max(s.receive_end, psn + 1);
    while (s.receive_next < s.receive_end && s.is_received(s.receive_next)) {
        const uint64_t here = s.receive_next++ % wire::kPsnWindow;
        s.received[here / 64] &= ~(uint64_t{1} << (here % 64));
    }
    s.echo = view.base->timestamp;
    s.echo_valid = true;
    need_ack(s, AckNeed::kNow);
    return outcome;
}

// The window as a bitmap that begins after the first missing PSN.
uint32_t Engine::sack_words(const Session& s, wire::be64* words) const noexcept {
    if (s.receive_end <= s.receive_next + 1) {
        return 0;
    }
    const auto count = static_cast<uint32_t>((s.receive_end - s.receive_next - 1 + 63) / 64);
    for (uint32_t w = 0; w < count; ++w) {
        const uint64_t start = (s.receive_next + 1 + uint64_t{w} * 64) % wire::kPsnWindow;
        const uint64_t word = start / 64;
        const unsigned shift = start % 64;
        uint64_t bits = s.received[word] >> shift;
        if (shift != 0) {
            bits |= s.received[(word + 1) % wire::kSackWords] << (64 - shift);
        }
        words[w] = bits;
    }
    return count;
}

}  // namespace tagwire::transport
