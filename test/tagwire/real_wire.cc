// SPDX-License-Identifier: BSD-3-Clause
#include "test/tagwire/real_wire.h"

#include <poll.h>
#include <rte_mbuf.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "test/sim/pools.h"

namespace tagwire::test {

WireEnd::WireEnd(uint32_t number, bool has_interrupt) : number_(number) {
    if (has_interrupt) {
        event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
}

WireEnd::~WireEnd() {
    if (event_ >= 0) {
        ::close(event_);
    }
}

rte_mempool* WireEnd::pool() const {
    return sim::pool(number_);
}

tw_nic WireEnd::nic() {
    tw_nic nic{};
    nic.context = this;
    nic.rx_burst = [](void* context, rte_mbuf** packets, uint16_t count) {
        return static_cast<WireEnd*>(context)->receive(packets, count);
    };
    nic.tx_burst = [](void* context, rte_mbuf** packets, uint16_t count) {
        return static_cast<WireEnd*>(context)->send(packets, count);
    };
    if (event_ >= 0) {
        nic.rx_interrupt = [](void* context, int on) {
            return static_cast<WireEnd*>(context)->interrupt(on != 0);
        };
        nic.rx_fd = event_;
    }
    return nic;
}

uint16_t WireEnd::receive(rte_mbuf** packets, uint16_t count) {
    ++polls_;
    const std::lock_guard lock(mutex_);
    uint16_t taken = 0;
    while (taken < count && !frames_.empty()) {
        rte_mbuf* packet = rte_pktmbuf_alloc(pool());
        if (packet == nullptr) {
            break;
        }
        const std::vector<uint8_t>& frame = frames_.front();
        std::memcpy(rte_pktmbuf_append(packet, static_cast<uint16_t>(frame.size())), frame.data(),
                    frame.size());
        packets[taken++] = packet;
        frames_.pop_front();
    }
    show();
    return taken;
}

uint16_t WireEnd::send(rte_mbuf** packets, uint16_t count) {
    for (uint16_t i = 0; i < count; ++i) {
        std::vector<uint8_t> frame;
        for (const rte_mbuf* segment = packets[i]; segment != nullptr; segment = segment->next) {
            const auto* data = rte_pktmbuf_mtod(segment, const uint8_t*);
            frame.insert(frame.end(), data, data + segment->data_len);
        }
        rte_pktmbuf_free(packets[i]);
        const uint32_t interval = loss_interval;
        if (interval == 0 || ++sent_ % interval != 0) {
            other_->arrive(std::move(frame));
        }
    }
    return count;
}

void WireEnd::arrive(std::vector<uint8_t> frame) {
    const std::lock_guard lock(mutex_);
    frames_.push_back(std::move(frame));
    show();
}

int WireEnd::interrupt(bool on) {
    const std::lock_guard lock(mutex_);
    on_ = on;
    show();
    return 0;
}

void WireEnd::show() const {
    if (event_ < 0) {
        return;
    }
    eventfd_t value;
    if (on_ && !frames_.empty()) {
        eventfd_write(event_, 1);
    } else {
        eventfd_read(event_, &value);
    }
}

void WireEnd::wait_for_frame() {
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (!frames_.empty()) {
                return;
            }
        }
        usleep(100);
    }
}

WirePeer::WirePeer(WireEnd& end, uint32_t number, uint32_t threading) {
    const tw_nic nic = end.nic();
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.nic = &nic;
    tw_address_parse(("10.0.0." + std::to_string(number + 1) + ":4791").c_str(), &attr.address);
    attr.mac[0] = 2;
    attr.mac[5] = static_cast<uint8_t>(number + 1);
    attr.packet_pool = end.pool();
    attr.max_peers = 16;
    attr.max_operations = 1024;
    attr.peer_timeout_ms = 60'000;  // a thread of a loaded machine is no dead peer
    attr.threading = threading;
    EXPECT_EQ(tw_worker_open(&attr, &worker), 0) << tw_last_error();
    EXPECT_EQ(tw_av_open(worker, &av), 0);
    EXPECT_EQ(tw_cq_open(worker, nullptr, &cq), 0);
    EXPECT_EQ(tw_cntr_open(worker, &receives), 0);
    EXPECT_EQ(tw_ep_open(worker, nullptr, &ep), 0);
    EXPECT_EQ(tw_ep_bind_av(ep, av), 0);
    EXPECT_EQ(tw_ep_bind_cq(ep, cq, TW_SEND | TW_RECV), 0);
    EXPECT_EQ(tw_ep_bind_cntr(ep, receives, TW_RECV), 0);
    EXPECT_EQ(tw_ep_enable(ep), 0) << tw_last_error();
}

WirePeer::~WirePeer() {
    EXPECT_EQ(tw_ep_close(ep), 0) << tw_last_error();
    EXPECT_EQ(tw_cntr_close(receives), 0);
    EXPECT_EQ(tw_cq_close(cq), 0);
    EXPECT_EQ(tw_av_close(av), 0);
    EXPECT_EQ(tw_worker_close(worker), 0) << tw_last_error();
}

tw_address WirePeer::name() const {
    tw_address address{};
    EXPECT_EQ(tw_ep_name(ep, &address), 0);
    return address;
}

tw_addr WirePeer::address_of(const WirePeer& other) {
    const tw_address address = other.name();
    tw_addr index = 0;
    EXPECT_EQ(tw_av_insert(av, &address, &index), 0) << tw_last_error();
    return index;
}

bool WirePeer::settle(WirePeer& other) {
    int quiet = 0;
    return wait_for(other, [&] { return ++quiet == 100; });
}

bool WirePeer::wait_for(WirePeer& other, const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
        tw_progress(worker);
        tw_progress(other.worker);
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
    }
    return true;
}

WirePair::WirePair(uint32_t threading, bool has_interrupt)
    : end_a(0, has_interrupt),
      end_b(1, has_interrupt),
      a((end_a.connect(end_b), end_a), 0, threading),
      b((end_b.connect(end_a), end_b), 1, threading) {}

}  // namespace tagwire::test
