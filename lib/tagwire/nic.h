// SPDX-License-Identifier: BSD-3-Clause
// What stands behind the transport's seams in production: a queue of an ethdev
// port and the TSC; or what the caller gave as struct tw_nic.
#pragma once

#include <cstdint>

#include "lib/transport/seams.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class TscClock final : public transport::Clock {
  public:
    TscClock();
    uint64_t now_ns() noexcept override;

  private:
    uint64_t ns_per_tick_;  // fixed point, 32 bits of fraction
};

class PortNic final : public transport::PacketIo {
  public:
    PortNic(uint16_t port, uint16_t queue) : port_(port), queue_(queue) {}
    uint16_t rx_burst(rte_mbuf** packets, uint16_t count) noexcept override;
    uint16_t tx_burst(rte_mbuf** packets, uint16_t count) noexcept override;
    void reclaim() noexcept override;

  private:
    uint16_t port_;
    uint16_t queue_;
};

// Without rx_burst frames come through tw_worker_input alone; without tx_burst they leave through
// the port.
class UserNic final : public transport::PacketIo, public transport::Clock {
  public:
    UserNic(const tw_nic& nic, const PortNic& port) : nic_(nic), port_(port) {}
    uint16_t rx_burst(rte_mbuf** packets, uint16_t count) noexcept override {
        return nic_.rx_burst == nullptr ? uint16_t{0} : nic_.rx_burst(nic_.context, packets, count);
    }
    uint16_t tx_burst(rte_mbuf** packets, uint16_t count) noexcept override {
        return nic_.tx_burst == nullptr ? port_.tx_burst(packets, count)
                                        : nic_.tx_burst(nic_.context, packets, count);
    }
    void reclaim() noexcept override {
        if (nic_.tx_burst == nullptr) {
            port_.reclaim();
        }
    }
    uint64_t now_ns() noexcept override { return nic_.now_ns(nic_.context); }

  private:
    tw_nic nic_;
    PortNic port_;
};

}  // namespace tagwire
