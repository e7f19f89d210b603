// SPDX-License-Identifier: BSD-3-Clause
// Names for counters, logs and tests.
#include "lib/wire/decode.h"

namespace tagwire::wire {

const char* name(Reject reject) noexcept {
    static constexpr const char* kNames[] = {
        "none",       "short_frame", "not_our_mac",  "ether_type", "ipv6",
        "ip_header",  "ip_fragment", "ip_checksum",  "not_our_ip", "ip_protocol",
        "udp_length", "udp_port",    "udp_checksum", "version",    "packet_type",
        "flags",      "extension",   "arp",          "icmp"};
    static_assert(sizeof(kNames) / sizeof(kNames[0]) == kRejects);
    const auto index = static_cast<uint8_t>(reject);
    return index < kRejects ? kNames[index] : "?";
}

const char* name(PacketType type) noexcept {
    static constexpr const char* kNames[] = {"invalid", "messages", "first", "fragment",  "grant",
                                             "ack",     "probe",    "hello", "cookie",    "accept",
                                             "refuse",  "close",    "reset", "operations"};
    static_assert(sizeof(kNames) / sizeof(kNames[0]) == kPacketTypes);
    const auto index = static_cast<uint8_t>(type);
    return index < kPacketTypes ? kNames[index] : "?";
}

const char* name(RefuseReason reason) noexcept {
    static constexpr const char* kNames[] = {"none",
                                             "protocol version not spoken",
                                             "required feature not known",
                                             "no such endpoint",
                                             "no room for another peer",
                                             "unusable parameters (MTU, windows, tag)",
                                             "wrong authorization key"};
    static_assert(sizeof(kNames) / sizeof(kNames[0]) == kRefuseReasons);
    const auto index = static_cast<uint8_t>(reason);
    return index < kRefuseReasons ? kNames[index] : "?";
}

}  // namespace tagwire::wire
