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

void count(const CompiledFlow& rule, uint32_t length) noexcept {
    if (rule.counters == nullptr)
        return;
    ++rule.counters->packets;
    rule.counters->bytes += length;
}

// A multicast frame goes to every rule of the level that takes it, and a unicast one to those
// that match the same as the first, but to a QP once.
void deliver_to_many(EngineState& state, std::span<const CompiledFlow> rules,
                     const CompiledFlow* first, uint64_t mac, const ParsedFrame& frame,
                     const FrameChecksums& checksums) noexcept {
    const bool multicast = (frame.data[0] & 1) != 0;
    constexpr size_t kMostReceivers = 64;
    std::array<const Destination*, kMostReceivers> receivers;
    size_t known = 0;
    for (const CompiledFlow* rule = first; rule != rules.data() + rules.size(); ++rule) {
        if (rule->level != first->level || known == kMostReceivers)
            return;
        if (rule->destination == nullptr ||
            (multicast ? !matches(*rule, mac, frame) : rule->twins != first->twins))
            continue;
        count(*rule, frame.length);
        bool seen = false;
        for (size_t i = 0; i < known; ++i)
            seen |= receivers[i] == rule->destination;
        if (seen)
            continue;
        receivers[known++] = rule->destination;
        deliver(state, *rule->destination, frame, checksums, rule->tag);
    }
}

// The first eight bytes, as CompiledFlow compares them.
uint64_t addresses_of(const uint8_t* data) noexcept {
    uint64_t number;
    std::memcpy(&number, data, sizeof(number));
    return std::endian::native == std::endian::big ? swap_bytes(number) : number;
}

bool has_room_for(const Destination& destination, const ParsedFrame& frame) noexcept {
    const ReceivePort* port = destination.own;
    if (!destination.table.empty()) {
        const RssHash hash = hash_frame(*destination.toeplitz, destination.fields, frame);
        port = destination.table[hash.value & (destination.table.size() - 1)];
    } else if (port == nullptr || !qp_receives(destination.qp->state)) {
        return false;
    }
    return has_room_for(*port, frame.length);
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

bool can_receive(EngineState& state, const uint8_t* data, uint32_t length) noexcept {
    const std::span<const CompiledFlow> rules = state.flows.rules();
    if (rules.empty() && state.flows.sniffers().empty())
        return false;  // nobody listens yet
    if (length < kEthernetHeader)
        return true;
    const ParsedFrame frame = parse_frame(data, length);
    for (const Destination* sniffer : state.flows.sniffers())
        if (!has_room_for(*sniffer, frame))
            return false;
    const uint64_t mac = addresses_of(data);
    const CompiledFlow* first = nullptr;
    for (const CompiledFlow& rule : rules) {
        if (first != nullptr && rule.level != first->level)
            break;
        if (!matches(rule, mac, frame))
            continue;
        if (rule.destination != nullptr && !has_room_for(*rule.destination, frame))
            return false;
        if ((data[0] & 1) == 0)
            break;
        first = first != nullptr ? first : &rule;
    }
    return true;
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
    const uint64_t mac = addresses_of(data);
    const std::span<const CompiledFlow> rules = state.flows.rules();
    for (const CompiledFlow& rule : rules) {
        if (!matches(rule, mac, frame))
            continue;
        if (rule.destination == nullptr) {
            count(rule, length);
            ++port.counters.rx_flow_drop;
            return;
        }
        const FrameChecksums checksums = validate_checksums(frame);
        if (multicast || rule.twins != 0) {
            deliver_to_many(state, rules, &rule, mac, frame, checksums);
        } else {
            count(rule, length);
            deliver(state, *rule.destination, frame, checksums, rule.tag);
        }
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
