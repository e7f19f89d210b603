// SPDX-License-Identifier: BSD-3-Clause
// An ethdev port with its queues: configured, started and stopped as testpmd does.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "options.h"

namespace tagwire::testpmd {

using MbufPool = std::unique_ptr<rte_mempool, decltype(&rte_mempool_free)>;

// The pool of all RX queues and of txonly, "mb_pool_0". Throws Failure.
MbufPool create_mbuf_pool(const Options& options, const std::vector<uint16_t>& ports,
                          uint32_t lcores);

// Throws Failure when a port cannot have that many queues.
void check_queues(uint16_t port, const Options& options);

class Port {
  public:
    // Configures the port; throws Failure. Nothing runs yet.
    Port(uint16_t id, const Options& options, rte_mempool* pool);
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    uint16_t id() const { return id_; }
    bool started() const { return started_; }
    const rte_ether_addr& mac() const { return mac_; }
    uint16_t mtu() const { return mtu_; }
    uint16_t rx_descriptors() const { return rx_descriptors_; }
    uint16_t tx_descriptors() const { return tx_descriptors_; }
    const rte_eth_conf& configuration() const { return conf_; }

    void start();  // throws Failure
    void stop();
    void close();
    bool link_is_up() const;

    // Counters since forwarding began.
    rte_eth_stats statistics() const;
    void note_statistics();

  private:
    void configure(const Options& options);
    void set_up_queues(const Options& options, rte_mempool* pool);

    uint16_t id_;
    bool started_ = false;
    uint16_t mtu_ = 0;
    uint16_t rx_descriptors_;
    uint16_t tx_descriptors_;
    rte_ether_addr mac_{};
    rte_eth_conf conf_{};
    rte_eth_stats noted_{};
};

}  // namespace tagwire::testpmd
