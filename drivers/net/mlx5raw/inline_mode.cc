// SPDX-License-Identifier: BSD-3-Clause
// Layouts: PRM, "QUERY_HCA_CAP" (per_protocol_networking_offload_caps) and
// "QUERY_NIC_VPORT_CONTEXT".
#include "drivers/net/mlx5raw/inline_mode.h"

#include <infiniband/mlx5dv.h>

#include <array>

#include "drivers/net/mlx5raw/prm.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint16_t kQueryHcaCap = 0x100;
constexpr uint16_t kEthernetOffloads = 1;  // capability type
constexpr uint16_t kCurrent = 1;           // not the maximum
constexpr uint16_t kQueryNicVportContext = 0x754;

constexpr size_t kAnswerHeader = 16;  // status, syndrome
constexpr size_t kCapabilityBytes = 0x1000;
constexpr size_t kVportContextBytes = 0x100;

// wqe_inline_mode of the capabilities.
enum : uint8_t { kCapL2 = 0, kCapVportContext = 1, kCapNotRequired = 2 };
// min_wqe_inline_mode of the vport context.
enum : uint8_t { kVportNone = 0, kVportL2 = 1, kVportIp = 2, kVportTcpUdp = 3 };

constexpr uint32_t kInlineIp = kInlineL2 + 40;      // IPv6
constexpr uint32_t kInlineTcpUdp = kInlineIp + 20;  // TCP

template <size_t kSize>
bool ask(ibv_context* context, uint16_t opcode, uint16_t modifier,
         std::array<uint8_t, kSize>& answer) {
    struct {
        Be16 opcode, user;
        Be16 reserved, modifier;
        uint8_t rest[8];
    } request = {};
    static_assert(sizeof(request) == 16);
    request.opcode = Be16::of(opcode);
    request.modifier = Be16::of(modifier);
    return mlx5dv_devx_general_cmd(context, &request, sizeof(request), answer.data(), kSize) == 0 &&
           answer[0] == 0;
}

}  // namespace

// PCI device identifiers of ConnectX-4 and ConnectX-4 Lx, physical and virtual functions.
// Later parts need no header and insert tags.
SendNeeds send_needs_of_part(uint32_t part_id) {
    const bool old = part_id >= 0x1013 && part_id <= 0x1016;
    return {old ? kInlineL2 : 0, !old};
}

std::optional<SendNeeds> send_needs_of_firmware(std::span<const uint8_t> ethernet_caps,
                                                std::span<const uint8_t> vport_context) {
    if (ethernet_caps.size() < 4) {
        return {};
    }
    const bool vlan_insert = (ethernet_caps[0] & 0x01) != 0;
    switch (ethernet_caps[2] >> 4 & 3) {
        case kCapL2:
            return SendNeeds{kInlineL2, vlan_insert};
        case kCapNotRequired:
            return SendNeeds{0, vlan_insert};
        case kCapVportContext:
            break;
        default:
            return {};
    }
    if (vport_context.empty()) {
        return {};
    }
    switch (vport_context[0] & 7) {
        case kVportNone:
            return SendNeeds{0, vlan_insert};
        case kVportL2:
            return SendNeeds{kInlineL2, vlan_insert};
        case kVportIp:
            return SendNeeds{kInlineIp, vlan_insert};
        case kVportTcpUdp:
            return SendNeeds{kInlineTcpUdp, vlan_insert};
        default:
            return {};
    }
}

SendNeeds query_send_needs(ibv_context* context, uint32_t part_id) {
    std::array<uint8_t, kAnswerHeader + kCapabilityBytes> caps = {};
    if (!ask(context, kQueryHcaCap, kEthernetOffloads << 1 | kCurrent, caps)) {
        return send_needs_of_part(part_id);
    }
    std::array<uint8_t, kAnswerHeader + kVportContextBytes> vport = {};
    std::span<const uint8_t> vport_context;
    if (ask(context, kQueryNicVportContext, 0, vport)) {
        vport_context = std::span<const uint8_t>(vport).subspan(kAnswerHeader);
    }
    return send_needs_of_firmware(std::span<const uint8_t>(caps).subspan(kAnswerHeader),
                                  vport_context)
        .value_or(send_needs_of_part(part_id));
}

}  // namespace tagwire::mlx5raw
