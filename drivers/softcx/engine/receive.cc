// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/receive.h"

#include <array>

#include "drivers/softcx/engine/scatter.h"

namespace softcx {

namespace {

constexpr uint32_t kHeadersOutsideMtu = kEthernetHeader + 2 * kVlanTag;

bool qp_receives(QpState qp_state) noexcept {
    switch (qp_state) {
        case QpState::kRtr:
        case QpState::kRts:
        case QpState::kSqd:
        case QpState::kSqe:
            return true;
        case QpState::kReset:
        case QpState::kInit:
        case QpState::kError:
            return false;
    }
    return false;
}

void deliver(EngineState& state, Destination& destination, const ParsedFrame& frame,
             const FrameChecksums& checksums, uint32_t tag) noexcept {
    Reception reception{.frame = frame, .checksums = checksums, .tag = tag};
    ReceivePort* port = destination.own;
    if (!destination.table.empty()) {
        const RssHash hash = hash_frame(*destination.toeplitz, destination.fields, frame);
        reception.hash = hash.value;
        reception.hash_type = hash.type;
        port = destination.table[hash.value & (destination.table.size() - 1)];
    } else if (port == nullptr || !qp_receives(destination.qp->state)) {
        ++state.device.port.counters.rx_wq_not_ready;
        return;
    }
    receive_on(state, *port, reception);
}

// A multicast frame goes to every rule of the level that takes it, but to a QP once.
void deliver_multicast(EngineState& state, std::span<const CompiledFlow> rules,
                       const CompiledFlow* first, uint64_t mac, const ParsedFrame& frame,
                       const FrameChecksums& checksums) noexcept {
    constexpr size_t kMostReceivers = 64;
    std::array<const Destination*, kMostReceivers> receivers;
    size_t count = 0;
    for (const CompiledFlow* rule = first; rule != rules.data() + rules.size(); ++rule) {
        if (rule->level != first->level || count == kMostReceivers)
            return;
        if (rule->destination == nullptr || !matches(*rule, mac, frame))
            continue;
        bool seen = false;
        for (size_t i = 0; i < count; ++i)
            seen |= receivers[i] == rule->destination;
        if (seen)
            continue;
        receivers[count++] = rule->destination;
        deliver(state, *rule->destination, frame, checksums, rule->tag);
    }
}

bool passes_mac(Port& port, uint32_t length) noexcept {
    if (length < kEthernetHeader) [[unlikely]] {
        ++port.counters.rx_too_short;
        return false;
    }
    if (length > port.mtu + kHeadersOutsideMtu) [[unlikely]] {
        ++port.counters.rx_too_long;
        return false;
    }
    return true;
}

}  // namespace

void receive_from_wire(EngineState& state, const uint8_t* data, uint32_t length) noexcept {
    if (!state.flows.sniffers().empty()) {
        if (!passes_mac(state.device.port, length))
            return;
        deliver_to_sniffers(state, data, length);
    }
    receive_frame(state, data, length);
}

void receive_frame(EngineState& state, const uint8_t* data, uint32_t length) noexcept {
    Port& port = state.device.port;
    if (!passes_mac(port, length))
        return;
    ++port.counters.rx_packets;
    port.counters.rx_bytes += length;
    const bool multicast = (data[0] & 1) != 0;
    port.counters.rx_multicast += multicast ? 1 : 0;

    const ParsedFrame frame = parse_frame(data, length);
    uint64_t mac;
    std::memcpy(&mac, data, sizeof(mac));
    if (std::endian::native == std::endian::big)
        mac = swap_bytes(mac);
    const std::span<const CompiledFlow> rules = state.flows.rules();
    for (const CompiledFlow& rule : rules) {
        if (!matches(rule, mac, frame))
            continue;
        if (rule.destination == nullptr) {
            ++port.counters.rx_flow_drop;
            return;
        }
        const FrameChecksums checksums = validate_checksums(frame);
        if (multicast)
            deliver_multicast(state, rules, &rule, mac, frame, checksums);
        else
            deliver(state, *rule.destination, frame, checksums, rule.tag);
        return;
    }
    ++port.counters.rx_no_flow;
}

void deliver_to_sniffers(EngineState& state, const uint8_t* data, uint32_t length) noexcept {
    const ParsedFrame frame = parse_frame(data, length);
    const FrameChecksums checksums = validate_checksums(frame);
    for (Destination* sniffer : state.flows.sniffers())
        deliver(state, *sniffer, frame, checksums, 0);
}

}  // namespace softcx
