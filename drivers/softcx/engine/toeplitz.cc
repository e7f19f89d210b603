// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/toeplitz.h"

#include <rdma/mlx5-abi.h>

#include <algorithm>

namespace softcx {

namespace {

// 32 bits of the key from bit `position` on; zeros behind its end.
uint32_t key_window(std::span<const uint8_t> key, uint32_t position) noexcept {
    uint64_t window = 0;
    for (uint32_t i = 0; i < 5; ++i) {
        const uint32_t byte = position / 8 + i;
        window = window << 8 | (byte < key.size() ? key[byte] : 0);
    }
    return static_cast<uint32_t>(window >> (8 - position % 8));
}

}  // namespace

Toeplitz::Toeplitz(std::span<const uint8_t> key) noexcept {
    for (uint32_t nibble = 0; nibble < tables_.size(); ++nibble) {
        std::array<uint32_t, 16>& table = tables_[nibble];
        table[0] = 0;
        for (uint32_t bit = 0; bit < 4; ++bit) {
            const uint32_t window = key_window(key, nibble * 4 + (3 - bit));
            for (uint32_t value = 0; value < 1u << bit; ++value)
                table[value | 1u << bit] = table[value] ^ window;
        }
    }
}

uint32_t Toeplitz::hash(std::span<const uint8_t> input) const noexcept {
    uint32_t result = 0;
    const std::array<uint32_t, 16>* table = tables_.data();
    for (const uint8_t byte : input) {
        result ^= table[0][byte >> 4] ^ table[1][byte & 15];
        table += 2;
    }
    return result;
}

RssHash hash_frame(const Toeplitz& toeplitz, uint64_t fields, const ParsedFrame& frame) noexcept {
    std::array<uint8_t, Toeplitz::kMaxInput> input;
    uint32_t used = 0;
    RssHash result;
    const auto take = [&](uint64_t field, const uint8_t* from, uint32_t bytes, uint8_t type) {
        if ((fields & field) == 0)
            return;
        std::copy_n(from, bytes, input.data() + used);
        used += bytes;
        result.type |= type;
    };

    const uint8_t* l3 = frame.data + frame.l3_offset;
    if (frame.l3 == CqeL3::kIpv4) {
        take(MLX5_RX_HASH_SRC_IPV4, l3 + 12, 4, 1 << 0);
        take(MLX5_RX_HASH_DST_IPV4, l3 + 16, 4, 1 << 2);
    } else if (frame.l3 == CqeL3::kIpv6) {
        take(MLX5_RX_HASH_SRC_IPV6, l3 + 8, 16, 2 << 0);
        take(MLX5_RX_HASH_DST_IPV6, l3 + 24, 16, 2 << 2);
    }
    const uint8_t* l4 = frame.data + frame.l4_offset;
    if (frame.is_tcp()) {
        take(MLX5_RX_HASH_SRC_PORT_TCP, l4, 2, 1 << 4);
        take(MLX5_RX_HASH_DST_PORT_TCP, l4 + 2, 2, 1 << 6);
    } else if (frame.is_udp()) {
        take(MLX5_RX_HASH_SRC_PORT_UDP, l4, 2, 2 << 4);
        take(MLX5_RX_HASH_DST_PORT_UDP, l4 + 2, 2, 2 << 6);
    }
    result.value = toeplitz.hash({input.data(), used});
    return result;
}

}  // namespace softcx
