// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/flow_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "drivers/softcx/engine/state.h"

namespace softcx {

namespace {

constexpr uint32_t kLeftoversLevel = 0x10000;  // behind every priority of 16 bits
constexpr uint64_t kMulticastBit = 1;

bool masked_equal(const uint8_t* field, const uint8_t* value, const uint8_t* mask,
                  size_t bytes) noexcept {
    for (size_t i = 0; i < bytes; ++i) {
        if (((field[i] ^ value[i]) & mask[i]) != 0)
            return false;
    }
    return true;
}

template <typename T>
bool masked_equal(T field, T value, T mask) noexcept {
    return ((field ^ value) & mask) == 0;
}

bool is_mac_only(const FlowMatch& match) noexcept {
    return !match.has_vlan && !match.has_ipv4 && !match.has_ipv6 && !match.has_tcp &&
           !match.has_udp &&
           (!match.has_ethernet ||
            (match.ether_type_mask == 0 && mac_number(match.src_mac_mask) == 0));
}

bool matches_ipv4(const FlowMatch& match, const uint8_t* ip) noexcept {
    return masked_equal(load_be32(ip + 12), match.ipv4_src, match.ipv4_src_mask) &&
           masked_equal(load_be32(ip + 16), match.ipv4_dst, match.ipv4_dst_mask) &&
           masked_equal(ip[1], match.tos, match.tos_mask) &&
           masked_equal(ip[8], match.ttl, match.ttl_mask);
}

bool matches_ipv6(const FlowMatch& match, const uint8_t* ip) noexcept {
    const auto traffic_class = static_cast<uint8_t>(load_be16(ip) >> 4);
    return masked_equal(ip + 8, match.ipv6_src.data(), match.ipv6_src_mask.data(), 16) &&
           masked_equal(ip + 24, match.ipv6_dst.data(), match.ipv6_dst_mask.data(), 16) &&
           masked_equal(traffic_class, match.tos, match.tos_mask) &&
           masked_equal(load_be32(ip) & 0xfffff, match.flow_label, match.flow_label_mask) &&
           masked_equal(ip[7], match.ttl, match.ttl_mask);
}

}  // namespace

void FlowTable::clear() noexcept {
    entries_.clear();
    rules_.clear();
    sniffers_.clear();
}

void FlowTable::add(const Flow& flow, Destination* destination) {
    CompiledFlow rule{
        .destination = destination, .tag = flow.has_tag ? flow.tag : 0, .counters = flow.counters};
    switch (flow.type) {
        case FlowType::kNormal:
            rule.level = flow.priority;
            if (flow.match.has_ethernet) {
                rule.mac_mask = mac_number(flow.match.dst_mac_mask);
                rule.mac_value = mac_number(flow.match.dst_mac) & rule.mac_mask;
            }
            rule.match = is_mac_only(flow.match) ? nullptr : &flow.match;
            break;
        case FlowType::kAllDefault:
            rule.level = kLeftoversLevel;
            break;
        case FlowType::kMulticastDefault:
            rule.level = kLeftoversLevel;
            rule.mac_mask = kMulticastBit;
            rule.mac_value = kMulticastBit;
            break;
        case FlowType::kSniffer:
            if (destination != nullptr)
                sniffers_.push_back(destination);
            return;
    }
    entries_.push_back({rule, flow.sequence});
}

void FlowTable::sort() {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
        return a.rule.level != b.rule.level ? a.rule.level < b.rule.level : a.sequence < b.sequence;
    });
    rules_.clear();
    for (const Entry& entry : entries_)
        rules_.push_back(entry.rule);
    find_twins();
}

// The card has one entry for rules that match the same; a second one adds its destination to
// the entry, and has its tag.
void FlowTable::find_twins() {
    struct ByMatch {
        bool operator()(const CompiledFlow* a, const CompiledFlow* b) const {
            const auto key = [](const CompiledFlow& rule) {
                return std::tuple(rule.level, rule.mac_mask, rule.mac_value,
                                  rule.destination == nullptr, rule.match != nullptr);
            };
            if (key(*a) != key(*b))
                return key(*a) < key(*b);
            return a->match != nullptr && *a->match < *b->match;
        }
    };
    std::map<const CompiledFlow*, CompiledFlow*, ByMatch> firsts;
    uint32_t groups = 0;
    for (CompiledFlow& rule : rules_) {
        const auto [found, is_first] = firsts.try_emplace(&rule, &rule);
        if (is_first)
            continue;
        CompiledFlow& first = *found->second;
        if (first.twins == 0)
            first.twins = ++groups;
        rule.twins = first.twins;
        rule.tag = first.tag;
    }
}

bool matches_headers(const FlowMatch& match, const ParsedFrame& frame) noexcept {
    if (match.has_ethernet &&
        (!masked_equal(frame.ether_type, match.ether_type, match.ether_type_mask) ||
         !masked_equal(frame.data + 6, match.src_mac.data(), match.src_mac_mask.data(), 6)))
        return false;
    if (match.has_vlan &&
        (!frame.has_vlan || !masked_equal(frame.vlan_tci, match.vlan_tci, match.vlan_tci_mask)))
        return false;
    if (match.has_ipv4 || match.has_ipv6) {
        if (frame.l3 != (match.has_ipv4 ? CqeL3::kIpv4 : CqeL3::kIpv6) ||
            !masked_equal(frame.ip_protocol, match.ip_protocol, match.ip_protocol_mask))
            return false;
        const uint8_t* ip = frame.data + frame.l3_offset;
        if (match.has_ipv4 ? !matches_ipv4(match, ip) : !matches_ipv6(match, ip))
            return false;
    }
    if (match.has_tcp || match.has_udp) {
        if (match.has_tcp ? !frame.is_tcp() : !frame.is_udp())
            return false;
        return masked_equal(frame.source_port, match.l4_src, match.l4_src_mask) &&
               masked_equal(frame.destination_port, match.l4_dst, match.l4_dst_mask);
    }
    return true;
}

}  // namespace softcx
