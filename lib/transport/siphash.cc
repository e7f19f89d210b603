// SPDX-License-Identifier: BSD-3-Clause
#include "lib/transport/siphash.h"

#include <bit>
#include <cstring>

namespace tagwire::transport {
namespace {

struct State {
    uint64_t v0, v1, v2, v3;

    void round() noexcept {
        v0 += v1;
        v1 = std::rotl(v1, 13) ^ v0;
        v0 = std::rotl(v0, 32);
        v2 += v3;
        v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3;
        v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1;
        v1 = std::rotl(v1, 17) ^ v2;
        v2 = std::rotl(v2, 32);
    }

    void absorb(uint64_t word) noexcept {
        v3 ^= word;
        round();
        round();
        v0 ^= word;
    }
};

}  // namespace

uint64_t siphash24(const SipKey& key, const void* data, size_t length) noexcept {
    State state{0x736f6d6570736575 ^ key[0], 0x646f72616e646f6d ^ key[1],
                0x6c7967656e657261 ^ key[0], 0x7465646279746573 ^ key[1]};
    const auto* bytes = static_cast<const uint8_t*>(data);
    size_t left = length;
    for (; left >= 8; left -= 8, bytes += 8) {
        uint64_t word;
        std::memcpy(&word, bytes, 8);
        state.absorb(word);
    }
    uint64_t last = 0;
    std::memcpy(&last, bytes, left);
    state.absorb(last | static_cast<uint64_t>(length) << 56);
    state.v2 ^= 0xff;
    for (int i = 0; i < 4; ++i) {
        state.round();
    }
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace tagwire::transport
