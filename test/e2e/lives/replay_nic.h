// SPDX-License-Identifier: BSD-3-Clause
// A port as the worker sees it, which keeps copies of data frames that came, and can bring
// them once more: the frames of a peer's former life.
#pragma once

#include <tagwire/tagwire.h>

#include <cstdint>
#include <string>
#include <vector>

struct rte_mbuf;
struct rte_mempool;

namespace tagwire::lives {

class ReplayNic {
  public:
    ReplayNic(uint16_t port, rte_mempool* pool) : port_(port), pool_(pool) {}

    tw_nic nic();
    void record(size_t frames) { wanted_ = frames; }
    size_t recorded() const { return frames_.size(); }
    void replay() { next_ = 0; }
    bool has_replayed() const { return next_ == frames_.size(); }

  private:
    uint16_t receive(rte_mbuf** packets, uint16_t count);
    void keep(const rte_mbuf& packet);

    uint16_t port_;
    rte_mempool* pool_;
    size_t wanted_ = 0;
    size_t next_ = SIZE_MAX;  // of those that are brought again
    std::vector<std::string> frames_;
};

}  // namespace tagwire::lives
