// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/rss.h"

#include <infiniband/verbs.h>
#include <rte_ethdev.h>

namespace tagwire::mlx5raw {

uint64_t rss_types_of(HashType type) {
    switch (type) {
        case HashType::kIpv4Tcp:
            return RTE_ETH_RSS_NONFRAG_IPV4_TCP;
        case HashType::kIpv4Udp:
            return RTE_ETH_RSS_NONFRAG_IPV4_UDP;
        case HashType::kIpv6Tcp:
            return RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_IPV6_TCP_EX;
        case HashType::kIpv6Udp:
            return RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_UDP_EX;
        case HashType::kIpv4:
            return RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER;
        case HashType::kIpv6:
            return RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER |
                   RTE_ETH_RSS_IPV6_EX;
        case HashType::kEthernet:
            return 0;
    }
    return 0;
}

uint64_t hash_fields_of(HashType type) {
    constexpr uint64_t kIpv4 = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4;
    constexpr uint64_t kIpv6 = IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6;
    constexpr uint64_t kTcp = IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP;
    constexpr uint64_t kUdp = IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
    switch (type) {
        case HashType::kIpv4Tcp:
            return kIpv4 | kTcp;
        case HashType::kIpv4Udp:
            return kIpv4 | kUdp;
        case HashType::kIpv6Tcp:
            return kIpv6 | kTcp;
        case HashType::kIpv6Udp:
            return kIpv6 | kUdp;
        case HashType::kIpv4:
            return kIpv4;
        case HashType::kIpv6:
            return kIpv6;
        case HashType::kEthernet:
            return 0;
    }
    return 0;
}

uint64_t supported_rss_types() {
    uint64_t types = 0;
    for (size_t i = 0; i < kHashTypeCount; ++i) {
        types |= rss_types_of(static_cast<HashType>(i));
    }
    return types;
}

void RssConfig::spread(uint32_t size, uint16_t queues) {
    table.resize(size);
    for (uint32_t i = 0; i < size; ++i) {
        table[i] = static_cast<uint16_t>(i % queues);
    }
}

uint32_t toeplitz(std::span<const uint8_t> key, std::span<const uint8_t> input) {
    // For each set bit of the input, the 32 key bits that start at its position.
    uint32_t hash = 0;
    for (size_t bit = 0; bit < input.size() * 8; ++bit) {
        if ((input[bit / 8] & (0x80u >> (bit % 8))) == 0) {
            continue;
        }
        uint32_t window = 0;
        for (size_t k = bit; k < bit + 32; ++k) {
            const uint32_t key_bit = k / 8 < key.size() ? (key[k / 8] >> (7 - k % 8)) & 1u : 0u;
            window = (window << 1) | key_bit;
        }
        hash ^= window;
    }
    return hash;
}

}  // namespace tagwire::mlx5raw
