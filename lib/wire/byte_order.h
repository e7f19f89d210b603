// SPDX-License-Identifier: BSD-3-Clause
// Big-endian integers whose byte order is part of their type. Alignment 1, so a
// header can be laid over any byte of a frame.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

namespace tagwire::wire {

static_assert(std::endian::native == std::endian::little,
              "the byte swaps assume a little-endian host");

constexpr uint16_t swap_bytes(uint16_t value) noexcept {
    return __builtin_bswap16(value);
}
constexpr uint32_t swap_bytes(uint32_t value) noexcept {
    return __builtin_bswap32(value);
}
constexpr uint64_t swap_bytes(uint64_t value) noexcept {
    return __builtin_bswap64(value);
}

template <std::unsigned_integral T>
class __attribute__((packed)) BigEndian {
  public:
    BigEndian() = default;
    constexpr BigEndian(T value) noexcept : raw_(swap_bytes(value)) {}
    constexpr operator T() const noexcept { return swap_bytes(raw_); }

    // The bytes as they travel, for comparisons and checksums that need no swap.
    constexpr T raw() const noexcept { return raw_; }
    static constexpr BigEndian from_raw(T raw) noexcept {
        BigEndian value;
        value.raw_ = raw;
        return value;
    }

  private:
    T raw_;
};

using be16 = BigEndian<uint16_t>;
using be32 = BigEndian<uint32_t>;
using be64 = BigEndian<uint64_t>;

static_assert(sizeof(be16) == 2 && alignof(be16) == 1);
static_assert(sizeof(be32) == 4 && alignof(be32) == 1);
static_assert(sizeof(be64) == 8 && alignof(be64) == 1);

}  // namespace tagwire::wire
