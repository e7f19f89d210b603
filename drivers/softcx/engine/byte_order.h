// SPDX-License-Identifier: BSD-3-Clause
// Big-endian fields, as the device structures and the network have them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace softcx {

constexpr uint16_t swap_bytes(uint16_t value) {
    return __builtin_bswap16(value);
}
constexpr uint32_t swap_bytes(uint32_t value) {
    return __builtin_bswap32(value);
}
constexpr uint64_t swap_bytes(uint64_t value) {
    return __builtin_bswap64(value);
}

template <typename T>
constexpr T big_endian(T value) {
    if constexpr (std::endian::native == std::endian::little)
        return swap_bytes(value);
    else
        return value;
}

// The byte order is in the type: a field is read with get() and written with set().
template <typename T>
struct BigEndian {
    T raw;

    constexpr T get() const { return big_endian(raw); }
    constexpr void set(T value) { raw = big_endian(value); }
};

using Be16 = BigEndian<uint16_t>;
using Be32 = BigEndian<uint32_t>;
using Be64 = BigEndian<uint64_t>;

// Loads and stores at any alignment.
template <typename T>
inline T load_big_endian(const uint8_t* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof(value));
    return big_endian(value);
}

template <typename T>
inline void store_big_endian(uint8_t* to, T value) noexcept {
    value = big_endian(value);
    std::memcpy(to, &value, sizeof(value));
}

inline uint16_t load_be16(const uint8_t* from) noexcept {
    return load_big_endian<uint16_t>(from);
}
inline uint32_t load_be32(const uint8_t* from) noexcept {
    return load_big_endian<uint32_t>(from);
}
inline void store_be16(uint8_t* to, uint16_t value) noexcept {
    store_big_endian<uint16_t>(to, value);
}
inline void store_be32(uint8_t* to, uint32_t value) noexcept {
    store_big_endian<uint32_t>(to, value);
}

}  // namespace softcx
