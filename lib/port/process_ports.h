// SPDX-License-Identifier: BSD-3-Clause
// The ports of a process that knows nothing of DPDK: the EAL is brought up at the first use, and
// each worker gets a started port of its own. doc/port.md
//
// May be called from several threads. A port stays up until the process ends, and serves the next
// worker when it was given back.
#pragma once

#include <tagwire/worker.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lib/port/port.h"
#include "lib/port/settings.h"

namespace tagwire::port {

// What port a process with these settings would use, for people; nothing is started. Throws
// Failure when there is none.
struct Prospect {
    std::string device;  // "mlx5_0", "net_memif0"
    std::string wire;    // "switch:tagwire-0", "the network"
    bool software = false;
    uint16_t mtu = 0;  // 0: not known before the port is started
};
Prospect prospect(const Settings& settings);

// The address that worker `index` of this process has with these settings: the same at each call.
tw_address address_of_worker(const Settings& settings, unsigned index);

// A port of its own for one worker, as long as the lease lives.
class Lease {
  public:
    // Throws Failure: no port, no memory, all of TAGWIRE_WORKERS in use.
    static std::unique_ptr<Lease> acquire(const Settings& settings);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    const Port& port() const noexcept { return *port_; }
    unsigned index() const noexcept { return index_; }
    // For tw_worker_open: port, queue, address, MAC, MTU and the limits of the settings.
    tw_worker_attr worker_attr() const;

  private:
    Lease(Port* port, unsigned index, Settings settings)
        : port_(port), index_(index), settings_(std::move(settings)) {}

    Port* port_;
    unsigned index_;
    Settings settings_;
};

}  // namespace tagwire::port
