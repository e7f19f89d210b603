// SPDX-License-Identifier: BSD-3-Clause
// Which lcore polls which queues, and where their frames leave.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "options.h"
#include "port.h"
#include "stream.h"

namespace tagwire::testpmd {

using Ports = std::vector<std::unique_ptr<Port>>;

// The lcores that may forward: all but the main one.
std::vector<unsigned> forwarding_lcores();

// How many forwarding lcores these options use on these ports. Throws Failure when there are too
// few.
uint32_t lcores_wanted(const Options& options, size_t ports);

struct Lcore {
    unsigned id = 0;
    std::vector<Stream*> streams;
    std::atomic<bool> stop{false};
};

// Streams of all ports, shared out so that a TX queue and an RX queue belong to one lcore.
struct Layout {
    std::vector<Port*> ports;  // those that forward
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Lcore>> lcores;

    // testpmd's description of it.
    void print(const ForwardMode& mode) const;
};

Layout make_layout(const Options& options, const Ports& ports);

}  // namespace tagwire::testpmd
