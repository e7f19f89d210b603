// SPDX-License-Identifier: BSD-3-Clause
// Asynchronous events of the device, on EAL's interrupt thread: link, failure of the
// device, failure of a queue.
#pragma once

#include <ethdev_driver.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/status.h"

namespace tagwire::mlx5raw {

// Only the interrupt thread writes.
struct EventCounters {
    std::atomic<uint64_t> link_changes{0};
    std::atomic<uint64_t> device_fatal{0};
    std::atomic<uint64_t> queue_errors{0};       // work queues and queue pairs in ERR
    std::atomic<uint64_t> completion_errors{0};  // completion queues in error
};

struct FreeInterrupt {
    void operator()(rte_intr_handle* handle) const { rte_intr_instance_free(handle); }
};
using InterruptHandle = std::unique_ptr<rte_intr_handle, FreeInterrupt>;

class PortEvents {
  public:
    ~PortEvents() { stop(); }

    Status start(rte_eth_dev* dev, const Device& device);
    void stop();

    // The device has failed for good: close the port and probe it again.
    bool device_failed() const { return failed_.load(std::memory_order_relaxed); }
    const EventCounters& counters() const { return counters_; }

  private:
    static void on_interrupt(void* dev);
    // Which ethdev events follow, as a set of bits by rte_eth_event_type.
    uint32_t take_events(rte_eth_dev* dev);
    uint32_t take(rte_eth_dev* dev, const ibv_async_event& event);

    rte_eth_dev* dev_ = nullptr;
    const Device* device_ = nullptr;
    InterruptHandle handle_;
    std::atomic<bool> failed_{false};
    EventCounters counters_;
};

}  // namespace tagwire::mlx5raw
