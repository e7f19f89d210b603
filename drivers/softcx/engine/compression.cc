// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/compression.h"

#include <algorithm>
#include <cstring>

#include "drivers/softcx/engine/completion.h"

namespace softcx {

namespace {

constexpr auto kReceived =
    static_cast<uint8_t>(static_cast<uint8_t>(CqeOpcode::kResponderSend) << 4);

MiniFormat format_of(const CompletionPort& port) noexcept {
    return static_cast<MiniFormat>(port.cq->compression);
}

MiniCqe make_mini(const Cqe& cqe, MiniFormat format) noexcept {
    MiniCqe mini{};
    if (format == MiniFormat::kHash) {
        mini.rx_hash_result = cqe.rx_hash_result;
    } else {
        mini.sum.check_sum = cqe.check_sum;
        if (format == MiniFormat::kChecksumAndStride)
            mini.sum.stride_index = cqe.wqe_counter;
    }
    mini.byte_cnt = cqe.byte_cnt;
    return mini;
}

// Without the stride index a client counts on from the title: WQEs, or the strides
// that each CQE took.
uint16_t counter_after(const Cqe& cqe) noexcept {
    const uint32_t strides = cqe.byte_cnt.get() >> kCqeStridesShift & 0x3fff;
    return static_cast<uint16_t>(cqe.wqe_counter.get() + std::max(strides, 1u));
}

// Everything that a mini CQE cannot say must be as in the title. The hash (or the
// checksum) that the format leaves out is lost, and the time is that of the title.
bool is_like_title(const CompressionSession& session, const Cqe& cqe) noexcept {
    const Cqe& title = session.title;
    return cqe.wqe_counter.get() == session.next_counter && cqe.wqe_id.raw == title.wqe_id.raw &&
           cqe.rx_hash_type == title.rx_hash_type && cqe.hds_ip_ext == title.hds_ip_ext &&
           cqe.l4_l3_hdr_type == title.l4_l3_hdr_type && cqe.vlan_info.raw == title.vlan_info.raw &&
           cqe.srqn_uidx.raw == title.srqn_uidx.raw && cqe.metadata.raw == title.metadata.raw &&
           cqe.sop_drop_qpn.raw == title.sop_drop_qpn.raw;
}

// Entry of the array `number` of a session that starts at `title`.
uint32_t array_index(uint32_t title, uint32_t number) noexcept {
    return title + (number == 0 ? 1 : number * kMinisPerEntry);
}

void store_minis(const CompletionQueue& cq, uint32_t title,
                 const CompressionSession& session) noexcept {
    for (uint32_t first = 0; first < session.count; first += kMinisPerEntry) {
        const uint32_t index = array_index(title, first / kMinisPerEntry);
        uint8_t* slot = cq.buffer + size_t{index & (cq.entries - 1)} * cq.cqe_size;
        slot += cq.cqe_size - sizeof(Cqe);  // where a whole CQE would be
        const uint32_t minis = std::min(kMinisPerEntry, session.count - first);
        std::memcpy(slot, &session.minis[first], minis * sizeof(MiniCqe));
    }
}

// A session ends with the ring: clients read title and array as one piece (the vector path
// of DPDK's net_mlx5 does, with no thought of a wrap).
bool is_at_end(const CompletionQueue& cq, const CompressionSession& session) noexcept {
    return ((cq.producer_index + session.count) & (cq.entries - 1)) == 0;
}

}  // namespace

bool write_receive_cqe(EngineState& state, CompletionPort& port, Cqe& cqe) noexcept {
    CompressionSession* session = port.session.get();
    if (session == nullptr) [[likely]]
        return write_cqe(state, port, cqe, CqeOpcode::kResponderSend, false);
    if (session->count == kMostCompressed ||
        (session->count != 0 && (is_at_end(*port.cq, *session) || !is_like_title(*session, cqe))))
        close_session(port);
    if (!has_room(state, port, session->count + 1)) {
        close_session(port);
        return false;
    }
    if (session->count == 0)
        session->title = cqe;
    session->minis[session->count++] = make_mini(cqe, format_of(port));
    session->next_counter = counter_after(cqe);
    return true;
}

void close_session(CompletionPort& port) noexcept {
    CompressionSession& session = *port.session;
    if (session.count == 0)
        return;
    CompletionQueue& cq = *port.cq;
    const uint32_t title = cq.producer_index;
    const uint32_t cqes = session.count;
    cq.producer_index += cqes;
    if (session.count == 1) {
        store_cqe(cq, title, session.title, kReceived);
    } else {
        store_minis(cq, title, session);
        session.title.byte_cnt.set(session.count);
        store_cqe(cq, title, session.title, kReceived | kCqeCompressed);
    }
    session.count = 0;
    raise_if_armed(cq, false, cqes);
}

void close_sessions(EngineState& state) noexcept {
    for (CompletionPort* port : state.compressing_ports)
        close_session(*port);
}

}  // namespace softcx
