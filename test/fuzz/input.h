// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a fuzzer, taken piece by piece; behind their end everything is zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "drivers/softcx/log.h"

namespace softcx::fuzz {

class Input {
  public:
    Input(const uint8_t* data, size_t size) : bytes_(data, size) {}

    template <typename T>
    T take() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        const size_t part = std::min(sizeof(T), bytes_.size());
        std::memcpy(static_cast<void*>(&value), bytes_.data(), part);
        bytes_ = bytes_.subspan(part);
        return value;
    }

    // As long as it says and no longer: a sanitizer sees each byte that is read past it.
    std::vector<uint8_t> take_bytes(size_t length) {
        const size_t part = std::min(length, bytes_.size());
        std::vector<uint8_t> taken(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(part));
        taken.shrink_to_fit();
        bytes_ = bytes_.subspan(part);
        return taken;
    }

    size_t left() const { return bytes_.size(); }

  private:
    std::span<const uint8_t> bytes_;
};

// Silence, but with FUZZ_LOG in the environment: to look at one input.
inline void choose_log_level() {
    static const bool loud = std::getenv("FUZZ_LOG") != nullptr;
    set_log_level(loud ? LogLevel::kDebug : LogLevel::kSilent);
}

// What must hold after any input.
inline void require(bool condition, const char* what) {
    if (condition)
        return;
    std::fprintf(stderr, "the model broke a promise: %s\n", what);
    std::abort();
}

// A target: what it does with one input.
void run(Input& input);

}  // namespace softcx::fuzz
