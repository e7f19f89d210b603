// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/checksum.h"

#include <cstring>

namespace softcx {

uint32_t ones_sum(const uint8_t* data, uint32_t length) noexcept {
    // 32-bit words in 64-bit accumulators: the carries can't be lost below 2^32 words.
    uint64_t sum0 = 0;
    uint64_t sum1 = 0;
    while (length >= 32) {
        uint64_t words[4];
        std::memcpy(words, data, sizeof(words));
        sum0 +=
            (words[0] & 0xffffffff) + (words[0] >> 32) + (words[1] & 0xffffffff) + (words[1] >> 32);
        sum1 +=
            (words[2] & 0xffffffff) + (words[2] >> 32) + (words[3] & 0xffffffff) + (words[3] >> 32);
        data += 32;
        length -= 32;
    }
    sum0 += sum1;
    while (length >= 4) {
        uint32_t word;
        std::memcpy(&word, data, sizeof(word));
        sum0 += word;
        data += 4;
        length -= 4;
    }
    if (length != 0) {
        uint32_t word = 0;
        std::memcpy(&word, data, length);
        sum0 += word;
    }
    return fold(sum0);
}

}  // namespace softcx
