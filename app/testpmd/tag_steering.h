// SPDX-License-Identifier: BSD-3-Clause
// Which queue of a port a frame belongs to: each queue's worker has a UDP port of its own. Flow
// rules bring frames there; where a port has none, the lcore that got a frame hands it over.
#pragma once

#include <rte_flow.h>
#include <rte_mbuf.h>
#include <tagwire/tagwire.h>

#include <cstdint>
#include <string>

namespace tagwire::testpmd {

inline constexpr int kNobody = -1;  // no frame of ours
// ARP for our address, or of a station that tells its own: every worker asks for itself.
inline constexpr int kEverybody = -2;

// The workers of one port: one IP address, `queues` UDP ports from `base` on.
struct TagAddresses {
    rte_be32_t ip = 0;
    uint16_t base = 0;
    uint16_t queues = 1;

    // The queue that a frame belongs to, or one of the above.
    int owner_of(const rte_mbuf* packet) const noexcept;
};

// A rule that brings the worker's frames to its queue; it goes with this object.
class SteeringRule {
  public:
    SteeringRule() = default;
    SteeringRule(SteeringRule&& other) noexcept;
    SteeringRule& operator=(SteeringRule&&) = delete;
    ~SteeringRule();

    // False when the port refuses it; `why` then says so.
    bool create(uint16_t port, uint16_t queue, const TagAddresses& addresses, std::string* why);

  private:
    uint16_t port_ = 0;
    rte_flow* flow_ = nullptr;
};

}  // namespace tagwire::testpmd
