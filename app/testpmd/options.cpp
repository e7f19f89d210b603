// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <charconv>
#include <CLI/CLI.hpp>

#include "app/perf/addresses.h"
#include "app/perf/failure.h"
#include "app/perf/sizes.h"

namespace tagwire::testpmd {

using perf::ExitCode;
using perf::Failure;

namespace {

constexpr const char* kDescription =
    "Forwards frames between DPDK ports, as dpdk-testpmd does, and exchanges tagged messages on\n"
    "the same queues. Options have testpmd's names where they mean the same.\n"
    "  tagwire-testpmd [EAL arguments] -- -i --rxq=2 --txq=2\n"
    "  tagwire-testpmd [EAL arguments] -- --forward-mode=tagecho,mac --tag-ip=10.0.0.1\n"
    "Without a card, start it under softcx-run --wire switch:NAME.";

constexpr const char* kFooter =
    "Options before '--' are DPDK's EAL arguments (--vdev, -a, -l, -m, --no-huge ...).\n"
    "Exit status: 0 right; 1 wrong arguments, a command file with errors, or tagged messages that\n"
    "were lost or had wrong contents. A signal ends the program in order, then by that signal.";

// As they are typed, before they are understood.
struct Texts {
    std::string mode = "io";
    std::string portmask, tag_portmask;
    std::vector<std::string> eth_peers;
    std::string sizes = "64", largest;
    std::string tag = "0";
    uint32_t max_packet = 0;
    bool rss_ip = false, rss_udp = false;
};

uint64_t parse_mask(const std::string& option, const std::string& text) {
    std::string_view digits = text;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
        digits.remove_prefix(2);
    }
    uint64_t mask = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), mask, 16);
    if (error != std::errc() || end != digits.data() + digits.size() || mask == 0) {
        throw Failure(fmt::format("{}={} is no mask of ports", option, text),
                      "give a hexadecimal number, bit 0 for port 0: 0x3");
    }
    return mask;
}

uint64_t parse_tag(const std::string& text) {
    uint64_t tag = 0;
    const bool hex = text.starts_with("0x");
    const char* start = text.data() + (hex ? 2 : 0);
    const char* stop = text.data() + text.size();
    const auto [end, error] = std::from_chars(start, stop, tag, hex ? 16 : 10);
    if (error != std::errc() || end != stop || tag >> 63 != 0) {
        throw Failure(fmt::format("--tag={} is no tag", text),
                      "give a number below 2^63 (the highest bit marks what tagecho sends back)");
    }
    return tag;
}

void parse_eth_peer(const std::string& text, Options& options) {
    const size_t comma = text.find(',');
    uint16_t port = 0;
    rte_ether_addr mac{};
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + std::min(comma, text.size()), port);
    if (comma == std::string::npos || error != std::errc() || end != text.data() + comma ||
        port >= RTE_MAX_ETHPORTS || rte_ether_unformat_addr(text.c_str() + comma + 1, &mac) != 0) {
        throw Failure(fmt::format("--eth-peer={} is no peer", text),
                      fmt::format("give a port below {} and its peer's address: "
                                  "--eth-peer=0,02:00:00:00:00:42",
                                  RTE_MAX_ETHPORTS));
    }
    options.peers[port] = mac;
}

void add_program(CLI::App& app, Options& options) {
    app.add_flag("-i,--interactive", options.interactive, "a prompt; forwarding begins with start");
    app.add_flag("-a,--auto-start", options.auto_start, "with -i: start forwarding at once");
    app.add_flag("--tx-first", options.tx_first, "without -i: send a burst first");
    app.add_option("--cmdline-file", options.command_file, "commands to run before the prompt")
        ->type_name("FILE");
    app.add_option("--stats-period", options.stats_period_s,
                   "without -i: show the ports' counters every N seconds")
        ->type_name("N");
}

void add_forwarding(CLI::App& app, Options& options, Texts& texts) {
    app.add_option("--nb-cores", options.cores,
                   "forwarding lcores (default: one for each queue of a pair of ports)")
        ->check(CLI::Range(1, RTE_MAX_LCORE))
        ->type_name("N");
    app.add_option("--portmask", texts.portmask, "ports that forward, a hexadecimal mask")
        ->type_name("MASK");
    app.add_option("--port-topology", options.topology, "paired (default), chained, loop")
        ->transform(
            CLI::CheckedTransformer(std::map<std::string, Topology>{{"paired", Topology::kPaired},
                                                                    {"chained", Topology::kChained},
                                                                    {"loop", Topology::kLoop}}))
        ->type_name("NAME");
    app.add_option("--forward-mode", texts.mode,
                   "io, mac, rxonly, txonly; or tagecho, taggen, tagsink, or one of these and a "
                   "plain one for frames that are no messages: tagecho,mac")
        ->capture_default_str()
        ->type_name("MODE");
    app.add_option("--burst", options.burst, "frames in a burst")
        ->capture_default_str()
        ->check(CLI::Range(1, int{kMaxBurst}))
        ->type_name("N");
    app.add_option("--eth-peer", texts.eth_peers,
                   "where mac and txonly send to from a port (default 02:00:00:00:00:PORT)")
        ->allow_extra_args(false)
        ->type_name("PORT,MAC");
    app.add_option("--txpkts", options.tx_length, "length of txonly's frames")
        ->capture_default_str()
        ->check(CLI::Range(60, 9600))
        ->type_name("BYTES");
    app.add_flag("--txonly-multi-flow", options.multi_flow, "txonly: many source addresses");
    app.add_flag_callback(
        "--no-flush-rx", [&options] { options.flush_rx = false; },
        "keep what arrived before start");
    app.add_option("--idle-turns", options.idle_turns,
                   "empty turns after which an lcore lets others have its core; 0: never")
        ->capture_default_str()
        ->type_name("N");
}

void add_ports(CLI::App& app, Options& options, Texts& texts) {
    const auto queues = CLI::Range(1, RTE_MAX_QUEUES_PER_PORT);
    const auto descriptors = CLI::Range(1, 65535);
    app.add_option("--rxq", options.rx_queues, "RX queues of each port")
        ->capture_default_str()
        ->check(queues)
        ->type_name("N");
    app.add_option("--txq", options.tx_queues, "TX queues of each port")
        ->capture_default_str()
        ->check(queues)
        ->type_name("N");
    app.add_option("--rxd", options.rx_descriptors, "descriptors of an RX ring")
        ->capture_default_str()
        ->check(descriptors)
        ->type_name("N");
    app.add_option("--txd", options.tx_descriptors, "descriptors of a TX ring")
        ->capture_default_str()
        ->check(descriptors)
        ->type_name("N");
    app.add_option("--total-num-mbufs", options.mbufs, "mbufs (default: what the queues need)")
        ->check(CLI::Range(1024u, 1u << 27))
        ->type_name("N");
    app.add_option("--mbuf-size", options.mbuf_size, "bytes of an mbuf's data (default: a frame)")
        ->check(CLI::Range(1024, 65535))
        ->type_name("BYTES");
    app.add_option("--mbcache", options.mbuf_cache, "mbufs that an lcore keeps at hand")
        ->capture_default_str()
        ->check(CLI::Range(0, RTE_MEMPOOL_CACHE_MAX_SIZE))
        ->type_name("N");
    app.add_option("--max-pkt-len", texts.max_packet, "longest frame, with its header and FCS")
        ->check(CLI::Range(1298, 9618))
        ->type_name("BYTES");
    app.add_flag("--rss-ip", texts.rss_ip, "RSS over addresses (the default)");
    app.add_flag("--rss-udp", texts.rss_udp, "RSS over addresses and UDP ports");
    app.add_flag_callback(
        "--disable-rss", [&options] { options.rss = false; }, "everything to queue 0");
    app.add_flag_callback(
        "--disable-link-check", [&options] { options.check_link = false; },
        "do not wait for links");
    app.add_flag_callback(
        "--disable-device-start", [&options] { options.start_ports = false; },
        "ports start with: port start all");
    app.add_flag("--mlockall,!--no-mlockall", options.lock_memory, "lock all memory");
}

void add_tags(CLI::App& app, Options& options, Texts& texts) {
    TagOptions& tag = options.tag;
    app.add_option("--tag-ip", tag.ip,
                   "this side's IP[:PORT]; the next port has the next address, queue q the UDP "
                   "port PORT+q (default: 10.x.y.z, the last bytes of the MAC address)")
        ->type_name("ADDRESS");
    app.add_option("--tag-portmask", texts.tag_portmask, "ports with messages (default: all)")
        ->type_name("MASK");
    app.add_option("--tag-peer", tag.peers, "taggen: whom to send to, IP[:PORT] of its queue 0")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("ADDRESS,...");
    app.add_option("--tag-pairing", tag.pairing,
                   "same: queue q sends to the peer's queue q; all: to every queue of the peer")
        ->transform(CLI::CheckedTransformer(
            std::map<std::string, Pairing>{{"same", Pairing::kSame}, {"all", Pairing::kAll}}))
        ->type_name("NAME");
    app.add_option("--tag-peer-queues", tag.peer_queues, "queues of a peer (default: as here)")
        ->check(CLI::Range(1, RTE_MAX_QUEUES_PER_PORT))
        ->type_name("N");
    app.add_option("--tag-size", texts.sizes, "taggen: sizes in turn, 8 or 8,64,4K or 1:64K")
        ->capture_default_str()
        ->type_name("SIZE");
    app.add_option("--tag-max-size", texts.largest,
                   "tagecho, tagsink: the longest message that is taken (default 64K)")
        ->type_name("SIZE");
    app.add_option("--tag-count", tag.count,
                   "taggen: messages from each queue to each peer; 0: until stop")
        ->capture_default_str()
        ->type_name("N");
    app.add_option("--tag-window", tag.window, "messages under way with a peer, buffers of a queue")
        ->capture_default_str()
        ->check(CLI::Range(1, 4096))
        ->type_name("N");
    app.add_option("--tag", texts.tag, "taggen: the first tag")
        ->capture_default_str()
        ->type_name("TAG");
    app.add_option("--tags", tag.tags, "taggen: tags in turn")
        ->capture_default_str()
        ->check(CLI::Range(1, 1 << 20))
        ->type_name("N");
    app.add_option("--tag-timeout", tag.timeout_s, "seconds until a silent peer is an error")
        ->capture_default_str()
        ->check(CLI::Range(0.5, 3600.0))
        ->type_name("SECONDS");
    app.add_option("--tag-steering", tag.steering,
                   "auto: flow rules where the port has them, else ring; flow; ring: frames for "
                   "another queue are handed to its lcore")
        ->transform(CLI::CheckedTransformer(std::map<std::string, Steering>{
            {"auto", Steering::kAuto}, {"flow", Steering::kFlow}, {"ring", Steering::kRing}}))
        ->type_name("NAME");
}

void understand(Options& options, const Texts& texts) {
    options.mode = parse_forward_mode(texts.mode);
    if (!texts.portmask.empty()) {
        options.portmask = parse_mask("--portmask", texts.portmask);
    }
    if (!texts.tag_portmask.empty()) {
        options.tag.portmask = parse_mask("--tag-portmask", texts.tag_portmask);
    }
    for (const std::string& peer : texts.eth_peers) {
        parse_eth_peer(peer, options);
    }
    if (texts.max_packet != 0) {
        options.mtu =
            static_cast<uint16_t>(texts.max_packet - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN);
    }
    options.rss_types = RTE_ETH_RSS_IP | (texts.rss_udp ? RTE_ETH_RSS_UDP : 0);
    options.tag.sizes = perf::parse_sizes(texts.sizes, uint64_t{1} << 24);
    options.tag.first_tag = parse_tag(texts.tag);
    if (!texts.largest.empty()) {
        options.tag.largest = perf::parse_size(texts.largest);
    }
    if (options.tag.largest > (uint64_t{1} << 24)) {
        throw Failure("--tag-max-size is at most 16M");
    }
}

void check(const Options& options) {
    if (options.tx_first != 0 && options.interactive) {
        throw Failure("--tx-first cannot be used on interactive mode",
                      "type 'start tx_first' at the prompt");
    }
    if (options.mode.tag == TagMode::kGenerate && options.tag.peers.empty() &&
        !options.interactive) {
        throw Failure("taggen has nobody to send to", "name peers: --tag-peer=10.0.0.1");
    }
    if (options.tx_queues < options.rx_queues) {
        throw Failure(fmt::format("{} RX queues need as many TX queues; --txq is {}",
                                  options.rx_queues, options.tx_queues),
                      fmt::format("give --txq={}", options.rx_queues));
    }
    for (const std::string& address : options.tag.peers) {
        perf::parse_address(address, options.tag.udp_port);
    }
    if (!options.tag.ip.empty()) {
        perf::parse_address(options.tag.ip, options.tag.udp_port);
    }
}

}  // namespace

Options parse_options(int argc, char** argv) {
    Options options;
    Texts texts;
    CLI::App app(kDescription, "tagwire-testpmd [EAL arguments] --");
    app.footer(kFooter);
    app.set_version_flag("--version", std::string("tagwire-testpmd ") + TAGWIRE_VERSION);
    add_program(app, options);
    add_forwarding(app, options, texts);
    add_ports(app, options, texts);
    add_tags(app, options, texts);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        app.exit(asked);
        throw Failure("", {}, ExitCode::kSuccess);
    } catch (const CLI::ParseError& error) {
        throw Failure(error.what(), "tagwire-testpmd -- --help lists the options");
    }
    try {
        understand(options, texts);
        check(options);
    } catch (const Failure& failure) {
        throw Failure(failure.what(), failure.remedy());  // testpmd knows one status for all
    }
    return options;
}

}  // namespace tagwire::testpmd
