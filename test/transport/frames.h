// SPDX-License-Identifier: BSD-3-Clause
// Looking into simulated frames, and making foreign ones.
#pragma once

#include "lib/wire/checksum.h"
#include "lib/wire/packet.h"
#include "test/sim/simulator.h"

namespace transport_test {

inline tagwire::wire::FrameHeader& headers(sim::Frame& frame) {
    return *reinterpret_cast<tagwire::wire::FrameHeader*>(frame.data());
}

inline bool is_tagwire(sim::Frame& frame) {
    return frame.size() >= sizeof(tagwire::wire::FrameHeader) &&
           headers(frame).ethernet.type == tagwire::wire::kEtherTypeIpv4 &&
           headers(frame).ip.protocol == tagwire::wire::kIpProtocolUdp;
}

inline tagwire::wire::PacketType type_of(sim::Frame& frame) {
    return is_tagwire(frame) ? headers(frame).base.type() : tagwire::wire::PacketType::kInvalid;
}

inline bool is_sequenced(sim::Frame& frame) {
    return is_tagwire(frame) && tagwire::wire::is_sequenced(headers(frame).base.type());
}

inline tagwire::wire::HandshakeHeader& handshake(sim::Frame& frame) {
    return *reinterpret_cast<tagwire::wire::HandshakeHeader*>(frame.data() +
                                                              sizeof(tagwire::wire::FrameHeader));
}

// After a change to the frame.
inline void fix_checksums(sim::Frame& frame) {
    auto& h = headers(frame);
    h.ip.checksum = tagwire::wire::be16::from_raw(tagwire::wire::ipv4_header_checksum(h.ip));
    h.udp.checksum = tagwire::wire::be16::from_raw(tagwire::wire::udp_checksum(h.ip, h.udp));
}

}  // namespace transport_test
