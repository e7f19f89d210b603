// SPDX-License-Identifier: BSD-3-Clause
// The two seams of the transport: packet I/O for a burst, and the clock.
// In production a DPDK port and the TSC stand behind them; in tests a simulated
// network and virtual time. Calls are per burst, never per packet.
#pragma once

#include <cstdint>

struct rte_mbuf;

namespace tagwire::transport {

class PacketIo {
  public:
    virtual ~PacketIo() = default;

    // Up to `count` received frames; the caller owns them afterwards.
    virtual uint16_t rx_burst(rte_mbuf** packets, uint16_t count) noexcept = 0;

    // Hands over up to `count` frames; returns how many were taken. The caller
    // keeps the others. A taken frame is freed by the NIC.
    virtual uint16_t tx_burst(rte_mbuf** packets, uint16_t count) noexcept = 0;

    // Frees what has been sent, now rather than with a later burst.
    virtual void reclaim() noexcept {}
};

class Clock {
  public:
    virtual ~Clock() = default;

    // Nanoseconds from an arbitrary start. It may jump forwards (a suspended
    // machine) but never goes backwards.
    virtual uint64_t now_ns() noexcept = 0;
};

}  // namespace tagwire::transport
