// SPDX-License-Identifier: BSD-3-Clause
// Receive side scaling, the part that is arithmetic: key, redirection table, hash
// types. What the device is told is in steering.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tagwire::mlx5raw {

inline constexpr size_t kRssKeyLength = 40;

using RssKey = std::array<uint8_t, kRssKeyLength>;

// The key of Microsoft's "Verifying the RSS Hash Calculation": a NIC with it can be
// checked against the published vectors.
inline constexpr RssKey kDefaultRssKey = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

// One hash QP each. A device can't hash TCP and UDP ports, or IPv4 and IPv6
// addresses, in one QP; kEthernet takes what no other does and does not hash.
enum class HashType : uint8_t {
    kIpv4Tcp,
    kIpv4Udp,
    kIpv6Tcp,
    kIpv6Udp,
    kIpv4,
    kIpv6,
    kEthernet,
};
inline constexpr size_t kHashTypeCount = 7;

// RTE_ETH_RSS_* that ask for the type (any of them does).
uint64_t rss_types_of(HashType type);

// IBV_RX_HASH_* of its hash QP.
uint64_t hash_fields_of(HashType type);

// All RTE_ETH_RSS_* that this driver understands.
uint64_t supported_rss_types();

struct RssConfig {
    uint64_t types = 0;  // RTE_ETH_RSS_*; zero: RSS is off
    RssKey key = kDefaultRssKey;
    std::vector<uint16_t> table;  // queue of each entry, size a power of two

    // Every queue in turn.
    void spread(uint32_t size, uint16_t queues);
};

// Toeplitz hash of `input` (addresses and ports in network order), bit 31 first.
uint32_t toeplitz(std::span<const uint8_t> key, std::span<const uint8_t> input);

}  // namespace tagwire::mlx5raw
