// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/scatter.h"

#include <algorithm>
#include <cstring>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/engine/access.h"
#include "drivers/softcx/engine/completion.h"
#include "drivers/softcx/engine/compression.h"
#include "drivers/softcx/engine/fcs.h"
#include "drivers/softcx/engine/send.h"

namespace softcx {

namespace {

constexpr uint32_t kMacAddresses = 12;

// The bytes that go to memory, and how they differ from the frame.
struct Image {
    const uint8_t* data;
    uint32_t length;
    bool stripped = false;
};

Image make_image(EngineState& state, const WorkQueue& wq, const ParsedFrame& frame) noexcept {
    const bool strip =
        wq.vlan_strip && frame.has_vlan && load_be16(frame.data + kMacAddresses) == kTypeVlan;
    if (!strip && !wq.scatter_fcs) [[likely]]
        return {frame.data, frame.length};
    uint8_t* to = state.receive_scratch.data();
    const uint32_t skip = strip ? kVlanTag : 0;
    std::memcpy(to, frame.data, kMacAddresses);
    std::memcpy(to + kMacAddresses, frame.data + kMacAddresses + skip,
                frame.length - kMacAddresses - skip);
    uint32_t length = frame.length - skip;
    if (wq.scatter_fcs) {
        const uint32_t fcs = ethernet_fcs(frame.data, frame.length);
        for (int i = 0; i < 4; ++i)
            to[length++] = static_cast<uint8_t>(fcs >> 8 * i);
    }
    return {to, length, strip};
}

// To the memory of a WQE, `skip` bytes into it. All segments are checked before the
// first byte is written.
Syndrome scatter(EngineState& state, ReceivePort& port, const uint8_t* wqe, const Image& image,
                 uint64_t skip) noexcept {
    struct Part {
        uint8_t* to;
        uint32_t length;
    };
    constexpr uint32_t kMostSegments = 64;
    Part parts[kMostSegments];
    uint32_t count = 0;
    uint32_t left = image.length;
    const uint32_t segments = std::min(port.segments, kMostSegments);
    for (uint32_t i = 0; i < segments && left != 0; ++i) {
        DataSegment segment;
        std::memcpy(&segment, wqe + size_t{i} * sizeof(segment), sizeof(segment));
        const uint32_t lkey = segment.lkey.get();
        uint32_t room = segment.byte_count.get();
        if (room == 0) {
            if (lkey == kInvalidLkey)
                break;
            room = 1u << 31;  // PRM, "Data segment": zero stands for 2^31
        }
        if (skip >= room) {
            skip -= room;
            continue;
        }
        const uint32_t length = std::min(static_cast<uint32_t>(room - skip), left);
        uint8_t* to = access_memory(state, port.memory, port.wq->wqn,
                                    {lkey, segment.address.get() + skip, length, true});
        skip = 0;
        if (to == nullptr)
            return Syndrome::kLocalProtection;
        parts[count++] = {to, length};
        left -= length;
    }
    if (left != 0)
        return Syndrome::kLocalLength;
    const uint8_t* from = image.data;
    for (uint32_t i = 0; i < count; ++i) {
        std::memcpy(parts[i].to, from, parts[i].length);
        from += parts[i].length;
    }
    return Syndrome::kNone;
}

Cqe make_cqe(const EngineState& state, const ReceivePort& port, const Reception& reception,
             const Image& image) noexcept {
    const ParsedFrame& frame = reception.frame;
    Cqe cqe{};
    cqe.rx_hash_result.set(reception.hash);
    cqe.rx_hash_type = reception.hash_type;
    cqe.check_sum.set(reception.checksums.l3_sum);
    cqe.hds_ip_ext = static_cast<uint8_t>(kCqeL2Ok | (reception.checksums.l3_ok ? kCqeL3Ok : 0) |
                                          (reception.checksums.l4_ok ? kCqeL4Ok : 0));
    cqe.l4_l3_hdr_type = static_cast<uint8_t>(
        static_cast<uint8_t>(frame.l3) << kCqeL3Shift |
        static_cast<uint8_t>(frame.l4) << kCqeL4Shift | (frame.ip_extras ? kCqeIpOptions : 0) |
        (frame.fragment ? kCqeIpFragment : 0) | (image.stripped ? kCqeVlanStripped : 0));
    cqe.vlan_info.set(image.stripped ? frame.vlan_tci : 0);
    cqe.srqn_uidx.set(port.user_index & kIndexMask);
    cqe.byte_cnt.set(image.length);
    cqe.timestamp.set(state.now);
    cqe.sop_drop_qpn.set(reception.tag & kIndexMask);
    cqe.wqe_counter.set(port.wq->consumer_index);
    return cqe;
}

// Strides for a frame.
uint32_t strides_for(const WorkQueue& wq, uint32_t bytes) noexcept {
    const uint32_t shifted = bytes + (wq.two_byte_shift ? kTwoByteShift : 0);
    return (shifted + (1u << wq.log_stride_bytes) - 1) >> wq.log_stride_bytes;
}

void close_wqe(WorkQueue& wq) noexcept {
    ++wq.consumer_index;
    --wq.available;
    wq.used_strides = 0;
}

// What is left of the WQE is too short for the next frame: a filler CQE gives it back.
bool skip_strides(EngineState& state, ReceivePort& port) noexcept {
    WorkQueue& wq = *port.wq;
    const uint32_t left = (1u << wq.log_strides) - wq.used_strides;
    Cqe cqe{};
    cqe.srqn_uidx.set(port.user_index & kIndexMask);
    cqe.byte_cnt.set(kCqeFiller | left << kCqeStridesShift);
    cqe.timestamp.set(state.now);
    cqe.wqe_id.set(wq.consumer_index);
    cqe.wqe_counter.set(static_cast<uint16_t>(wq.used_strides));
    close_wqe(wq);
    return write_receive_cqe(state, *port.completions, cqe);
}

uint32_t error_qpn(const ReceivePort& port) noexcept {
    return (port.qp != nullptr ? port.qp->qpn : port.wq->wqn) & 0xffffff;
}

void complete_in_error(EngineState& state, ReceivePort& port, Syndrome syndrome) noexcept {
    write_error_cqe(state, *port.completions, CqeOpcode::kResponderError, syndrome, error_qpn(port),
                    port.user_index, port.wq->consumer_index);
    ++port.wq->consumer_index;
    port.wq->used_strides = 0;
}

// A hardware error: the ring goes to ERR by itself, with a QP's own ring the QP too.
void enter_receive_error(EngineState& state, ReceivePort& port) noexcept {
    port.wq->state = WqState::kError;
    state.receive_needs_flush = true;
    flush_receive_port(state, port);
    if (port.qp == nullptr) {
        report_async_event(state.device, kEventWqFatal, port.wq->user_handle);
        return;
    }
    port.qp->state = QpState::kError;
    for (SendPort& send_port : state.send_ports) {
        if (send_port.qp == port.qp)
            flush_send_port(state, send_port);
    }
    report_async_event(state.device, kEventQpFatal, port.qp->user_handle);
}

// Refreshes WorkQueue::available. False: the doorbell is nonsense.
bool read_posted(EngineState& state, ReceivePort& port) noexcept {
    WorkQueue& wq = *port.wq;
    const auto posted = static_cast<uint16_t>(read_doorbell(wq.doorbell) - wq.consumer_index);
    if (posted <= wq.wqe_count) [[likely]] {
        wq.available = posted;
        return true;
    }
    report_client_error(state.device, ClientCheck::kDoorbellPastRing, {"WQ", wq.wqn});
    wq.consumer_index = static_cast<uint16_t>(wq.consumer_index + posted);
    wq.available = 0;
    return false;
}

// False: the frame is lost, and that was accounted for.
bool has_buffer(EngineState& state, ReceivePort& port) noexcept {
    WorkQueue& wq = *port.wq;
    if (wq.available != 0) [[likely]]
        return true;
    if (!read_posted(state, port)) {
        enter_receive_error(state, port);
        return false;
    }
    if (wq.available != 0)
        return true;
    ++state.device.port.counters.out_of_buffer;
    ++wq.out_of_buffer;
    return false;
}

Syndrome scatter_to_strides(EngineState& state, ReceivePort& port, const uint8_t* wqe,
                            const Image& image, uint32_t strides) noexcept {
    const WorkQueue& wq = *port.wq;
    if (strides > 1u << wq.log_strides)
        return Syndrome::kLocalLength;  // longer than a whole WQE
    const uint64_t start = uint64_t{wq.used_strides} << wq.log_stride_bytes;
    return scatter(state, port, wqe, image, start + (wq.two_byte_shift ? kTwoByteShift : 0));
}

// Going to RESET leaves the record as it was; the client zeroes it before RDY.
void check_reset_post(EngineState& state, ReceivePort& port) noexcept {
    if (port.qp != nullptr || port.reset_post_reported)
        return;
    const uint32_t doorbell = read_doorbell(port.wq->doorbell);
    if (doorbell == 0 || doorbell == port.wq->idle_doorbell)
        return;
    port.reset_post_reported = true;
    report_client_error(state.device, ClientCheck::kReceiveInReset, {"WQ", port.wq->wqn});
}

}  // namespace

void receive_on(EngineState& state, ReceivePort& port, const Reception& reception) noexcept {
    WorkQueue& wq = *port.wq;
    if (wq.state != WqState::kReady) [[unlikely]] {
        ++state.device.port.counters.rx_wq_not_ready;
        return;
    }
    if (!has_buffer(state, port))
        return;
    const Image image = make_image(state, wq, reception.frame);
    uint32_t strides = 0;
    if (wq.striding) {
        strides = strides_for(wq, image.length);
        const bool fits = strides <= (1u << wq.log_strides) - wq.used_strides;
        if (!fits && wq.used_strides != 0) {
            if (!skip_strides(state, port)) {
                enter_receive_error(state, port);
                return;
            }
            if (!has_buffer(state, port))
                return;
        }
    }

    const uint8_t* wqe =
        wq.buffer + size_t{wq.consumer_index & (wq.wqe_count - 1)} * wq.stride + port.first_segment;
    Syndrome syndrome = static_cast<Syndrome>(wq.injected_syndrome);
    wq.injected_syndrome = 0;
    if (syndrome == Syndrome::kNone)
        syndrome = wq.striding ? scatter_to_strides(state, port, wqe, image, strides)
                               : scatter(state, port, wqe, image, 0);
    if (syndrome != Syndrome::kNone) [[unlikely]] {
        --wq.available;
        complete_in_error(state, port, syndrome);
        enter_receive_error(state, port);
        return;
    }
    Cqe cqe = make_cqe(state, port, reception, image);
    if (!wq.striding) {
        close_wqe(wq);
    } else {
        cqe.wqe_id.set(wq.consumer_index);
        cqe.wqe_counter.set(static_cast<uint16_t>(wq.used_strides));
        cqe.byte_cnt.set(image.length | strides << kCqeStridesShift);
        wq.used_strides += strides;
        if (wq.used_strides == 1u << wq.log_strides)
            close_wqe(wq);
    }
    if (!write_receive_cqe(state, *port.completions, cqe)) [[unlikely]]
        enter_receive_error(state, port);
}

bool has_room_for(const ReceivePort& port, uint32_t length) noexcept {
    const WorkQueue& wq = *port.wq;
    if (wq.state != WqState::kReady)
        return false;
    const auto posted = static_cast<uint16_t>(read_doorbell(wq.doorbell) - wq.consumer_index);
    if (!wq.striding)
        return posted != 0;
    constexpr uint32_t kFcs = 4;
    const uint32_t strides = strides_for(wq, length + kFcs);
    return posted > 1 || (posted == 1 && strides <= (1u << wq.log_strides) - wq.used_strides);
}

uint32_t flush_receive_port(EngineState& state, ReceivePort& port) noexcept {
    WorkQueue& wq = *port.wq;
    if (!read_posted(state, port))
        return 0;
    uint32_t flushed = 0;
    for (; wq.available != 0; --wq.available, ++flushed)
        complete_in_error(state, port, Syndrome::kFlushed);
    return flushed;
}

void tend_idle_port(EngineState& state, ReceivePort& port) noexcept {
    switch (port.wq->state) {
        case WqState::kReady:
            break;
        case WqState::kError:
            flush_receive_port(state, port);
            break;
        case WqState::kReset:
            check_reset_post(state, port);
            break;
    }
}

}  // namespace softcx
