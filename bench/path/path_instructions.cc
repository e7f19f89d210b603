// SPDX-License-Identifier: BSD-3-Clause
// What an 8-byte tagged message costs on its whole path through the public API, for callgrind.
// Two workers in one process, over a wire that hands mbufs across, or over two ports back to
// back on softcx, whose device is stepped outside of what is counted.
//   path_instructions [EAL OPTIONS] -- [PORT PORT]
// Each dump is named by its description: "part messages-together messages".
// (scripts/bench-path.sh starts it and reads the dumps.)
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <tagwire/tagwire.h>
#include <valgrind/callgrind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

#include "drivers/softcx/softcx.h"

namespace {

constexpr size_t kMost = 64;
constexpr uint32_t kWarmUp = 200, kMeasured = 200;  // turns
constexpr uint64_t kTurnNs = 2'000;
constexpr uint32_t kWindow = 16, kWindows = 4;  // round trips of a ping-pong, and how often
constexpr unsigned kPortTurnMs = 2;
constexpr uint16_t kDescriptors = 512;

uint64_t now = 1'000'000;
bool collecting = false;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "path_instructions: %s: %s\n", what, tw_last_error());
    std::exit(1);
}

void check(ssize_t result, const char* what) {
    if (result < 0)
        fail(what);
}

// Counts what runs while it lives, if this is the part that is measured.
class Counted {
  public:
    explicit Counted(bool wanted) : wanted_(wanted) {
        if (wanted_) {
            collecting = true;
            CALLGRIND_TOGGLE_COLLECT;
        }
    }
    ~Counted() {
        if (wanted_) {
            CALLGRIND_TOGGLE_COLLECT;
            collecting = false;
        }
    }

  private:
    bool wanted_;
};

// The opposite: what belongs to the program behind the worker's back.
class NotCounted {
  public:
    NotCounted() : was_(collecting) {
        if (was_)
            CALLGRIND_TOGGLE_COLLECT;
    }
    ~NotCounted() {
        if (was_)
            CALLGRIND_TOGGLE_COLLECT;
    }

  private:
    bool was_;
};

struct Wire {
    Wire* other = nullptr;
    rte_mbuf* waiting[256];
    uint32_t first = 0;
    uint32_t last = 0;
};

uint16_t wire_receive(void* context, rte_mbuf** packets, uint16_t count) {
    const NotCounted not_counted;
    auto& wire = *static_cast<Wire*>(context);
    uint16_t taken = 0;
    for (; taken < count && wire.first != wire.last; ++taken) {
        packets[taken] = wire.waiting[wire.first++ % 256];
        // As a card that validates checksums says.
        packets[taken]->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    }
    return taken;
}

uint16_t wire_transmit(void* context, rte_mbuf** packets, uint16_t count) {
    const NotCounted not_counted;
    Wire& to = *static_cast<Wire*>(context)->other;
    for (uint16_t i = 0; i < count; ++i)
        to.waiting[to.last++ % 256] = packets[i];
    return count;
}

uint64_t wire_now(void*) {
    const NotCounted not_counted;
    return now;
}

struct Side {
    Wire wire;
    tw_nic nic{&wire, wire_receive, wire_transmit, wire_now};
    tw_worker* worker = nullptr;
    tw_av* av = nullptr;
    tw_cq* cq = nullptr;
    tw_ep* ep = nullptr;
    tw_addr peer = 0;
    uint64_t payloads[kMost] = {};
    uint64_t buffers[kMost] = {};
    uint64_t sent = 0;  // completions
    uint64_t received = 0;
};

uint16_t start_port(const char* name, rte_mempool* pool) {
    uint16_t port;
    if (rte_eth_dev_get_port_by_name(name, &port) != 0)
        fail("no such port");
    rte_eth_conf configuration = {};
    configuration.rxmode.offloads = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
    configuration.txmode.offloads = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
    if (rte_eth_dev_configure(port, 1, 1, &configuration) != 0 ||
        rte_eth_rx_queue_setup(port, 0, kDescriptors, SOCKET_ID_ANY, nullptr, pool) != 0 ||
        rte_eth_tx_queue_setup(port, 0, kDescriptors, SOCKET_ID_ANY, nullptr) != 0 ||
        rte_eth_promiscuous_enable(port) != 0 || rte_eth_dev_start(port) != 0)
        fail("the port does not start");
    return port;
}

void open(Side& side, uint8_t number, rte_mempool* pool, const char* port) {
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    if (port == nullptr) {
        attr.nic = &side.nic;
        attr.mac[0] = 2;
        attr.mac[5] = number;
    } else {
        attr.port_id = start_port(port, pool);
    }
    attr.address = {4, 0, 4791, 0, {10, 0, 0, number}};
    attr.packet_pool = pool;
    attr.max_peers = 16;
    attr.max_operations = 4096;
    attr.random_seed = number;
    check(tw_worker_open(&attr, &side.worker), "tw_worker_open");
    check(tw_av_open(side.worker, &side.av), "tw_av_open");
    check(tw_cq_open(side.worker, nullptr, &side.cq), "tw_cq_open");
    check(tw_ep_open(side.worker, nullptr, &side.ep), "tw_ep_open");
    check(tw_ep_bind_av(side.ep, side.av), "tw_ep_bind_av");
    check(tw_ep_bind_cq(side.ep, side.cq, TW_SEND | TW_RECV), "tw_ep_bind_cq");
    check(tw_ep_enable(side.ep), "tw_ep_enable");
}

// What is on the way arrives.
void run_device(bool ports) {
    now += kTurnNs;
    if (ports)
        while (softcx_step() != 0) {
        }
}

void post_receives(Side& side, size_t count) {
    for (size_t i = 0; i < count; ++i)
        check(tw_trecv(side.ep, side.buffers + i, 8, TW_ADDR_UNSPEC, i, 0, side.buffers + i),
              "tw_trecv");
}

void post_sends(Side& side, size_t count) {
    for (size_t i = 0; i < count; ++i)
        check(tw_tsend(side.ep, side.payloads + i, 8, side.peer, i, side.payloads + i), "tw_tsend");
}

void read(Side& side, bool counted) {
    tw_cq_entry entries[kMost];
    ssize_t count;
    {
        const Counted measured(counted);
        count = tw_cq_read(side.cq, entries, kMost);
    }
    if (count < 0 && count != -EAGAIN)
        fail("tw_cq_read");
    for (ssize_t i = 0; i < count; ++i)
        ++((entries[i].flags & TW_SEND) != 0 ? side.sent : side.received);
}

enum class Part { kNone, kSend, kSenderTurn, kSenderRead, kReceive, kReceiverTurn, kReceiverRead };
constexpr const char* kNames[] = {"",        "send",          "sender-turn",  "sender-read",
                                  "receive", "receiver-turn", "receiver-read"};

// One turn of a steady stream: the acknowledgements of earlier turns arrive as this one's
// messages leave.
void stream(Side (&sides)[2], size_t together, Part part, bool ports) {
    Side& sender = sides[0];
    Side& receiver = sides[1];
    {
        const Counted measured(part == Part::kReceive);
        post_receives(receiver, together);
    }
    {
        const Counted measured(part == Part::kSend);
        post_sends(sender, together);
    }
    {
        const Counted measured(part == Part::kSenderTurn);
        tw_progress(sender.worker);
    }
    read(sender, part == Part::kSenderRead);
    run_device(ports);
    {
        const Counted measured(part == Part::kReceiverTurn);
        tw_progress(receiver.worker);
    }
    read(receiver, part == Part::kReceiverRead);
    run_device(ports);
}

// One way of a ping-pong, as a program does it that progresses and reads until the message is
// here: the first turn sends, and finds nothing; the second one, on the other side, receives.
enum class Ping { kNone, kAll, kCalls, kSendingTurn, kReadNothing, kReceivingTurn, kRead };
constexpr const char* kPings[] = {"",
                                  "ping-pong",
                                  "ping-calls",
                                  "ping-sending-turn",
                                  "ping-read-nothing",
                                  "ping-receiving-turn",
                                  "ping-read"};

void ping(Side& from, Side& to, Ping part, bool ports) {
    const auto wanted = [part](Ping one) { return part == Ping::kAll || part == one; };
    {
        const Counted measured(wanted(Ping::kCalls));
        post_receives(from, 1);
        post_sends(from, 1);
    }
    {
        const Counted measured(wanted(Ping::kSendingTurn));
        tw_progress(from.worker);
    }
    read(from, wanted(Ping::kReadNothing));
    run_device(ports);
    // Workers on ports have the machine's clock, and valgrind is slow: so that no timer takes that
    // for a loss, a turn takes long in any case.
    if (ports)
        rte_delay_us_sleep(kPortTurnMs * 1000);
    const uint64_t before = to.received;
    {
        const Counted measured(wanted(Ping::kReceivingTurn));
        tw_progress(to.worker);
    }
    read(to, wanted(Ping::kRead));
    if (to.received != before + 1)
        fail("a message of the ping-pong is missing");
}

void dump(const char* part, size_t together, uint64_t messages) {
    char row[64];
    std::snprintf(row, sizeof(row), "%s %zu %llu", part, together,
                  static_cast<unsigned long long>(messages));
    CALLGRIND_DUMP_STATS_AT(row);
}

uint64_t stat(const Side& side, const char* name) {
    tw_stat stats[256];
    const int count = tw_worker_stats(side.worker, stats, 256);
    for (int i = 0; i < count && i < 256; ++i)
        if (std::strcmp(stats[i].name, name) == 0)
            return stats[i].value;
    fail(name);
}

uint64_t stat(const Side (&sides)[2], std::initializer_list<const char*> names) {
    uint64_t sum = 0;
    for (const Side& side : sides)
        for (const char* name : names)
            sum += stat(side, name);
    return sum;
}

// Windows in which a timer resent something are measured again, as often as there is patience
// for; then they count, and the frames for each message tell of it.
void ping_pong(Side (&sides)[2], Ping part, bool ports) {
    uint64_t frames = 0;
    uint32_t tries = 10 * kWindows;
    for (uint32_t kept = 0; kept < kWindows;) {
        const auto resent = [&] { return stat(sides, {"tail_probes", "timeouts"}); };
        const uint64_t resent_before = resent();
        const uint64_t frames_before = stat(sides, {"tx_frames"});
        CALLGRIND_ZERO_STATS;
        for (uint32_t i = 0; i < kWindow; ++i) {
            ping(sides[0], sides[1], part, ports);
            ping(sides[1], sides[0], part, ports);
        }
        if (resent() != resent_before && tries != 0) {
            --tries;
            continue;
        }
        if (part != Ping::kNone)
            dump(kPings[static_cast<int>(part)], 1, 2 * kWindow);
        frames += stat(sides, {"tx_frames"}) - frames_before;
        ++kept;
    }
    std::printf("%s: %.2f frames one way\n", kPings[static_cast<int>(part)],
                static_cast<double>(frames) / (2 * kWindow * kWindows));
}

}  // namespace

int main(int argc, char** argv) {
    const int used = rte_eal_init(argc, argv);
    if (used < 0)
        fail("EAL does not start");
    argc -= used;
    argv += used;
    const bool ports = argc == 3;
    if (!ports && argc != 1)
        fail("usage: path_instructions [EAL OPTIONS] -- [PORT PORT]");
    rte_mempool* pool =
        rte_pktmbuf_pool_create("frames", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (pool == nullptr)
        fail("no memory for the mempool: a larger -m");
    Side sides[2];
    for (uint8_t i = 0; i < 2; ++i) {
        sides[i].wire.other = &sides[1 - i].wire;
        open(sides[i], static_cast<uint8_t>(i + 1), pool, ports ? argv[i + 1] : nullptr);
    }
    for (int i = 0; i < 2; ++i) {
        tw_address address;
        check(tw_ep_name(sides[1 - i].ep, &address), "tw_ep_name");
        check(tw_av_insert(sides[i].av, &address, &sides[i].peer), "tw_av_insert");
    }

    for (const size_t together : {size_t{1}, kMost}) {
        for (int part = 0; part <= static_cast<int>(Part::kReceiverRead); ++part) {
            CALLGRIND_ZERO_STATS;
            const uint32_t turns = part == 0 ? kWarmUp : kMeasured;
            for (uint32_t i = 0; i < turns; ++i)
                stream(sides, together, static_cast<Part>(part), ports);
            if (part != 0)
                dump(kNames[part], together, turns * together);
        }
    }
    // What is still on its way would be counted below.
    for (int i = 0; i < 100; ++i) {
        for (Side& side : sides) {
            tw_progress(side.worker);
            read(side, false);
            run_device(ports);
        }
    }
    if (sides[0].sent != sides[1].received || sides[0].sent == 0)
        fail("messages are missing");
    post_receives(sides[1], 1);
    for (int part = 0; part <= static_cast<int>(Ping::kRead); ++part)
        ping_pong(sides, static_cast<Ping>(part), ports);
    return 0;
}
