// SPDX-License-Identifier: BSD-3-Clause
#include "test/tagwire/sim_peer.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

#include "lib/tagwire/address.h"
#include "lib/tagwire/counter.h"
#include "lib/tagwire/endpoint.h"
#include "test/sim/nic.h"

namespace tagwire::test {

SimPeer::SimPeer(sim::Node& node, const PeerOptions& options) : node_(node), options_(options) {
    start();
}

void SimPeer::start() {
    tw_nic nic = sim::nic(node_);
    if (options_.pipeline) {
        nic.rx_burst = nullptr;
    }
    if (options_.tx_burst != nullptr) {
        nic.tx_burst = options_.tx_burst;
    }
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.nic = &nic;
    attr.address = from_transport(node_.address());
    const auto mac = node_.mac();
    std::copy(mac.begin(), mac.end(), attr.mac);
    attr.packet_pool = node_.pool();
    attr.max_peers = 16;
    attr.max_operations = options_.max_operations;
    attr.peer_timeout_ms = options_.peer_timeout_ms;
    attr.unexpected_bytes = options_.unexpected_bytes;
    attr.zero_copy_bytes = options_.zero_copy_bytes;
    attr.random_seed = 1000 * ++life_ + node_.index() + 1;
    ASSERT_EQ(tw_worker_open(&attr, &worker), 0) << tw_last_error();
    const tw_cq_attr cq_attr{sizeof(tw_cq_attr), options_.cq_entries};
    ASSERT_EQ(tw_av_open(worker, &av), 0) << tw_last_error();
    ASSERT_EQ(tw_cq_open(worker, &cq_attr, &cq), 0) << tw_last_error();
    tw_ep_attr ep_attr{};
    ep_attr.size = sizeof(ep_attr);
    ep_attr.tx_flags = options_.tx_flags;
    ep_attr.rx_flags = options_.rx_flags;
    ep_attr.auth_key = options_.auth_key.empty() ? nullptr : options_.auth_key.data();
    ep_attr.auth_key_size = options_.auth_key.size();
    ASSERT_EQ(tw_ep_open(worker, &ep_attr, &ep), 0) << tw_last_error();
    ASSERT_EQ(tw_cntr_open(worker, &send_counter), 0);
    ASSERT_EQ(tw_cntr_open(worker, &receive_counter), 0);
    if (options_.counters) {
        ASSERT_EQ(tw_ep_bind_cntr(ep, send_counter, TW_SEND), 0) << tw_last_error();
        ASSERT_EQ(tw_ep_bind_cntr(ep, receive_counter, TW_RECV), 0) << tw_last_error();
    }
    ASSERT_EQ(tw_ep_bind_av(ep, av), 0) << tw_last_error();
    ASSERT_EQ(tw_ep_bind_cq(ep, cq, TW_SEND | TW_RECV | options_.cq_flags), 0) << tw_last_error();
    ASSERT_EQ(tw_ep_enable(ep), 0) << tw_last_error();
    node_.run([this] { return turn(); });
}

void SimPeer::die() {
    node_.stop();
    if (before_death) {
        before_death();
    }
    delete ep;
    delete cq;
    delete av;
    delete send_counter;
    delete receive_counter;
    delete worker;
    ep = nullptr;
    cq = nullptr;
    av = nullptr;
    send_counter = receive_counter = nullptr;
    worker = nullptr;
}

uint64_t SimPeer::turn() {
    if (options_.pipeline) {
        offer_frames();
    }
    tw_progress(worker);
    if (read_completions) {
        drain();
    }
    if (each_turn) {
        each_turn();
    }
    return tw_worker_deadline(worker);
}

void SimPeer::offer_frames() {
    rte_mbuf* packets[32];
    for (;;) {
        const uint16_t received = node_.rx_burst(packets, 32);
        if (received == 0) {
            return;
        }
        const uint16_t given_back = tw_worker_input(worker, packets, received);
        for (uint16_t i = 0; i < given_back; ++i) {
            const auto* data = rte_pktmbuf_mtod(packets[i], const uint8_t*);
            foreign.emplace_back(data, data + packets[i]->data_len);
            rte_pktmbuf_free(packets[i]);
        }
    }
}

void SimPeer::drain() {
    tw_cq_entry entry;
    for (;;) {
        const ssize_t count = tw_cq_read(cq, &entry, 1);
        if (count == 1) {
            constexpr uint64_t kOwn = TW_SEND | TW_WRITE | TW_READ | TW_FLUSH;
            ((entry.flags & kOwn) != 0 ? sent : received).push_back(entry);
        } else if (count == -TW_EAVAIL) {
            tw_cq_error error;
            ASSERT_EQ(tw_cq_readerr(cq, &error), 1);
            errors.push_back(error);
        } else {
            ASSERT_EQ(count, -EAGAIN);
            return;
        }
    }
}

tw_address SimPeer::name() const {
    tw_address address = from_transport(node_.address());
    return address;
}

tw_addr SimPeer::address_of(const SimPeer& other) {
    const tw_address address = other.name();
    tw_addr index = 0;
    EXPECT_EQ(tw_av_insert(av, &address, &index), 0) << tw_last_error();
    return index;
}

void SimPeer::send(const SimPeer& to, uint64_t tag, const std::string& payload, void* context) {
    const std::string& kept = payloads_.emplace_back(payload);
    ASSERT_EQ(tw_tsend(ep, kept.data(), kept.size(), address_of(to), tag, context), 0)
        << tw_last_error();
    wake();
}

void SimPeer::receive(std::string& buffer, uint64_t tag, uint64_t ignore, tw_addr source,
                      void* context) {
    ASSERT_EQ(tw_trecv(ep, buffer.data(), buffer.size(), source, tag, ignore, context), 0)
        << tw_last_error();
    wake();
}

namespace {

uint64_t value_of(const std::vector<tw_stat>& stats, const std::string& name) {
    for (const tw_stat& stat : stats) {
        if (name == stat.name) {
            return stat.value;
        }
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
}

}  // namespace

uint64_t SimPeer::stat(const std::string& name) const {
    std::vector<tw_stat> stats(static_cast<size_t>(tw_worker_stats(worker, nullptr, 0)));
    tw_worker_stats(worker, stats.data(), static_cast<int>(stats.size()));
    return value_of(stats, name);
}

uint64_t SimPeer::peer_stat(const SimPeer& peer, const std::string& name) {
    const tw_addr address = address_of(peer);
    std::vector<tw_stat> stats(static_cast<size_t>(tw_peer_stats(ep, address, nullptr, 0)));
    tw_peer_stats(ep, address, stats.data(), static_cast<int>(stats.size()));
    return value_of(stats, name);
}

std::string pattern(uint64_t tag, size_t length) {
    std::string bytes(length, '\0');
    uint64_t state = tag * 0x9e3779b97f4a7c15u + length;
    size_t at = 0;
    for (; at + 8 <= length; at += 8) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        std::memcpy(bytes.data() + at, &state, 8);
    }
    for (; at < length; ++at) {
        bytes[at] = static_cast<char>(at + tag);
    }
    return bytes;
}

}  // namespace tagwire::test
