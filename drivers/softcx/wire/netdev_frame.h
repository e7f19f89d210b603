// SPDX-License-Identifier: BSD-3-Clause
// From what the kernel hands over to a frame as it would be on a cable. The kernel leaves
// work to the hardware (a checksum to finish, a large frame to cut) and keeps a VLAN tag
// apart; on a veth no hardware ever does it.
#pragma once

#include <cstdint>
#include <optional>

#include "drivers/softcx/engine/segmentation.h"

namespace softcx {

// What PACKET_VNET_HDR puts before each frame, in host order (virtio 1.2, 5.1.6; the header
// linux/virtio_net.h is not for C++).
struct OffloadHeader {
    uint8_t flags;
    uint8_t kind;
    uint16_t header_length;  // a hint, of no use here
    uint16_t segment_size;
    uint16_t checksum_start;
    uint16_t checksum_offset;
};
static_assert(sizeof(OffloadHeader) == 10);
inline constexpr uint8_t kNeedsChecksum = 1;
inline constexpr uint8_t kNotLarge = 0, kLargeTcp4 = 1, kLargeTcp6 = 4, kLargeUdp = 5;
inline constexpr uint8_t kLargeEcn = 0x80;  // with one of the others

struct VlanTag {
    uint16_t protocol;  // TPID
    uint16_t control;   // TCI
};

// Finishes a checksum that the kernel began (kNeedsChecksum): the field holds the
// sum of the pseudo header. False: the field is outside the frame.
bool finish_checksum(uint8_t* frame, uint32_t length, uint32_t start, uint32_t offset) noexcept;

// Puts the tag in: `frame` has 4 bytes of room in front of it, and begins there afterwards.
// Returns the new length.
uint32_t insert_tag(uint8_t* frame, uint32_t length, VlanTag tag) noexcept;

// How a large frame is cut. Nothing: its meta data does not fit it, or it is of a kind that
// Ethernet cards do not cut.
std::optional<LargeFrame> plan_segments(const uint8_t* frame, uint32_t length,
                                        const OffloadHeader& header) noexcept;

}  // namespace softcx
