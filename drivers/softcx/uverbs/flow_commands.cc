// SPDX-License-Identifier: BSD-3-Clause
// CREATE_FLOW and DESTROY_FLOW: what a rule matches, and the queue pair it leads to.
#include <endian.h>
#include <rdma/ib_user_verbs.h>

#include <algorithm>

#include "drivers/softcx/log.h"
#include "drivers/softcx/model/capabilities.h"
#include "drivers/softcx/model/life.h"
#include "drivers/softcx/model/port.h"
#include "drivers/softcx/uverbs/command.h"
#include "drivers/softcx/uverbs/counter_commands.h"

namespace softcx {

namespace {

// enum ib_flow_spec_type of the kernel: the uapi carries the numbers only.
constexpr uint32_t kSpecEthernet = 0x20, kSpecIpv4 = 0x30, kSpecIpv6 = 0x31;
constexpr uint32_t kSpecTcp = 0x40, kSpecUdp = 0x41;
constexpr uint32_t kSpecTag = 0x1000, kSpecDrop = 0x1001, kSpecCount = 0x1003;

constexpr uint32_t kMaxSpecs = 10;  // IB_FLOW_SPEC_SUPPORT_LAYERS
constexpr uint32_t kFlowLabelBits = 0xfffff;
constexpr uint16_t kEtherTypeIpv4 = 0x0800, kEtherTypeIpv6 = 0x86dd;

// The header, then a filter of values and one of masks. Either side of the ABI may
// know more fields than the other (libibverbs sends IPv4 without its last four): a
// short filter stands for zeros, a long one must be zero where it is not known.
template <class Spec>
int read_filters(std::span<const uint8_t> bytes, Spec& spec) {
    constexpr size_t kHeader = offsetof(Spec, val);
    const size_t size = (bytes.size() - kHeader) / 2;
    if (bytes.size() < kHeader || (bytes.size() - kHeader) % 2 != 0)
        return EINVAL;
    const size_t known = std::min(size, sizeof(spec.val));
    const std::span<const uint8_t> masks = bytes.subspan(kHeader + size);
    if (!all_zero(masks.subspan(known)))
        return EOPNOTSUPP;
    spec = Spec{};
    std::memcpy(static_cast<void*>(&spec.val), bytes.data() + kHeader, known);
    std::memcpy(static_cast<void*>(&spec.mask), masks.data(), known);
    return 0;
}

template <class Spec>
int read_spec(std::span<const uint8_t> bytes, Spec& spec) {
    if (bytes.size() != sizeof(Spec))
        return EINVAL;
    std::memcpy(static_cast<void*>(&spec), bytes.data(), sizeof(Spec));
    return 0;
}

int add_ethernet(std::span<const uint8_t> bytes, FlowMatch& match) {
    ib_uverbs_flow_spec_eth spec;
    if (const int error = read_filters(bytes, spec))
        return error;
    if (match.has_ethernet)
        return EINVAL;
    match.has_ethernet = true;
    std::copy_n(spec.val.dst_mac, 6, match.dst_mac.begin());
    std::copy_n(spec.mask.dst_mac, 6, match.dst_mac_mask.begin());
    std::copy_n(spec.val.src_mac, 6, match.src_mac.begin());
    std::copy_n(spec.mask.src_mac, 6, match.src_mac_mask.begin());
    match.ether_type = be16toh(spec.val.ether_type);
    match.ether_type_mask = be16toh(spec.mask.ether_type);
    match.vlan_tci = be16toh(spec.val.vlan_tag);
    match.vlan_tci_mask = be16toh(spec.mask.vlan_tag);
    match.has_vlan = match.vlan_tci_mask != 0;
    return 0;
}

int add_ipv4(std::span<const uint8_t> bytes, FlowMatch& match) {
    ib_uverbs_flow_spec_ipv4 spec;
    if (const int error = read_filters(bytes, spec))
        return error;
    if (match.has_ipv4 || match.has_ipv6)
        return EINVAL;
    if (spec.mask.flags != 0)
        return EOPNOTSUPP;
    match.has_ipv4 = true;
    match.ipv4_src = be32toh(spec.val.src_ip);
    match.ipv4_src_mask = be32toh(spec.mask.src_ip);
    match.ipv4_dst = be32toh(spec.val.dst_ip);
    match.ipv4_dst_mask = be32toh(spec.mask.dst_ip);
    match.ip_protocol = spec.val.proto;
    match.ip_protocol_mask = spec.mask.proto;
    match.tos = spec.val.tos;
    match.tos_mask = spec.mask.tos;
    match.ttl = spec.val.ttl;
    match.ttl_mask = spec.mask.ttl;
    return 0;
}

int add_ipv6(std::span<const uint8_t> bytes, FlowMatch& match) {
    ib_uverbs_flow_spec_ipv6 spec;
    if (const int error = read_filters(bytes, spec))
        return error;
    if (match.has_ipv4 || match.has_ipv6)
        return EINVAL;
    if (spec.mask.reserved != 0)
        return EOPNOTSUPP;
    if ((be32toh(spec.mask.flow_label) & ~kFlowLabelBits) != 0)
        return EINVAL;
    match.has_ipv6 = true;
    std::copy_n(spec.val.src_ip, 16, match.ipv6_src.begin());
    std::copy_n(spec.mask.src_ip, 16, match.ipv6_src_mask.begin());
    std::copy_n(spec.val.dst_ip, 16, match.ipv6_dst.begin());
    std::copy_n(spec.mask.dst_ip, 16, match.ipv6_dst_mask.begin());
    match.flow_label = be32toh(spec.val.flow_label);
    match.flow_label_mask = be32toh(spec.mask.flow_label);
    match.ip_protocol = spec.val.next_hdr;
    match.ip_protocol_mask = spec.mask.next_hdr;
    match.tos = spec.val.traffic_class;
    match.tos_mask = spec.mask.traffic_class;
    match.ttl = spec.val.hop_limit;
    match.ttl_mask = spec.mask.hop_limit;
    return 0;
}

int add_ports(std::span<const uint8_t> bytes, uint32_t type, FlowMatch& match) {
    ib_uverbs_flow_spec_tcp_udp spec;
    if (const int error = read_filters(bytes, spec))
        return error;
    if (match.has_tcp || match.has_udp)
        return EINVAL;
    match.has_tcp = type == kSpecTcp;
    match.has_udp = type == kSpecUdp;
    match.l4_src = be16toh(spec.val.src_port);
    match.l4_src_mask = be16toh(spec.mask.src_port);
    match.l4_dst = be16toh(spec.val.dst_port);
    match.l4_dst_mask = be16toh(spec.mask.dst_port);
    return 0;
}

int add_tag(std::span<const uint8_t> bytes, Flow& flow) {
    ib_uverbs_flow_spec_action_tag spec;
    if (read_spec(bytes, spec) != 0 || flow.has_tag || spec.reserved1 != 0 ||
        spec.tag_id > kMaxFlowTag)
        return EINVAL;
    flow.has_tag = true;
    flow.tag = spec.tag_id;
    return 0;
}

int add_drop(std::span<const uint8_t> bytes, Flow& flow) {
    if (bytes.size() != sizeof(ib_uverbs_flow_spec_action_drop) || flow.drop)
        return EINVAL;
    flow.drop = true;
    return 0;
}

int add_count(Context& context, std::span<const uint8_t> bytes, Flow& flow) {
    ib_uverbs_flow_spec_action_count spec;
    if (read_spec(bytes, spec) != 0 || flow.counters != nullptr || spec.reserved1 != 0)
        return EINVAL;
    flow.counters = find_flow_counters(context, spec.handle);
    return flow.counters != nullptr ? 0 : EINVAL;
}

int add_spec(Context& context, std::span<const uint8_t> bytes, uint32_t type, Flow& flow) {
    switch (type) {
        case kSpecEthernet:
            return add_ethernet(bytes, flow.match);
        case kSpecIpv4:
            return add_ipv4(bytes, flow.match);
        case kSpecIpv6:
            return add_ipv6(bytes, flow.match);
        case kSpecTcp:
        case kSpecUdp:
            return add_ports(bytes, type, flow.match);
        case kSpecTag:
            return add_tag(bytes, flow);
        case kSpecDrop:
            return add_drop(bytes, flow);
        case kSpecCount:
            return add_count(context, bytes, flow);
        default:
            return EOPNOTSUPP;  // tunnels, ESP, MPLS, inner headers
    }
}

int read_specs(Context& context, std::span<const uint8_t> bytes, uint32_t count, Flow& flow) {
    for (uint32_t i = 0; i < count; ++i) {
        ib_uverbs_flow_spec_hdr header;
        constexpr size_t kHeaderSize = 8;
        static_assert(sizeof(header) == kHeaderSize);
        if (bytes.size() < kHeaderSize)
            return EINVAL;
        std::memcpy(static_cast<void*>(&header), bytes.data(), kHeaderSize);
        if (header.reserved != 0 || header.size < kHeaderSize || header.size > bytes.size())
            return EINVAL;
        if (const int error = add_spec(context, bytes.first(header.size), header.type, flow))
            return error;
        bytes = bytes.subspan(header.size);
    }
    return bytes.empty() ? 0 : EINVAL;
}

template <class Array>
void mask_bytes(Array& value, const Array& mask) {
    for (size_t i = 0; i < value.size(); ++i)
        value[i] &= mask[i];
}

void clear_unmasked(FlowMatch& match) {
    mask_bytes(match.dst_mac, match.dst_mac_mask);
    mask_bytes(match.src_mac, match.src_mac_mask);
    mask_bytes(match.ipv6_src, match.ipv6_src_mask);
    mask_bytes(match.ipv6_dst, match.ipv6_dst_mask);
    match.ether_type &= match.ether_type_mask;
    match.vlan_tci &= match.vlan_tci_mask;
    match.ipv4_src &= match.ipv4_src_mask;
    match.ipv4_dst &= match.ipv4_dst_mask;
    match.ip_protocol &= match.ip_protocol_mask;
    match.tos &= match.tos_mask;
    match.ttl &= match.ttl_mask;
    match.flow_label &= match.flow_label_mask;
    match.l4_src &= match.l4_src_mask;
    match.l4_dst &= match.l4_dst_mask;
}

// Rules that match the same share an entry of the card: they cannot differ in what happens to
// the frame besides its destination.
bool conflicts(const Flow& made, const Flow& other) {
    if (made.type != other.type || made.priority != other.priority || made.match != other.match)
        return false;
    return made.drop != other.drop || (made.has_tag && made.tag != other.tag);
}

// An exact EtherType must agree with the layer above it.
bool layers_agree(const FlowMatch& match) {
    if (!match.has_ethernet || match.ether_type_mask != 0xffff)
        return true;
    if (match.has_ipv4)
        return match.ether_type == kEtherTypeIpv4;
    if (match.has_ipv6)
        return match.ether_type == kEtherTypeIpv6;
    return true;
}

int check_attributes(const ib_uverbs_create_flow& request, size_t specs_size) {
    const ib_uverbs_flow_attr& attributes = request.flow_attr;
    if (request.comp_mask != 0 || attributes.num_of_specs > kMaxSpecs ||
        attributes.size != specs_size || attributes.reserved[0] != 0 || attributes.reserved[1] != 0)
        return EINVAL;
    if (attributes.type > static_cast<uint32_t>(FlowType::kSniffer) ||
        attributes.port > kPortNumber)
        return EINVAL;
    if (attributes.flags != 0)
        return EOPNOTSUPP;  // don't-trap and egress rules
    if (attributes.priority > kMaxFlowPriority)
        return ENOSPC;
    if (attributes.type != static_cast<uint32_t>(FlowType::kNormal) && attributes.num_of_specs != 0)
        return EINVAL;
    return 0;
}

void log_rule(const Device& device, const Flow& flow) {
    const FlowMatch& match = flow.match;
    const MacAddress &mac = match.dst_mac, &mask = match.dst_mac_mask;
    log(LogLevel::kDebug,
        "%s: flow 0x%x type %u priority %u to QP 0x%x: destination "
        "%02x:%02x:%02x:%02x:%02x:%02x/%02x:%02x:%02x:%02x:%02x:%02x type 0x%x/0x%x "
        "vlan 0x%x/0x%x%s%s%s%s",
        device.name.c_str(), flow.handle, static_cast<unsigned>(flow.type), flow.priority,
        flow.qp->qpn, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], mask[0], mask[1], mask[2],
        mask[3], mask[4], mask[5], match.ether_type, match.ether_type_mask, match.vlan_tci,
        match.vlan_tci_mask, match.has_ipv4 ? " ipv4" : "", match.has_ipv6 ? " ipv6" : "",
        match.has_tcp ? " tcp" : "", match.has_udp ? " udp" : "");
}

}  // namespace

int create_flow(const Command& command) {
    constexpr size_t kHeader = sizeof(ib_uverbs_create_flow);
    ib_uverbs_create_flow request;
    if (const int error = read_request(command.request.first(kHeader), request))
        return error;
    const std::span<const uint8_t> specs = command.request.subspan(kHeader);
    if (const int error = check_attributes(request, specs.size()))
        return error;
    QueuePair* qp = find_qp(command.context, request.qp_handle);
    if (qp == nullptr)
        return EINVAL;

    auto flow = std::make_unique<Flow>();
    if (const int error = read_specs(command.context, specs, request.flow_attr.num_of_specs, *flow))
        return error;
    if (!layers_agree(flow->match) || (flow->drop && flow->has_tag))
        return EINVAL;
    clear_unmasked(flow->match);
    flow->type = static_cast<FlowType>(request.flow_attr.type);
    flow->priority = request.flow_attr.priority;
    Device& device = command.device();
    for (const auto& [number, other] : device.flows)
        if (conflicts(*flow, *other))
            return EEXIST;
    if (const int error = bind_counters(command.vendor_request, flow->counters))
        return error;
    flow->handle = allocate_flow_number(device);
    flow->qp = qp;
    flow->sequence = device.next_flow_sequence++;
    ++qp->use_count;
    if (flow->counters != nullptr)
        ++flow->counters->use_count;
    const uint32_t number = flow->handle;
    device.flows.emplace(number, std::move(flow));
    device.generation.fetch_add(1, std::memory_order_release);
    log_rule(device, *device.flows.at(number));

    ib_uverbs_create_flow_resp response{};
    response.flow_handle = command.context.add(ObjectKind::kFlow, number);
    write_response(command.response, response);
    return 0;
}

int destroy_flow(const Command& command) {
    ib_uverbs_destroy_flow request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.comp_mask != 0)
        return EINVAL;
    const Flow* flow = find_flow(command.context, request.flow_handle);
    if (flow == nullptr)
        return ENOENT;
    if (const int error = destroy_flow(command.device(), flow->handle))
        return error;
    command.context.handles.erase(request.flow_handle);
    return 0;
}

}  // namespace softcx
