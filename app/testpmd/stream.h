// SPDX-License-Identifier: BSD-3-Clause
// One direction of forwarding: an RX queue, and the TX queue where its frames leave.
#pragma once

#include <rte_ether.h>

#include <atomic>
#include <cstdint>

namespace tagwire::testpmd {

class TagQueue;

// Written by one lcore, read by any thread: a plain add, no lock prefix.
class Tally {
  public:
    void add(uint64_t n) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }
    void clear() noexcept { value_.store(0, std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> value_{0};
};

struct Stream {
    uint16_t rx_port = 0;
    uint16_t rx_queue = 0;
    uint16_t tx_port = 0;
    uint16_t tx_queue = 0;
    rte_ether_addr tx_mac{};       // of tx_port
    rte_ether_addr peer{};         // who is behind tx_port
    TagQueue* messages = nullptr;  // on rx_port and rx_queue; nullptr: none
    uint32_t flow = 0;             // txonly with many flows: the next one

    // Frames that are no messages.
    Tally rx_packets;
    Tally tx_packets;
    Tally dropped;
    Tally cycles;
    // Messages: frames that were taken, and what they and the runtime cost.
    Tally tag_frames;
    Tally tag_cycles;

    void clear() noexcept {
        for (Tally* tally :
             {&rx_packets, &tx_packets, &dropped, &cycles, &tag_frames, &tag_cycles}) {
            tally->clear();
        }
    }
};

}  // namespace tagwire::testpmd
