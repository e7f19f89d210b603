// SPDX-License-Identifier: BSD-3-Clause
#include "test/mlx5raw/port_fixture.h"

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "drivers/softcx/softcx.h"

namespace tagwire::mlx5raw {

std::string rdma_device(unsigned index) {
    if (on_softcx()) {
        return "mlx5_" + std::to_string(index);
    }
    const char* const set = getenv("TAGWIRE_HW_DEVICES");
    const std::string both = set == nullptr ? "" : set;
    const size_t comma = std::min(both.find(','), both.size());
    return index == 0 ? both.substr(0, comma) : both.substr(std::min(comma + 1, both.size()));
}

unsigned open_descriptors() {
    unsigned count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code closed;
        const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), closed);
        count += !closed && target != "anon_inode:[eventpoll]" ? 1 : 0;
    }
    return count;
}

rte_mempool* PortPair::pool = nullptr;

void PortPair::SetUp() {
    if (pool == nullptr) {
        pool = rte_pktmbuf_pool_create("test", kPoolSize, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    }
    ASSERT_NE(pool, nullptr);
    pool_before = rte_mempool_avail_count(pool);
}

void PortPair::TearDown() {
    close();
    EXPECT_EQ(rte_mempool_avail_count(pool), pool_before) << "mbufs are missing";
}

void PortPair::open(const PortOptions& options) {
    for (unsigned i = 0; i < 2; ++i) {
        const std::string arguments =
            "ibdev=" + rdma_device(i) + (options.devargs.empty() ? "" : "," + options.devargs);
        ASSERT_EQ(rte_vdev_init(name_of(i).c_str(), arguments.c_str()), 0);
        ++opened;
        ASSERT_EQ(rte_eth_dev_get_port_by_name(name_of(i).c_str(), &ports[i]), 0);
        configure(ports[i], options);
        if (options.start) {
            ASSERT_EQ(rte_eth_dev_start(ports[i]), 0);
        }
    }
}

void PortPair::configure(uint16_t port, const PortOptions& options) {
    rte_eth_conf conf = {};
    conf.rxmode.mtu = options.mtu;
    conf.rxmode.offloads = options.rx_offloads;
    conf.txmode.offloads = options.tx_offloads;
    conf.intr_conf = options.interrupts;
    if (options.rss_types != 0) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = options.rss_types;
    }
    ASSERT_EQ(rte_eth_dev_configure(port, options.queues, options.queues, &conf), 0);
    for (uint16_t queue = 0; queue < options.queues; ++queue) {
        ASSERT_EQ(rte_eth_rx_queue_setup(port, queue, options.descriptors, 0, nullptr, pool), 0);
        ASSERT_EQ(rte_eth_tx_queue_setup(
                      port, queue,
                      options.tx_descriptors != 0 ? options.tx_descriptors : options.descriptors, 0,
                      nullptr),
                  0);
    }
}

void PortPair::close() {
    for (unsigned i = 0; i < opened; ++i) {
        if (rte_eth_dev_is_valid_port(ports[i])) {
            EXPECT_EQ(rte_eth_dev_stop(ports[i]), 0);
        }
        EXPECT_EQ(rte_vdev_uninit(name_of(i).c_str()), 0);
    }
    opened = 0;
}

rte_mbuf* PortPair::make_mbuf(const Frame& frame, const std::vector<size_t>& cuts) {
    rte_mbuf* head = nullptr;
    size_t from = 0;
    std::vector<size_t> ends = cuts;
    ends.push_back(frame.size());
    for (const size_t end : ends) {
        rte_mbuf* const segment = rte_pktmbuf_alloc(pool);
        memcpy(rte_pktmbuf_append(segment, static_cast<uint16_t>(end - from)), &frame[0] + from,
               end - from);
        from = end;
        if (head == nullptr) {
            head = segment;
        } else {
            rte_pktmbuf_chain(head, segment);
        }
    }
    return head;
}

void PortPair::send(uint16_t port, uint16_t queue, const std::vector<rte_mbuf*>& packets) {
    size_t sent = 0;
    while (sent < packets.size()) {
        std::vector<rte_mbuf*> rest(packets.begin() + static_cast<ptrdiff_t>(sent), packets.end());
        const uint16_t now =
            rte_eth_tx_burst(port, queue, rest.data(), static_cast<uint16_t>(rest.size()));
        sent += now;
        if (now == 0) {
            ASSERT_GT(softcx_step(), 0) << "the ring stays full";
        }
    }
}

void PortPair::settle() {
    while (softcx_step() > 0) {
    }
}

std::vector<Received> PortPair::receive(uint16_t port) {
    std::vector<Received> result;
    rte_eth_dev_info info;
    EXPECT_EQ(rte_eth_dev_info_get(port, &info), 0);
    for (uint16_t queue = 0; queue < info.nb_rx_queues; ++queue) {
        rte_mbuf* packets[32];
        while (const uint16_t count = rte_eth_rx_burst(port, queue, packets, 32)) {
            for (uint16_t i = 0; i < count; ++i) {
                rte_mbuf* const packet = packets[i];
                const char* reason = nullptr;
                EXPECT_EQ(rte_mbuf_check(packet, 1, &reason), 0) << reason;
                EXPECT_EQ(packet->port, port);
                Received got;
                got.queue = queue;
                got.segments = packet->nb_segs;
                got.flags = packet->ol_flags;
                got.packet_type = packet->packet_type;
                got.hash = packet->hash.rss;
                got.mark = packet->hash.fdir.hi;
                for (const rte_mbuf* s = packet; s != nullptr; s = s->next) {
                    const auto* data = rte_pktmbuf_mtod(s, const uint8_t*);
                    got.bytes.insert(got.bytes.end(), data, data + s->data_len);
                }
                EXPECT_EQ(got.bytes.size(), packet->pkt_len);
                result.push_back(std::move(got));
                rte_pktmbuf_free(packet);
            }
            softcx_step();
        }
    }
    return result;
}

std::vector<Received> PortPair::exchange(const Frame& frame, const std::vector<size_t>& cuts) {
    send(ports[0], 0, {make_mbuf(frame, cuts)});
    settle();
    return receive(ports[1]);
}

rte_ether_addr PortPair::mac_of(uint16_t port) const {
    rte_ether_addr address;
    rte_eth_macaddr_get(port, &address);
    return address;
}

rte_eth_stats PortPair::stats_of(uint16_t port) const {
    rte_eth_stats stats = {};
    EXPECT_EQ(rte_eth_stats_get(port, &stats), 0);
    return stats;
}

std::map<std::string, uint64_t> PortPair::xstats_of(uint16_t port) const {
    const int count = rte_eth_xstats_get_names(port, nullptr, 0);
    std::vector<rte_eth_xstat_name> names(static_cast<size_t>(count));
    std::vector<rte_eth_xstat> values(static_cast<size_t>(count));
    EXPECT_EQ(rte_eth_xstats_get_names(port, names.data(), static_cast<unsigned>(count)), count);
    EXPECT_EQ(rte_eth_xstats_get(port, values.data(), static_cast<unsigned>(count)), count);
    std::map<std::string, uint64_t> result;
    for (size_t i = 0; i < values.size(); ++i) {
        result[names[values[i].id].name] = values[i].value;
    }
    EXPECT_EQ(result.size(), static_cast<size_t>(count)) << "two xstats share a name";
    return result;
}

Frame PortPair::ethernet_frame(size_t size, uint16_t ether_type) const {
    Frame frame = ethernet_frame_to(mac_of(ports[1]), size);
    frame[12] = static_cast<uint8_t>(ether_type >> 8);
    frame[13] = static_cast<uint8_t>(ether_type);
    return frame;
}

Frame PortPair::ethernet_frame_to(const rte_ether_addr& destination, size_t size) const {
    Frame frame(size);
    for (size_t i = 0; i < size; ++i) {
        frame[i] = static_cast<uint8_t>(i * 7 + size);
    }
    const rte_ether_addr source = mac_of(ports[0]);
    memcpy(&frame[0], destination.addr_bytes, RTE_ETHER_ADDR_LEN);
    memcpy(&frame[6], source.addr_bytes, RTE_ETHER_ADDR_LEN);
    frame[12] = 0x88;  // local experimental EtherType
    frame[13] = 0xb5;
    return frame;
}

int run_alone(const std::string& test) {
    std::string program = "/proc/self/exe";
    std::string filter = "--gtest_filter=" + test;
    char* arguments[] = {program.data(), filter.data(), nullptr};
    pid_t child = 0;
    int status = 0;
    if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0 ||
        waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        return -1;
    }
    return WEXITSTATUS(status);
}

Frame vlan_frame(const Frame& frame, uint16_t tci) {
    constexpr size_t kAddresses = 2 * RTE_ETHER_ADDR_LEN;
    Frame result(frame.size() + sizeof(rte_vlan_hdr));
    memcpy(&result[0], &frame[0], kAddresses);
    result[kAddresses] = 0x81;
    result[kAddresses + 1] = 0;
    result[kAddresses + 2] = static_cast<uint8_t>(tci >> 8);
    result[kAddresses + 3] = static_cast<uint8_t>(tci);
    memcpy(&result[kAddresses + 4], &frame[kAddresses], frame.size() - kAddresses);
    return result;
}

Frame ip_frame(const rte_ether_addr& to, const FlowAddresses& flow, uint8_t protocol,
               size_t payload, Broken broken) {
    const bool v4 = flow.source.size() == 4;
    const size_t l3_size = v4 ? sizeof(rte_ipv4_hdr) : sizeof(rte_ipv6_hdr);
    const size_t l4_size = protocol == IPPROTO_TCP ? sizeof(rte_tcp_hdr) : sizeof(rte_udp_hdr);
    Frame frame(RTE_ETHER_HDR_LEN + l3_size + l4_size + payload);
    auto* ethernet = reinterpret_cast<rte_ether_hdr*>(&frame[0]);
    ethernet->dst_addr = to;
    ethernet->src_addr = {{2, 0, 0, 0, 0, 99}};
    ethernet->ether_type = rte_cpu_to_be_16(v4 ? RTE_ETHER_TYPE_IPV4 : RTE_ETHER_TYPE_IPV6);
    uint8_t* const l3 = &frame[RTE_ETHER_HDR_LEN];
    uint8_t* const l4 = l3 + l3_size;
    for (size_t i = 0; i < payload; ++i) {
        l4[l4_size + i] = static_cast<uint8_t>(i + 1);
    }
    const auto l4_length = static_cast<uint16_t>(l4_size + payload);
    if (protocol == IPPROTO_TCP) {
        auto* tcp = reinterpret_cast<rte_tcp_hdr*>(l4);
        tcp->src_port = rte_cpu_to_be_16(flow.source_port);
        tcp->dst_port = rte_cpu_to_be_16(flow.destination_port);
        tcp->data_off = sizeof(rte_tcp_hdr) / 4 << 4;
        tcp->tcp_flags = RTE_TCP_ACK_FLAG;
    } else {
        auto* udp = reinterpret_cast<rte_udp_hdr*>(l4);
        udp->src_port = rte_cpu_to_be_16(flow.source_port);
        udp->dst_port = rte_cpu_to_be_16(flow.destination_port);
        udp->dgram_len = rte_cpu_to_be_16(l4_length);
    }
    uint16_t sum = 0;
    if (v4) {
        auto* ip = reinterpret_cast<rte_ipv4_hdr*>(l3);
        ip->version_ihl = 0x45;
        ip->total_length = rte_cpu_to_be_16(static_cast<uint16_t>(l3_size + l4_length));
        ip->time_to_live = 64;
        ip->next_proto_id = protocol;
        memcpy(&ip->src_addr, flow.source.data(), 4);
        memcpy(&ip->dst_addr, flow.destination.data(), 4);
        sum = rte_ipv4_udptcp_cksum(ip, l4);
        ip->hdr_checksum = rte_ipv4_cksum(ip);
        if (broken == Broken::kIp) {
            ip->hdr_checksum ^= 0x5555;
        }
    } else {
        auto* ip = reinterpret_cast<rte_ipv6_hdr*>(l3);
        ip->vtc_flow = rte_cpu_to_be_32(6u << 28);
        ip->payload_len = rte_cpu_to_be_16(l4_length);
        ip->proto = protocol;
        ip->hop_limits = 64;
        memcpy(&ip->src_addr, flow.source.data(), 16);
        memcpy(&ip->dst_addr, flow.destination.data(), 16);
        sum = rte_ipv6_udptcp_cksum(ip, l4);
    }
    if (broken == Broken::kL4) {
        sum ^= 0x5555;
    }
    if (protocol == IPPROTO_TCP) {
        reinterpret_cast<rte_tcp_hdr*>(l4)->cksum = sum;
    } else {
        reinterpret_cast<rte_udp_hdr*>(l4)->dgram_cksum = sum;
    }
    return frame;
}

}  // namespace tagwire::mlx5raw

int main(int argc, char** argv) {
    using tagwire::mlx5raw::on_softcx, tagwire::mlx5raw::rdma_device;
    testing::InitGoogleTest(&argc, argv);
    if (on_softcx()) {
        setenv("SOFTCX_DEVICES", "2", 1);
        setenv("SOFTCX_WIRE", "pair", 1);
        setenv("SOFTCX_MODE", "step", 0);  // another one: see run_alone
    } else if (rdma_device(0).empty() || rdma_device(1).empty()) {
        fprintf(stderr, "set TAGWIRE_HW_DEVICES to two connected devices, such as mlx5_0,mlx5_1\n");
        return 2;
    }
    const char* arguments[] = {argv[0],         "--no-huge", "-m", "512",           "--no-pci",
                               "--no-shconf",   "-l",        "0",  "--file-prefix", "mlx5raw_test",
                               "--no-telemetry"};
    if (rte_eal_init(static_cast<int>(std::size(arguments)), const_cast<char**>(arguments)) < 0) {
        fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
        return 1;
    }
    const int result = RUN_ALL_TESTS();
    rte_eal_cleanup();
    return result;
}
