// SPDX-License-Identifier: BSD-3-Clause
#include "test/e2e/lives/replay_nic.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <cstring>

namespace tagwire::lives {

namespace {

// doc/protocol.md: behind Ethernet, IPv4 and UDP the first byte has the type.
constexpr size_t kTypeAt = 42;
constexpr uint8_t kVersion = 1, kMessages = 1, kFragment = 3;

bool is_data(const rte_mbuf& packet) {
    const auto* bytes = rte_pktmbuf_mtod(&packet, const uint8_t*);
    if (packet.data_len <= kTypeAt || bytes[12] != 0x08 || bytes[13] != 0x00 || bytes[23] != 17) {
        return false;
    }
    const uint8_t type = bytes[kTypeAt] & 0xf;
    return bytes[kTypeAt] >> 4 == kVersion && type >= kMessages && type <= kFragment;
}

}  // namespace

tw_nic ReplayNic::nic() {
    tw_nic nic{};
    nic.context = this;
    nic.rx_burst = [](void* context, rte_mbuf** packets, uint16_t count) {
        return static_cast<ReplayNic*>(context)->receive(packets, count);
    };
    nic.tx_burst = [](void* context, rte_mbuf** packets, uint16_t count) {
        return rte_eth_tx_burst(static_cast<ReplayNic*>(context)->port_, 0, packets, count);
    };
    return nic;
}

void ReplayNic::keep(const rte_mbuf& packet) {
    if (frames_.size() < wanted_ && is_data(packet)) {
        frames_.emplace_back(rte_pktmbuf_mtod(&packet, const char*), packet.data_len);
    }
}

uint16_t ReplayNic::receive(rte_mbuf** packets, uint16_t count) {
    uint16_t received = 0;
    while (next_ < frames_.size() && received < count) {
        rte_mbuf* packet = rte_pktmbuf_alloc(pool_);
        if (packet == nullptr) {
            break;
        }
        const std::string& frame = frames_[next_++];
        std::memcpy(rte_pktmbuf_append(packet, static_cast<uint16_t>(frame.size())), frame.data(),
                    frame.size());
        packets[received++] = packet;
    }
    const uint16_t more =
        rte_eth_rx_burst(port_, 0, packets + received, static_cast<uint16_t>(count - received));
    for (uint16_t i = 0; i < more; ++i) {
        keep(*packets[received + i]);
    }
    return static_cast<uint16_t>(received + more);
}

}  // namespace tagwire::lives
