// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/flow_pattern.h"

#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tagwire::mlx5raw {
namespace {

template <typename T>
bool all_zero(const T& object) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&object);
    return std::all_of(bytes, bytes + sizeof(T), [](uint8_t byte) { return byte == 0; });
}

int refuse(const rte_flow_item& item, rte_flow_error* error, const char* message) {
    return flow_failure(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, &item, "%s", message);
}

// Value and mask of an item: without a specification, any such header.
template <typename T>
struct Operands {
    T value = {}, mask = {};
};

// The masks of rte_flow.h are for C only.
rte_flow_item_eth default_mask(const rte_flow_item_eth&) {
    rte_flow_item_eth mask = {};
    memset(&mask.hdr.dst_addr, 0xff, sizeof(mask.hdr.dst_addr));
    memset(&mask.hdr.src_addr, 0xff, sizeof(mask.hdr.src_addr));
    return mask;
}
rte_flow_item_vlan default_mask(const rte_flow_item_vlan&) {
    rte_flow_item_vlan mask = {};
    mask.hdr.vlan_tci = RTE_BE16(0x0fff);
    return mask;
}
rte_flow_item_ipv4 default_mask(const rte_flow_item_ipv4&) {
    rte_flow_item_ipv4 mask = {};
    mask.hdr.src_addr = mask.hdr.dst_addr = RTE_BE32(0xffffffff);
    return mask;
}
rte_flow_item_ipv6 default_mask(const rte_flow_item_ipv6&) {
    rte_flow_item_ipv6 mask = {};
    memset(&mask.hdr.src_addr, 0xff, sizeof(mask.hdr.src_addr));
    memset(&mask.hdr.dst_addr, 0xff, sizeof(mask.hdr.dst_addr));
    return mask;
}
rte_flow_item_tcp default_mask(const rte_flow_item_tcp&) {
    rte_flow_item_tcp mask = {};
    mask.hdr.src_port = mask.hdr.dst_port = RTE_BE16(0xffff);
    return mask;
}
rte_flow_item_udp default_mask(const rte_flow_item_udp&) {
    rte_flow_item_udp mask = {};
    mask.hdr.src_port = mask.hdr.dst_port = RTE_BE16(0xffff);
    return mask;
}

template <typename T>
int read_operands(const rte_flow_item& item, Operands<T>& out, rte_flow_error* error) {
    if (item.spec == nullptr) {
        if (item.mask != nullptr || item.last != nullptr) {
            return flow_failure(error, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_SPEC, &item,
                                "an item with a mask or a range needs a specification");
        }
        return 0;
    }
    memcpy(&out.value, item.spec, sizeof(T));
    if (item.mask != nullptr) {
        memcpy(&out.mask, item.mask, sizeof(T));
    } else {
        out.mask = default_mask(out.mask);
    }
    auto* value = reinterpret_cast<uint8_t*>(&out.value);
    const auto* mask = reinterpret_cast<const uint8_t*>(&out.mask);
    const auto* last = static_cast<const uint8_t*>(item.last);
    for (size_t i = 0; i < sizeof(T); ++i) {
        if (last != nullptr && ((last[i] ^ value[i]) & mask[i]) != 0) {
            return flow_failure(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST, &item,
                                "the device matches values under masks, not ranges");
        }
        value[i] &= mask[i];
    }
    return 0;
}

// Takes a field over and clears its mask, so that what is left is what verbs lacks.
// Addresses without a type, because headers are packed.
template <typename To>
void take(To& value, To& mask, const void* from_value, void* from_mask) {
    memcpy(&value, from_value, sizeof(To));
    memcpy(&mask, from_mask, sizeof(To));
    memset(from_mask, 0, sizeof(To));
}

class Parser {
  public:
    Parser(FlowPattern& pattern, rte_flow_error* error) : pattern_(pattern), error_(error) {}

    int parse(const rte_flow_item& item) {
        switch (item.type) {
            case RTE_FLOW_ITEM_TYPE_VOID:
                return 0;
            case RTE_FLOW_ITEM_TYPE_ETH:
                return in_layer(item, kEthernetLayer, &Parser::ethernet);
            case RTE_FLOW_ITEM_TYPE_VLAN:
                return in_layer(item, kVlanLayer, &Parser::vlan);
            case RTE_FLOW_ITEM_TYPE_IPV4:
                return in_layer(item, kL3Layer, &Parser::ipv4);
            case RTE_FLOW_ITEM_TYPE_IPV6:
                return in_layer(item, kL3Layer, &Parser::ipv6);
            case RTE_FLOW_ITEM_TYPE_TCP:
                return in_layer(item, kL4Layer, &Parser::tcp);
            case RTE_FLOW_ITEM_TYPE_UDP:
                return in_layer(item, kL4Layer, &Parser::udp);
            default:
                return flow_failure(error_, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, &item,
                                    "item type %d is not supported; there are ETH, VLAN, IPV4, "
                                    "IPV6, TCP and UDP",
                                    static_cast<int>(item.type));
        }
    }

  private:
    enum Layer { kNoLayer, kEthernetLayer, kVlanLayer, kL3Layer, kL4Layer };

    int in_layer(const rte_flow_item& item, Layer layer,
                 int (Parser::*parse)(const rte_flow_item&)) {
        if (layer <= layer_) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, &item,
                                "items must come in the order ETH, VLAN, IP, L4, each once "
                                "(the device matches one VLAN tag)");
        }
        layer_ = layer;
        return (this->*parse)(item);
    }

    int ethernet(const rte_flow_item& item) {
        Operands<rte_flow_item_eth> in;
        if (const int result = read_operands(item, in, error_); result != 0) {
            return result;
        }
        RuleMatch& to = pattern_.match;
        take(to.ethernet.dst_mac, to.ethernet_mask.dst_mac, &in.value.hdr.dst_addr,
             &in.mask.hdr.dst_addr);
        take(to.ethernet.src_mac, to.ethernet_mask.src_mac, &in.value.hdr.src_addr,
             &in.mask.hdr.src_addr);
        take(to.ethernet.ether_type, to.ethernet_mask.ether_type, &in.value.hdr.ether_type,
             &in.mask.hdr.ether_type);
        if (in.mask.has_vlan != 0 && in.value.has_vlan != 0) {
            pattern_.any_vlan = true;
            in.mask.has_vlan = 0;
        }
        if (!all_zero(in.mask)) {
            return refuse(item, error_, "the device cannot match the absence of a VLAN tag");
        }
        return 0;
    }

    int vlan(const rte_flow_item& item) {
        Operands<rte_flow_item_vlan> in;
        if (const int result = read_operands(item, in, error_); result != 0) {
            return result;
        }
        ibv_flow_eth_filter& value = pattern_.match.ethernet;
        ibv_flow_eth_filter& mask = pattern_.match.ethernet_mask;
        // The type in the ETH item is that of the tag here; the device compares the
        // one behind the tag.
        if (mask.ether_type != 0 &&
            ((value.ether_type ^ RTE_BE16(RTE_ETHER_TYPE_VLAN)) & mask.ether_type) != 0) {
            return flow_failure(error_, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_SPEC, &item,
                                "the device matches VLAN tags of type 0x8100 only");
        }
        take(value.ether_type, mask.ether_type, &in.value.hdr.eth_proto, &in.mask.hdr.eth_proto);
        take(value.vlan_tag, mask.vlan_tag, &in.value.hdr.vlan_tci, &in.mask.hdr.vlan_tci);
        pattern_.any_vlan = mask.vlan_tag == 0;
        if (!all_zero(in.mask)) {
            return refuse(item, error_, "the device does not look for a second VLAN tag");
        }
        return 0;
    }

    int ipv4(const rte_flow_item& item) {
        Operands<rte_flow_item_ipv4> in;
        if (const int result = read_operands(item, in, error_); result != 0) {
            return result;
        }
        RuleMatch& to = pattern_.match;
        to.l3 = L3::kIpv4;
        take(to.ipv4.src_ip, to.ipv4_mask.src_ip, &in.value.hdr.src_addr, &in.mask.hdr.src_addr);
        take(to.ipv4.dst_ip, to.ipv4_mask.dst_ip, &in.value.hdr.dst_addr, &in.mask.hdr.dst_addr);
        take(to.ipv4.proto, to.ipv4_mask.proto, &in.value.hdr.next_proto_id,
             &in.mask.hdr.next_proto_id);
        take(to.ipv4.tos, to.ipv4_mask.tos, &in.value.hdr.type_of_service,
             &in.mask.hdr.type_of_service);
        take(to.ipv4.ttl, to.ipv4_mask.ttl, &in.value.hdr.time_to_live, &in.mask.hdr.time_to_live);
        if (!all_zero(in.mask)) {
            return refuse(item, error_,
                          "of an IPv4 header the device matches addresses, protocol, type of "
                          "service and time to live");
        }
        return check_ether_type(item, RTE_ETHER_TYPE_IPV4);
    }

    int ipv6(const rte_flow_item& item) {
        Operands<rte_flow_item_ipv6> in;
        if (const int result = read_operands(item, in, error_); result != 0) {
            return result;
        }
        RuleMatch& to = pattern_.match;
        to.l3 = L3::kIpv6;
        take(to.ipv6.src_ip, to.ipv6_mask.src_ip, &in.value.hdr.src_addr, &in.mask.hdr.src_addr);
        take(to.ipv6.dst_ip, to.ipv6_mask.dst_ip, &in.value.hdr.dst_addr, &in.mask.hdr.dst_addr);
        take(to.ipv6.next_hdr, to.ipv6_mask.next_hdr, &in.value.hdr.proto, &in.mask.hdr.proto);
        take(to.ipv6.hop_limit, to.ipv6_mask.hop_limit, &in.value.hdr.hop_limits,
             &in.mask.hdr.hop_limits);
        // Version, traffic class, flow label: 4, 8 and 20 bits.
        const uint32_t word = rte_be_to_cpu_32(in.value.hdr.vtc_flow);
        const uint32_t word_mask = rte_be_to_cpu_32(in.mask.hdr.vtc_flow);
        to.ipv6.traffic_class = static_cast<uint8_t>(word >> 20);
        to.ipv6_mask.traffic_class = static_cast<uint8_t>(word_mask >> 20);
        to.ipv6.flow_label = rte_cpu_to_be_32(word & 0xfffff);
        to.ipv6_mask.flow_label = rte_cpu_to_be_32(word_mask & 0xfffff);
        in.mask.hdr.vtc_flow = rte_cpu_to_be_32(word_mask & 0xf0000000);
        if (!all_zero(in.mask)) {
            return refuse(item, error_,
                          "of an IPv6 header the device matches addresses, next header, traffic "
                          "class, flow label and hop limit");
        }
        return check_ether_type(item, RTE_ETHER_TYPE_IPV6);
    }

    int tcp(const rte_flow_item& item) {
        Operands<rte_flow_item_tcp> in;
        if (const int result = read_operands(item, in, error_); result != 0) {
            return result;
        }
        take_ports(L4::kTcp, in.value.hdr, in.mask.hdr);
        if (!all_zero(in.mask)) {
            return refuse(item, error_, "of a TCP header the device matches the ports");
        }
        return check_protocol(item, IPPROTO_TCP);
    }

    int udp(const rte_flow_item& item) {
        Operands<rte_flow_item_udp> in;
        if (const int result = read_operands(item, in, error_); result != 0) {
            return result;
        }
        take_ports(L4::kUdp, in.value.hdr, in.mask.hdr);
        if (!all_zero(in.mask)) {
            return refuse(item, error_, "of a UDP header the device matches the ports");
        }
        return check_protocol(item, IPPROTO_UDP);
    }

    template <typename Header>
    void take_ports(L4 l4, const Header& value, Header& mask) {
        RuleMatch& to = pattern_.match;
        to.l4 = l4;
        take(to.ports.src_port, to.ports_mask.src_port, &value.src_port, &mask.src_port);
        take(to.ports.dst_port, to.ports_mask.dst_port, &value.dst_port, &mask.dst_port);
    }

    int check_ether_type(const rte_flow_item& item, uint16_t type) {
        const ibv_flow_eth_filter& mask = pattern_.match.ethernet_mask;
        if (((pattern_.match.ethernet.ether_type ^ rte_cpu_to_be_16(type)) & mask.ether_type) !=
            0) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, &item,
                                "the EtherType before this item excludes it");
        }
        return 0;
    }

    int check_protocol(const rte_flow_item& item, uint8_t protocol) {
        const RuleMatch& m = pattern_.match;
        if (((m.ipv4.proto ^ protocol) & m.ipv4_mask.proto) != 0 ||
            ((m.ipv6.next_hdr ^ protocol) & m.ipv6_mask.next_hdr) != 0) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM, &item,
                                "the protocol in the IP item excludes this one");
        }
        return 0;
    }

    FlowPattern& pattern_;
    rte_flow_error* error_;
    Layer layer_ = kNoLayer;
};

}  // namespace

std::vector<RuleMatch> FlowPattern::matches() const {
    std::vector<RuleMatch> result = {match};
    if (any_vlan) {
        constexpr rte_be16_t kOneBit = RTE_BE16(0x0001);
        result[0].ethernet_mask.vlan_tag = kOneBit;
        result[0].ethernet.vlan_tag = 0;
        result.push_back(result[0]);
        result[1].ethernet.vlan_tag = kOneBit;
    }
    return result;
}

bool FlowPattern::may_be(HashType type) const {
    const L3 l3 = l3_of(type);
    const L4 l4 = l4_of(type);
    if (match.l3 != L3::kAny && l3 != match.l3) {
        return false;
    }
    if (match.l4 != L4::kAny) {
        return l4 == match.l4;
    }
    if (l3 == L3::kAny) {
        return true;
    }
    const uint16_t ether_type = l3 == L3::kIpv4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6;
    if (((match.ethernet.ether_type ^ rte_cpu_to_be_16(ether_type)) &
         match.ethernet_mask.ether_type) != 0) {
        return false;
    }
    if (l4 == L4::kAny) {
        return true;
    }
    const uint8_t protocol = l4 == L4::kTcp ? IPPROTO_TCP : IPPROTO_UDP;
    return ((match.ipv4.proto ^ protocol) & match.ipv4_mask.proto) == 0 &&
           ((match.ipv6.next_hdr ^ protocol) & match.ipv6_mask.next_hdr) == 0;
}

int parse_pattern(const rte_flow_item items[], FlowPattern& out, rte_flow_error* error) {
    out = FlowPattern{};
    Parser parser(out, error);
    for (const rte_flow_item* item = items; item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
        if (const int result = parser.parse(*item); result != 0) {
            return result;
        }
    }
    return 0;
}

}  // namespace tagwire::mlx5raw
