// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/checksum.h"

#include <cstring>

namespace softcx {

namespace {

// In ones' complement arithmetic 64 bits are four words of 16 as well as any.
uint64_t add(uint64_t sum, uint64_t word) noexcept {
    sum += word;
    return sum + (sum < word);
}

template <typename Word>
uint64_t load(const uint8_t* data) noexcept {
    Word word;
    std::memcpy(&word, data, sizeof(word));
    return word;
}

}  // namespace

uint32_t ones_sum(const uint8_t* data, uint32_t length) noexcept {
    uint64_t sum = 0;
    for (; length >= 32; data += 32, length -= 32) {
        sum = add(sum, load<uint64_t>(data));
        sum = add(sum, load<uint64_t>(data + 8));
        sum = add(sum, load<uint64_t>(data + 16));
        sum = add(sum, load<uint64_t>(data + 24));
    }
    for (; length >= 8; data += 8, length -= 8)
        sum = add(sum, load<uint64_t>(data));
    if (length >= 4) {
        sum = add(sum, load<uint32_t>(data));
        data += 4;
        length -= 4;
    }
    if (length != 0) {
        uint32_t word = 0;
        std::memcpy(&word, data, length);
        sum = add(sum, word);
    }
    return fold(sum);
}

}  // namespace softcx
