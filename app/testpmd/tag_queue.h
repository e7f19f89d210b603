// SPDX-License-Identifier: BSD-3-Clause
// The messages of one queue: its worker, what it does with them (the role), and the ring through
// which other lcores hand over frames. All calls but those that say otherwise come from the lcore
// that polls the queue.
#pragma once

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "options.h"
#include "stream.h"
#include "tag_endpoint.h"
#include "tag_report.h"
#include "tag_role.h"
#include "tag_steering.h"

namespace tagwire::testpmd {

struct TagQueueConfig {
    uint16_t port = 0;
    uint16_t queue = 0;
    TagMode mode{};
    TagAddresses addresses;         // of the port's queues
    tw_address address{};           // of this one
    std::vector<tw_address> peers;  // taggen
    rte_mempool* pool = nullptr;    // for copies of ARP frames
};

class TagQueue {
  public:
    TagQueue(const TagQueueConfig& config, const TagOptions& options);  // throws perf::Failure
    ~TagQueue();
    TagQueue(const TagQueue&) = delete;
    TagQueue& operator=(const TagQueue&) = delete;

    // The queues of the same port, by number.
    void set_siblings(const std::vector<TagQueue*>& siblings) { siblings_ = siblings; }

    // Takes the frames that are messages' and moves the others to the front; returns how many.
    uint16_t input(rte_mbuf** packets, uint16_t count) noexcept;
    // The same for frames that other lcores handed over; `packets` has room for `count`.
    uint16_t input_from_ring(rte_mbuf** packets, uint16_t count) noexcept;
    uint32_t turn() noexcept;
    // Forwarding ends: true once the peers know and the endpoint is closed.
    bool wind_down() noexcept;

    void report(TagReport* report) const;
    // Any thread.
    bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }

  private:
    enum class Ending { kNotYet, kFinishing, kClosing, kClosed };

    uint16_t hand_over(rte_mbuf** packets, uint16_t count) noexcept;
    void give(TagQueue& other, rte_mbuf* packet) noexcept;
    void take_completions();

    TagQueueConfig config_;
    TagOptions options_;
    std::vector<TagQueue*> siblings_;
    std::unique_ptr<rte_ring, decltype(&rte_ring_free)> ring_;
    std::unique_ptr<TagEndpoint> endpoint_;
    std::unique_ptr<TagRole> role_;
    Ending ending_ = Ending::kNotYet;
    double deadline_ = 0;
    double now_ = 0;
    uint64_t completions_ = 0;
    uint64_t error_completions_ = 0;
    std::string last_error_;
    uint64_t handed_over_ = 0;
    uint64_t taken_over_ = 0;
    uint64_t ring_full_ = 0;
    std::atomic<bool> done_{false};
};

}  // namespace tagwire::testpmd
