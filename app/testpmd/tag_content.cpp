// SPDX-License-Identifier: BSD-3-Clause
#include "tag_content.h"

#include <algorithm>
#include <cstring>

namespace tagwire::testpmd {
namespace {

// The finalizer of SplitMix64: every bit of the input changes half of the output's.
uint64_t mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

uint64_t seed_of(const MessageName& name) {
    return mix(mix(mix(name.run) ^ name.tag) ^ name.sequence);
}

// Word `index` of the content; one multiplication, since messages are filled while others wait.
uint64_t word(uint64_t seed, size_t index) {
    const uint64_t value = (seed + index) * 0x9e3779b97f4a7c15;
    return value ^ value >> 29;
}

}  // namespace

void fill_content(const MessageName& name, std::byte* data, size_t size) {
    const uint64_t seed = seed_of(name);
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        const uint64_t value = word(seed, at / sizeof(uint64_t));
        std::memcpy(data + at, &value, std::min(sizeof(value), size - at));
    }
}

bool content_is_right(const MessageName& name, const std::byte* data, size_t size) {
    const uint64_t seed = seed_of(name);
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        const uint64_t value = word(seed, at / sizeof(uint64_t));
        if (std::memcmp(data + at, &value, std::min(sizeof(value), size - at)) != 0) {
            return false;
        }
    }
    return true;
}

uint64_t message_digest(const MessageName& name, size_t size) {
    return mix(seed_of(name) + size);
}

}  // namespace tagwire::testpmd
