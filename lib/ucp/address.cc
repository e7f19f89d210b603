// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/address.h"

#include <cstring>

namespace tagwire::ucp {
namespace {

constexpr uint8_t kMagic[4] = {'T', 'W', 'U', 'P'};
constexpr uint8_t kVersion = 1;

template <typename T>
void put(uint8_t*& to, T value) {
    for (size_t i = sizeof(T); i-- != 0;) {
        *to++ = static_cast<uint8_t>(value >> (8 * i));
    }
}

template <typename T>
T get(const uint8_t*& from) {
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
        value = static_cast<T>(value << 8 | *from++);
    }
    return value;
}

}  // namespace

void WorkerAddress::encode(uint8_t* bytes) const {
    std::memset(bytes, 0, kSize);
    std::memcpy(bytes, kMagic, sizeof(kMagic));
    uint8_t* to = bytes + sizeof(kMagic);
    *to++ = kVersion;
    *to++ = address.family;
    put(to, address.udp_port);
    put(to, tag_endpoint);
    put(to, channel_endpoint);
    std::memcpy(to, address.ip, sizeof(address.ip));
    to += sizeof(address.ip);
    put(to, uid);
}

bool WorkerAddress::decode(const void* bytes) {
    const auto* from = static_cast<const uint8_t*>(bytes);
    if (std::memcmp(from, kMagic, sizeof(kMagic)) != 0 || from[4] != kVersion ||
        (from[5] != 4 && from[5] != 6)) {
        return false;
    }
    from += 5;
    address = {};
    address.family = *from++;
    address.udp_port = get<uint16_t>(from);
    tag_endpoint = get<uint16_t>(from);
    channel_endpoint = get<uint16_t>(from);
    std::memcpy(address.ip, from, sizeof(address.ip));
    from += sizeof(address.ip);
    uid = get<uint64_t>(from);
    return true;
}

}  // namespace tagwire::ucp
