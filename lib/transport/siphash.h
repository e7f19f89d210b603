// SPDX-License-Identifier: BSD-3-Clause
// SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF"), the MAC
// of the cookie. Cold path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tagwire::transport {

using SipKey = std::array<uint64_t, 2>;

uint64_t siphash24(const SipKey& key, const void* data, size_t length) noexcept;

}  // namespace tagwire::transport
