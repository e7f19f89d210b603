// SPDX-License-Identifier: BSD-3-Clause
// The messages of all queues, from start to stop.
#pragma once

#include <memory>
#include <vector>

#include "layout.h"
#include "tag_queue.h"

namespace tagwire::testpmd {

class TagSet {
  public:
    // Opens a worker on each queue of the layout's tag ports, gives them to their streams, and
    // steers frames to them. Throws perf::Failure; then nothing is left behind.
    TagSet(const Options& options, TagMode mode, Layout& layout, rte_mempool* pool);
    ~TagSet();
    TagSet(const TagSet&) = delete;
    TagSet& operator=(const TagSet&) = delete;

    bool is_done() const;
    size_t size() const { return queues_.size(); }
    // Of queue `index`; by the lcore that has it, or by anybody while none polls it.
    void report(size_t index, TagReport* report) const { queues_[index]->report(report); }
    // The number of a stream's queue.
    size_t index_of(const Stream& stream) const;

  private:
    void open_port(const Options& options, TagMode mode, Port& port, size_t index, Layout& layout,
                   rte_mempool* pool);
    void steer(const Options& options, const Port& port, const TagAddresses& addresses);

    Layout& layout_;
    std::vector<std::unique_ptr<TagQueue>> queues_;
    std::vector<SteeringRule> rules_;
};

}  // namespace tagwire::testpmd
