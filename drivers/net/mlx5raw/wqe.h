// SPDX-License-Identifier: BSD-3-Clause
// Builds send WQEs. Pure: memory in, memory out.
//
// One packet:          control | Ethernet | data ...
// with inline header:  control | Ethernet, 2 bytes of the header | the rest | data ...
// Several packets:     control | Ethernet | per packet: data, or count and bytes
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <cstring>

#include "drivers/net/mlx5raw/prm.h"

namespace tagwire::mlx5raw {

inline constexpr uint32_t kShortestPacket = 14;  // an Ethernet header

inline constexpr uint32_t kHeaderOctowords = 2;  // control and Ethernet
// The longest header that goes inline: L2 to L4 with options, and a VLAN tag.
inline constexpr uint32_t kMaxInlineHeader = 192;
// The longest one that is copied of every packet; a VLAN tag may come on top.
inline constexpr uint32_t kMaxInlineMin = 128;

// Octowords of the Ethernet segment with `size` bytes of inline header.
constexpr uint32_t ethernet_octowords(uint32_t size) {
    constexpr uint32_t kStart = offsetof(EthernetSegment, inline_start);
    return size <= kOctoword - kStart ? 1 : (kStart + size + kOctoword - 1) / kOctoword;
}

// Most data segments of one packet, whatever its header.
inline constexpr uint32_t kMaxTxSegments = kMaxOctowords - 1 - ethernet_octowords(kMaxInlineHeader);

// Packets that are copied whole: as long as a WQE of them may be.
inline constexpr uint32_t kMaxInlineData =
    (kMaxOctowords - kHeaderOctowords) * kOctoword - sizeof(uint32_t);

// Octowords of an inline packet in a multi-packet send: four bytes of count, then data.
constexpr uint32_t inline_octowords(uint32_t length) {
    return (sizeof(uint32_t) + length + kOctoword - 1) / kOctoword;
}

constexpr uint32_t blocks_of(uint32_t octowords) {
    return (octowords + 3) / 4;
}

// Offload flags of an mbuf (bits 52 to 54: L4 request, then IP) to those of the WQE.
// Indices 2, 6 ask for SCTP, which the device does not sum.
inline constexpr unsigned kTxChecksumShift = 52;
inline constexpr uint8_t kTxChecksum[8] = {0,           kChecksumL4,
                                           0,           kChecksumL4,
                                           kChecksumL3, kChecksumL3 | kChecksumL4,
                                           kChecksumL3, kChecksumL3 | kChecksumL4};

constexpr uint8_t tx_checksum_flags(uint64_t mbuf_flags) {
    return kTxChecksum[(mbuf_flags >> kTxChecksumShift) & 7];
}

// `qpn_shifted` is the queue pair's number << 8.
inline void write_control(ControlSegment& segment, uint8_t opcode, uint16_t index,
                          uint32_t qpn_shifted, uint32_t octowords) {
    segment.opmod_index_opcode = Be32::of(uint32_t{index} << 8 | opcode);
    segment.qpn_ds = Be32::of(qpn_shifted | octowords);
    // signature, two reserved bytes and fm_ce_se as one word
    const uint32_t flags = uint32_t{kCompletionFirstError} << 24;
    memcpy(&segment.signature, &flags, sizeof(flags));
    segment.immediate = 0;
}

inline void request_completion(ControlSegment& segment) {
    segment.fm_ce_se = kCompletionAlways;
}

inline void write_ethernet(EthernetSegment& segment, uint8_t checksum_flags) {
    segment = EthernetSegment{};
    segment.checksum_flags = checksum_flags;
}

inline void write_data(DataSegment& segment, uint32_t length, Be32 lkey, uint64_t address) {
    segment.byte_count = Be32::of(length);
    segment.lkey = lkey;
    segment.address = Be64::of(address);
}

// The doorbell register takes the first eight bytes of the last WQE as they lie in
// memory. Read through memcpy: the WQE was written as other types.
inline uint64_t doorbell_value(const void* wqe) {
    uint64_t value;
    memcpy(&value, wqe, sizeof(value));
    return value;
}

}  // namespace tagwire::mlx5raw
