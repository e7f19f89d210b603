// SPDX-License-Identifier: BSD-3-Clause
// Opening and closing a worker: everything that can be wrong is said here.
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "lib/tagwire/address.h"
#include "lib/tagwire/attributes.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/port_memory.h"
#include "lib/tagwire/worker.h"
#include "lib/transport/log.h"

namespace tagwire {
namespace {

constexpr uint32_t kDefaultPeers = 1024;
constexpr uint32_t kDefaultOperations = 65536;
constexpr uint32_t kMaxOperations = 1u << 24;
constexpr uint64_t kDefaultUnexpectedBytes = uint64_t{64} << 20;
constexpr uint32_t kDefaultPeerTimeoutMs = 10'000;
constexpr uint32_t kMostProbeMs = 10'000;
constexpr uint16_t kDefaultMtu = 1500;
constexpr uint32_t kPoolPackets = 8191;
constexpr uint32_t kPoolCache = 256;
constexpr uint64_t kConnectionSeed = 0x636f6e6e656374;  // so that ids are not the hash's seeds

bool is_zero(const uint8_t (&mac)[6]) {
    return std::all_of(mac, mac + 6, [](uint8_t byte) { return byte == 0; });
}

// A pipeline may poll the port itself, and still send through it.
bool sends_to_port(const tw_worker_attr& attr) {
    return attr.nic == nullptr || attr.nic->tx_burst == nullptr;
}

int check_nic(const tw_worker_attr& attr) {
    if (is_zero(attr.mac)) {
        return refuse(EINVAL, "tw_worker_open: with tx_burst of nic, mac is needed");
    }
    if (attr.packet_pool == nullptr) {
        return refuse(EINVAL, "tw_worker_open: with tx_burst of nic, packet_pool is needed");
    }
    return 0;
}

// A NIC may hold frames of the pool until its port is stopped, so the pool stays with
// the port's queue when the worker is closed, and serves the next one there.
int find_pool(tw_worker_attr* attr) {
    const size_t room = size_t{RTE_PKTMBUF_HEADROOM} + RTE_ETHER_HDR_LEN + attr->mtu;
    char name[RTE_MEMPOOL_NAMESIZE];
    std::snprintf(name, sizeof(name), "tagwire_%u_%u_%u", attr->port_id, attr->queue_id, attr->mtu);
    attr->packet_pool = rte_mempool_lookup(name);
    if (attr->packet_pool == nullptr) {
        attr->packet_pool = rte_pktmbuf_pool_create(
            name, kPoolPackets, kPoolCache, 0,
            static_cast<uint16_t>(RTE_ALIGN_CEIL(room, RTE_CACHE_LINE_SIZE)),
            static_cast<int>(rte_socket_id()));
    }
    if (attr->packet_pool == nullptr) {
        return fail(
            rte_errno,
            "tw_worker_open: no memory for %u frames of %zu bytes: %s (start EAL with more, -m)",
            kPoolPackets, room, rte_strerror(rte_errno));
    }
    return 0;
}

int complete_from_port(tw_worker_attr* attr) {
    if (!rte_eth_dev_is_valid_port(attr->port_id)) {
        return fail(ENODEV, "tw_worker_open: there is no port %u (%u ports found)", attr->port_id,
                    rte_eth_dev_count_avail());
    }
    rte_eth_dev_info info{};
    if (const int error = rte_eth_dev_info_get(attr->port_id, &info); error != 0) {
        return fail(-error, "tw_worker_open: port %u does not describe itself: %s", attr->port_id,
                    tw_strerror(error));
    }
    const uint16_t queues =
        attr->nic == nullptr ? std::min(info.nb_rx_queues, info.nb_tx_queues) : info.nb_tx_queues;
    if (attr->queue_id >= queues) {
        return fail(EINVAL,
                    "tw_worker_open: port %u has %u RX and %u TX queues; queue %u is not there",
                    attr->port_id, info.nb_rx_queues, info.nb_tx_queues, attr->queue_id);
    }
    uint16_t mtu = 0;
    if (rte_eth_dev_get_mtu(attr->port_id, &mtu) == 0) {
        if (attr->mtu > mtu) {
            return fail(
                EINVAL,
                "tw_worker_open: mtu %u is more than the %u of port %u, whose peers' frames "
                "would be lost: rte_eth_dev_set_mtu first",
                attr->mtu, mtu, attr->port_id);
        }
        if (attr->mtu == 0) {
            attr->mtu = mtu;
        }
    }
    if (is_zero(attr->mac)) {
        rte_ether_addr mac{};
        rte_eth_macaddr_get(attr->port_id, &mac);
        std::memcpy(attr->mac, mac.addr_bytes, sizeof(attr->mac));
    }
    return attr->packet_pool == nullptr ? find_pool(attr) : 0;
}

// Whether the program has configured the queue to compute checksums. A driver that does not
// describe its queues leaves it to us.
bool computes_udp_checksum(const tw_worker_attr& attr) {
    rte_eth_txq_info queue{};
    return rte_eth_tx_queue_info_get(attr.port_id, attr.queue_id, &queue) == 0 &&
           (queue.conf.offloads & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
}

void set_defaults(tw_worker_attr* attr) {
    const auto default_to = [](auto& value, auto otherwise) {
        if (value == 0) {
            value = otherwise;
        }
    };
    default_to(attr->mtu, kDefaultMtu);
    default_to(attr->max_peers, kDefaultPeers);
    default_to(attr->max_operations, kDefaultOperations);
    default_to(attr->unexpected_bytes, kDefaultUnexpectedBytes);
    default_to(attr->peer_timeout_ms, kDefaultPeerTimeoutMs);
}

// The transport asks for room for two messages of each peer.
uint32_t incoming_messages(const tw_worker_attr& attr) {
    return std::max(attr.max_operations, 2 * attr.max_peers);
}

}  // namespace

int Worker::open(const tw_worker_attr& given, tw_worker** worker) {
    tw_worker_attr attr = given;
    if (int error = check_address(attr.address); error != 0) {
        return error;
    }
    if (attr.address.family == 4 && (attr.address.ip[0] == 0 || attr.address.ip[0] >= 224)) {
        return fail(EINVAL, "tw_worker_open: %u.%u.%u.%u is no address of a host",
                    attr.address.ip[0], attr.address.ip[1], attr.address.ip[2], attr.address.ip[3]);
    }
    if (const int error = sends_to_port(attr) ? complete_from_port(&attr) : check_nic(attr);
        error != 0) {
        return error;
    }
    set_defaults(&attr);
    if (attr.max_operations > kMaxOperations || attr.max_peers > kMaxOperations) {
        const bool operations = attr.max_operations > kMaxOperations;
        return fail(EINVAL, "tw_worker_open: %s is %u, and at most %u",
                    operations ? "max_operations" : "max_peers",
                    operations ? attr.max_operations : attr.max_peers, kMaxOperations);
    }
    if (attr.probe_ms != 0 && (attr.nic != nullptr || attr.probe_ms > kMostProbeMs)) {
        return fail(EINVAL,
                    "tw_worker_open: probe_ms is %u; it is at most %u, and 0 with a nic, whose "
                    "frames do not arrive while the worker opens",
                    attr.probe_ms, kMostProbeMs);
    }
    if (attr.threading > TW_THREAD_SAFE) {
        return fail(EINVAL, "tw_worker_open: threading %u is none of enum tw_threading",
                    attr.threading);
    }
    uint64_t seed = attr.random_seed;
    if (seed == 0) {
        std::random_device random;
        seed = uint64_t{random()} << 32 | random();
    }
    auto opened = std::make_unique<tw_worker>(attr, seed);
    if (const int error = opened->make_transport(attr); error != 0) {
        return error;
    }
    if (const int error = attr.probe_ms != 0 ? opened->probe_address(attr) : 0; error != 0) {
        return error;
    }
    *worker = opened.release();
    return 0;
}

Worker::Worker(const tw_worker_attr& attr, uint64_t seed)
    : sends_(attr.max_operations),
      receives_(attr.max_operations),
      unexpected_(incoming_messages(attr)),
      contexts_(receives_),
      shared_(attr.threading == TW_THREAD_SAFE),
      address_(to_transport(attr.address)),
      match_seed_(seed),
      connections_(*this, seed ^ kConnectionSeed, uint64_t{attr.peer_timeout_ms} * 1'000'000) {
    address_.endpoint = 0;
    remote_memory_ = make_remote_memory(*this);
    for (uint8_t kind = 0; kind < wire::kMessageKinds; ++kind) {
        if (wire::is_remote_memory(static_cast<transport::MessageKind>(kind))) {
            handlers_[kind] = remote_memory_.get();
        }
    }
    handlers_[static_cast<size_t>(transport::MessageKind::kConnection)] = &connections_;
    if (attr.nic == nullptr) {
        waiting_.interrupt().use(attr.port_id, attr.queue_id);
    } else {
        waiting_.interrupt().use(*attr.nic);
    }
}

// Frames of the last turn may wait for one that does not come.
Worker::~Worker() {
    for (; has_events(); ++next_event_) {
        if (events_[next_event_].type == transport::EventType::kRecords) {
            transport_->records_done(events_[next_event_], 0);
        }
    }
}

// Sending from the program's memory, where it was asked for.
int Worker::lend(const tw_worker_attr& attr, transport::TransportConfig* config) {
    if (attr.zero_copy_bytes == 0) {
        return 0;
    }
    const bool port = sends_to_port(attr);
    const std::string obstacle = port ? why_not_lend(attr.port_id, attr.queue_id) : "";
    if (!obstacle.empty()) {
        return fail(ENOTSUP,
                    "tw_worker_open: zero_copy_bytes is %u, but %s; change that, or leave "
                    "zero_copy_bytes 0",
                    attr.zero_copy_bytes, obstacle.c_str());
    }
    const char* reason = nullptr;
    MemoryWatch* watch = port ? MemoryWatch::get(&reason) : nullptr;
    if (port && watch == nullptr) {
        TAGWIRE_LOG(WARNING, "large messages from memory that is not EAL's are copied: %s", reason);
    }
    std::unique_ptr<DeviceMemory> device;
    if (port) {
        device = PortMemory::of(attr.port_id);
    }
    lending_ = std::make_unique<Lending>(LoanBook::open(std::move(device), watch));
    config->lender = lending_.get();
    config->zero_copy_bytes = attr.zero_copy_bytes;
    return 0;
}

// Several times, since a frame may get lost, and a station that sleeps answers late.
int Worker::probe_address(const tw_worker_attr& attr) {
    using std::chrono::steady_clock;
    constexpr int kProbes = 3;
    const auto start = steady_clock::now();
    const auto patience = std::chrono::milliseconds(attr.probe_ms);
    transport::MacAddress rival;
    for (int probe = 1; probe <= kProbes;) {
        progress();  // the first turn sends the first probe
        if (transport_->address_is_taken(&rival)) {
            const uint8_t* ip = attr.address.ip;
            return fail(EADDRINUSE,
                        "tw_worker_open: another station, %s, has the IP address %u.%u.%u.%u: give "
                        "each worker one of its own",
                        transport::format(rival).c_str(), ip[0], ip[1], ip[2], ip[3]);
        }
        if (steady_clock::now() - start >= patience * probe / kProbes && ++probe <= kProbes) {
            transport_->probe_address();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    transport_->claim_address();
    return 0;
}

int Worker::make_transport(const tw_worker_attr& attr) {
    transport::PacketIo* io = nullptr;
    transport::Clock* clock = nullptr;
    if (attr.nic != nullptr) {
        user_nic_ = std::make_unique<UserNic>(*attr.nic, PortNic(attr.port_id, attr.queue_id));
        io = user_nic_.get();
        clock = user_nic_.get();
    } else {
        port_ = std::make_unique<PortNic>(attr.port_id, attr.queue_id);
        io = port_.get();
    }
    if (attr.nic == nullptr || attr.nic->now_ns == nullptr) {
        tsc_ = std::make_unique<TscClock>();
        clock = tsc_.get();
    }
    clock_ = clock;
    transport::TransportConfig config;
    config.local = address_;
    std::copy(attr.mac, attr.mac + sizeof(attr.mac), config.mac.bytes.begin());
    config.mtu = attr.mtu;
    config.packet_pool = attr.packet_pool;
    config.max_peers = attr.max_peers;
    config.max_incoming_messages = unexpected_.capacity();
    config.held_bytes_limit = attr.unexpected_bytes;
    config.peer_timeout_ns = uint64_t{attr.peer_timeout_ms} * 1'000'000;
    config.random_seed = attr.random_seed;
    config.incarnation = attr.random_seed;
    config.groups_records = true;
    config.probes_address = attr.probe_ms != 0;
    config.nic_udp_checksum = sends_to_port(attr) && computes_udp_checksum(attr);
    if (const int result = lend(attr, &config); result != 0) {
        return result;
    }
    std::string error;
    transport_ = transport::Transport::create(config, *io, *clock, &error);
    if (transport_ == nullptr) {
        return fail(EINVAL, "tw_worker_open: %s", error.c_str());
    }
    return 0;
}

}  // namespace tagwire

void tw_worker_attr_init(tw_worker_attr* attr) {
    if (attr != nullptr) {
        *attr = {};
        attr->size = sizeof(*attr);
    }
}

int tw_worker_open(const tw_worker_attr* attr, tw_worker** worker) {
    using namespace tagwire;
    if (attr == nullptr || worker == nullptr) {
        return refuse(EINVAL, "tw_worker_open: attr and worker cannot be NULL");
    }
    tw_worker_attr known{};
    if (const int error = take_attributes(attr, &known, "tw_worker_attr"); error != 0) {
        return error;
    }
    return guarded([&] { return Worker::open(known, worker); });
}

int tw_worker_close(tw_worker* worker) {
    using namespace tagwire;
    if (worker == nullptr) {
        return refuse(EINVAL, "tw_worker_close: worker cannot be NULL");
    }
    if (worker->has_children()) {
        return refuse(
            EBUSY,
            "tw_worker_close: close its endpoints, queues, counters, address vectors, regions and "
            "waits first");
    }
    delete worker;
    return 0;
}

int tw_worker_shutdown(tw_worker* worker) {
    using namespace tagwire;
    if (worker == nullptr) {
        return refuse(EINVAL, "tw_worker_shutdown: worker cannot be NULL");
    }
    const Guard guard(*worker);
    worker->connections().shutdown_all();
    return worker->transport().quiesce() ? 0
                                         : refuse(EAGAIN,
                                                  "tw_worker_shutdown: operations are under way; "
                                                  "call tw_progress and try again");
}
