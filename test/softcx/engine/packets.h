// SPDX-License-Identifier: BSD-3-Clause
// Frames for the engine's tests, with checksums made the plain way, and the checks
// that a receiver's stack would do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/softcx/engine/rig.h"

namespace softcx::test {

struct PacketOptions {
    MacAddress dst{0x02, 0, 0, 0, 0xdd, 1};
    MacAddress src{0x02, 0, 0, 0, 0xdd, 2};
    std::vector<uint16_t> vlans;
    bool ipv6 = false;
    uint8_t protocol = 17;  // UDP; 6: TCP; others have no header of their own
    std::string src_ip = "10.0.0.1";
    std::string dst_ip = "10.0.0.2";
    uint16_t src_port = 1000;
    uint16_t dst_port = 2000;
    uint8_t tcp_flags = 0x18;
    Bytes payload = pattern(32);
    uint16_t fragment = 0;  // IPv4 flags and offset
};

Bytes make_packet(const PacketOptions& options);

// RFC 1071 byte by byte, as the oracle: the final, complemented checksum.
uint16_t slow_checksum(const Bytes& bytes);

bool has_good_ipv4_checksum(const Bytes& frame, size_t l3 = 14);
bool has_good_l4_checksum(const Bytes& frame, size_t l3 = 14);

}  // namespace softcx::test
