// SPDX-License-Identifier: BSD-3-Clause
// The program's own options: what follows "--" on the command line. Names are those of DPDK's
// testpmd where the meaning is the same.
#pragma once

#include <rte_ether.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tagwire::testpmd {

enum class PlainMode { kIo, kMac, kRxonly, kTxonly };
enum class TagMode { kNone, kEcho, kGenerate, kSink };
enum class Topology { kPaired, kChained, kLoop };
enum class Steering { kAuto, kFlow, kRing };
enum class Pairing { kSame, kAll };

const char* name_of(PlainMode mode);
const char* name_of(TagMode mode);
std::vector<std::string> plain_mode_names();
std::vector<std::string> tag_mode_names();

// What happens to frames: a plain mode, and beside it perhaps a tag mode.
struct ForwardMode {
    PlainMode plain = PlainMode::kIo;
    TagMode tag = TagMode::kNone;

    std::string name() const;  // "io", "tagecho,mac"
};
// "mac", "tagecho" (frames that are no messages are dropped, as in rxonly) or "tagecho,mac".
// Throws Failure.
ForwardMode parse_forward_mode(const std::string& text);

inline constexpr uint16_t kMaxBurst = 512;
inline constexpr uint16_t kDefaultBurst = 32;
// Not the RoCEv2 port (4791): a card would take such packets for its own.
inline constexpr uint16_t kDefaultTagPort = 18515;

// Tagged messages.
struct TagOptions {
    std::string ip;  // of the first tag port; empty: 10.x.y.z from its MAC address
    uint16_t udp_port = kDefaultTagPort;  // of queue 0; queue q has q more
    uint64_t portmask = ~uint64_t{0};
    std::vector<std::string> peers;  // taggen: whom to send to, "IP[:PORT]"
    Pairing pairing = Pairing::kSame;
    uint16_t peer_queues = 0;  // 0: as many as here
    std::vector<uint64_t> sizes{64};
    uint64_t largest = 65536;  // tagecho, tagsink: the longest message that is taken
    uint64_t count = 0;        // messages for each peer's queue; 0: until stop
    uint32_t window = 32;      // of them under way
    uint64_t first_tag = 0;
    uint32_t tags = 16;
    double timeout_s = 10;
    Steering steering = Steering::kAuto;
};

struct Options {
    bool interactive = false;
    bool auto_start = false;
    uint32_t tx_first = 0;  // bursts
    std::string command_file;
    uint32_t stats_period_s = 0;

    uint32_t cores = 0;  // forwarding lcores; 0: one for each queue
    uint64_t portmask = ~uint64_t{0};
    Topology topology = Topology::kPaired;
    ForwardMode mode;
    uint16_t burst = kDefaultBurst;
    std::map<uint16_t, rte_ether_addr> peers;  // --eth-peer

    uint16_t rx_queues = 1;
    uint16_t tx_queues = 1;
    uint16_t rx_descriptors = 1024;
    uint16_t tx_descriptors = 1024;
    uint32_t mbufs = 0;      // 0: what the queues need
    uint32_t mbuf_size = 0;  // 0: a frame of the port's MTU
    uint32_t mbuf_cache = 250;
    uint16_t mtu = 0;  // 0: the port's
    uint64_t rss_types = 0;
    bool rss = true;
    bool flush_rx = true;
    bool start_ports = true;
    bool check_link = true;
    bool lock_memory = false;
    uint32_t idle_turns = 256;  // then the lcore yields its core; 0: never

    uint16_t tx_length = 64;  // txonly
    bool multi_flow = false;

    TagOptions tag;
};

// Prints help or version and throws Failure with ExitCode::kSuccess when asked for them.
Options parse_options(int argc, char** argv);

}  // namespace tagwire::testpmd
