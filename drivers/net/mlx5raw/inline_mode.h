// SPDX-License-Identifier: BSD-3-Clause
// What the device wants of a send WQE: how much of each packet must be copied into it,
// and whether the device can insert VLAN tags. Verbs have no attribute for either, so
// the firmware is asked through DevX; without DevX (an old kernel, no permission,
// softcx), the part says it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>

namespace tagwire::mlx5raw {

struct SendNeeds {
    uint32_t min_inline = 0;  // bytes
    bool vlan_insert = false;

    bool operator==(const SendNeeds&) const = default;
};

SendNeeds query_send_needs(ibv_context* context, uint32_t part_id);

// The parts of it that need no device.
SendNeeds send_needs_of_part(uint32_t part_id);
// Answers to QUERY_HCA_CAP (Ethernet offloads) and QUERY_NIC_VPORT_CONTEXT as the device
// writes them; nothing when the first refers to the second and that is empty, or when
// it holds a mode that is not known.
std::optional<SendNeeds> send_needs_of_firmware(std::span<const uint8_t> ethernet_caps,
                                                std::span<const uint8_t> vport_context);

}  // namespace tagwire::mlx5raw
