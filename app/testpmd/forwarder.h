// SPDX-License-Identifier: BSD-3-Clause
// One turn of a stream: receive a burst, let the runtime take its messages, forward the rest.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

#include "options.h"
#include "stream.h"

namespace tagwire::testpmd {

class Forwarder {
  public:
    Forwarder(const Options& options, PlainMode mode, rte_mempool* pool);

    // Returns how much happened: frames and events.
    uint32_t turn(Stream& stream) const noexcept;
    // A burst of txonly's frames; returns how many were made.
    uint16_t transmit(Stream& stream) const noexcept;

  private:
    void forward(Stream& stream, rte_mbuf** packets, uint16_t count) const noexcept;
    bool fill(Stream& stream, rte_mbuf* packet) const noexcept;

    PlainMode mode_;
    uint16_t burst_;
    uint16_t length_;
    bool multi_flow_;
    rte_mempool* pool_;
};

}  // namespace tagwire::testpmd
