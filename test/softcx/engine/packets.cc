// SPDX-License-Identifier: BSD-3-Clause
#include "test/softcx/engine/packets.h"

#include <arpa/inet.h>

namespace softcx::test {

namespace {

void put16(Bytes& bytes, size_t value) {
    bytes.push_back(static_cast<uint8_t>(value >> 8));
    bytes.push_back(static_cast<uint8_t>(value));
}

void put_address(Bytes& bytes, bool ipv6, const std::string& text) {
    uint8_t address[16];
    if (inet_pton(ipv6 ? AF_INET6 : AF_INET, text.c_str(), address) != 1)
        ADD_FAILURE() << "bad address " << text;
    bytes.insert(bytes.end(), address, address + (ipv6 ? 16 : 4));
}

Bytes make_l4(const PacketOptions& options) {
    Bytes l4;
    if (options.protocol == 17) {
        put16(l4, options.src_port);
        put16(l4, options.dst_port);
        put16(l4, 8 + options.payload.size());
        put16(l4, 0);
    } else if (options.protocol == 6) {
        put16(l4, options.src_port);
        put16(l4, options.dst_port);
        l4.insert(l4.end(), {0, 0, 0x10, 0, 0, 0, 0, 7, 0x50, options.tcp_flags, 1, 0, 0, 0, 0, 0});
    }
    l4.insert(l4.end(), options.payload.begin(), options.payload.end());
    return l4;
}

Bytes pseudo_header(const Bytes& frame, size_t l3, uint8_t protocol, const Bytes& l4) {
    const bool ipv6 = frame[l3] >> 4 == 6;
    Bytes pseudo(frame.begin() + l3 + (ipv6 ? 8 : 12), frame.begin() + l3 + (ipv6 ? 40 : 20));
    put16(pseudo, 0);
    put16(pseudo, l4.size());
    put16(pseudo, 0);
    put16(pseudo, protocol);
    pseudo.insert(pseudo.end(), l4.begin(), l4.end());
    return pseudo;
}

}  // namespace

uint16_t slow_checksum(const Bytes& bytes) {
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
        sum += i % 2 == 0 ? bytes[i] << 8 : bytes[i];
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
}

Bytes make_packet(const PacketOptions& options) {
    Bytes frame(options.dst.begin(), options.dst.end());
    frame.insert(frame.end(), options.src.begin(), options.src.end());
    for (const uint16_t tci : options.vlans) {
        put16(frame, 0x8100);
        put16(frame, tci);
    }
    put16(frame, options.ipv6 ? 0x86dd : 0x0800);
    const size_t l3 = frame.size();
    Bytes l4 = make_l4(options);
    if (options.ipv6) {
        frame.insert(frame.end(), {0x60, 0, 0, 0});
        put16(frame, l4.size());
        frame.insert(frame.end(), {options.protocol, 64});
    } else {
        frame.insert(frame.end(), {0x45, 0});
        put16(frame, 20 + l4.size());
        put16(frame, 0x1234);
        put16(frame, options.fragment);
        frame.insert(frame.end(), {64, options.protocol, 0, 0});
    }
    put_address(frame, options.ipv6, options.src_ip);
    put_address(frame, options.ipv6, options.dst_ip);
    if (!options.ipv6) {
        const uint16_t sum = slow_checksum(Bytes(frame.begin() + l3, frame.end()));
        frame[l3 + 10] = static_cast<uint8_t>(sum >> 8);
        frame[l3 + 11] = static_cast<uint8_t>(sum);
    }
    const size_t field = options.protocol == 17 ? 6 : options.protocol == 6 ? 16 : 0;
    if (field != 0 && options.fragment == 0) {
        const uint16_t sum = slow_checksum(pseudo_header(frame, l3, options.protocol, l4));
        l4[field] = static_cast<uint8_t>(sum >> 8);
        l4[field + 1] = static_cast<uint8_t>(sum);
    }
    frame.insert(frame.end(), l4.begin(), l4.end());
    if (frame.size() < 60)
        frame.resize(60);
    return frame;
}

bool has_good_ipv4_checksum(const Bytes& frame, size_t l3) {
    const size_t header = (frame[l3] & 15u) * 4;
    return slow_checksum(Bytes(frame.begin() + l3, frame.begin() + l3 + header)) == 0;
}

bool has_good_l4_checksum(const Bytes& frame, size_t l3) {
    const bool ipv6 = frame[l3] >> 4 == 6;
    const size_t l4 = l3 + (ipv6 ? 40 : (frame[l3] & 15u) * 4);
    const size_t end = ipv6 ? l3 + 40 + (frame[l3 + 4] << 8 | frame[l3 + 5])
                            : l3 + (frame[l3 + 2] << 8 | frame[l3 + 3]);
    return slow_checksum(pseudo_header(frame, l3, frame[l3 + (ipv6 ? 6 : 9)],
                                       Bytes(frame.begin() + l4, frame.begin() + end))) == 0;
}

}  // namespace softcx::test
