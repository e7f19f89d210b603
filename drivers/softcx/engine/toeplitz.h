// SPDX-License-Identifier: BSD-3-Clause
// The Toeplitz hash of receive side scaling, four input bits at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "drivers/softcx/engine/parse.h"

namespace softcx {

class Toeplitz {
  public:
    static constexpr uint32_t kMaxInput = 36;  // two IPv6 addresses, two ports

    explicit Toeplitz(std::span<const uint8_t> key) noexcept;

    uint32_t hash(std::span<const uint8_t> input) const noexcept;

  private:
    // The hash is linear: a table per nibble of the input, to be combined by XOR.
    std::array<std::array<uint32_t, 16>, 2 * kMaxInput> tables_;
};

struct RssHash {
    uint32_t value = 0;
    uint8_t type = 0;  // Cqe::rx_hash_type
};

// `fields` are MLX5_RX_HASH_* bits. The selected fields that the frame has make the
// input, in the order source address, destination address, source port, destination
// port. A fragment has no ports.
RssHash hash_frame(const Toeplitz& toeplitz, uint64_t fields, const ParsedFrame& frame) noexcept;

}  // namespace softcx
