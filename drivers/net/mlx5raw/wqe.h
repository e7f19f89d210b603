// SPDX-License-Identifier: BSD-3-Clause
// Builds send WQEs. Pure: memory in, memory out.
//
// Without an inline header:  control | Ethernet | data ...
// With one (18 bytes):       control | Ethernet, first 2 bytes | 16 bytes | data ...
#pragma once

#include <cstdint>
#include <cstring>

#include "drivers/net/mlx5raw/prm.h"

namespace tagwire::mlx5raw {

inline constexpr uint32_t kHeaderOctowords = 2;        // control and Ethernet
inline constexpr uint32_t kInlineHeaderOctowords = 3;  // and the rest of 18 bytes

// Most data segments of one packet.
inline constexpr uint32_t kMaxTxSegments = kMaxOctowords - kInlineHeaderOctowords;

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
inline void write_control(ControlSegment& segment, uint16_t index, uint32_t qpn_shifted,
                          uint32_t octowords) {
    segment.opmod_index_opcode = Be32::of(uint32_t{index} << 8 | kOpcodeSend);
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
