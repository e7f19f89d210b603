// SPDX-License-Identifier: BSD-3-Clause
// Two workers of one process, on a wire of memory and in real time, for what the simulator
// cannot show: threads and sleeping.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "tagwire/tagwire.h"

namespace tagwire::test {

// One end of a wire. Frames are copied, as a network does.
class WireEnd {
  public:
    explicit WireEnd(uint32_t number, bool has_interrupt);
    ~WireEnd();
    void connect(WireEnd& other) { other_ = &other; }

    tw_nic nic();
    rte_mempool* pool() const;
    void wait_for_frame();
    uint64_t polls() const { return polls_; }
    // Every n-th frame is lost; 0: none.
    std::atomic<uint32_t> loss_interval = 0;

  private:
    uint16_t receive(rte_mbuf** packets, uint16_t count);
    uint16_t send(rte_mbuf** packets, uint16_t count);
    void arrive(std::vector<uint8_t> frame);
    int interrupt(bool on);
    void show() const;

    WireEnd* other_ = nullptr;
    uint32_t number_;
    std::atomic<uint64_t> polls_ = 0;
    uint32_t sent_ = 0;
    std::mutex mutex_;
    std::deque<std::vector<uint8_t>> frames_;
    bool on_ = false;
    int event_ = -1;
};

// A worker with an endpoint at one end.
class WirePeer {
  public:
    WirePeer(WireEnd& end, uint32_t number, uint32_t threading);
    ~WirePeer();

    tw_addr address_of(const WirePeer& other);
    tw_address name() const;
    // Turns until nothing is under way; false when that takes too long.
    bool settle(WirePeer& other);
    bool wait_for(WirePeer& other, const std::function<bool()>& done);

    tw_worker* worker = nullptr;
    tw_av* av = nullptr;
    tw_cq* cq = nullptr;
    tw_cntr* receives = nullptr;
    tw_ep* ep = nullptr;
};

class WirePair : public testing::Test {
  protected:
    explicit WirePair(uint32_t threading = TW_THREAD_DOMAIN, bool has_interrupt = true);

    WireEnd end_a, end_b;
    WirePeer a, b;
};

}  // namespace tagwire::test
