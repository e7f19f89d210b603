/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layer-2 forwarding between pairs of ports, and tagged messages on the same queues of port 0.
 *
 *   l2fwd_tagged EAL-ARGUMENTS -- --ip ADDRESS [--peer ADDRESS] [--count N] [--wait]
 *                                 [--zero-copy N]
 *
 * Each lcore polls one queue of every port and has a worker, which sees what came on port 0 first
 * (tw_worker_input). What is not the worker's goes on to the other port of the pair, as it came.
 * The worker sends on the same queue of port 0. Worker N has the UDP port 4791 + N, and exchanges
 * messages with worker N of the peer.
 *
 * RSS spreads frames over the queues without knowing the workers: a lane hands over what is for
 * another one through a ring.
 */
#include <getopt.h>
#include <rte_arp.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_udp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tagwire/tagwire.h>

enum {
    BURST = 32,
    DESCRIPTORS = 1024,
    POOL_CACHE = 256,
    RING = 1024,
    WINDOW = 8, /* messages under way, each direction */
    LONGEST = 70000,
    UDP_PORT = 4791,
    IDLE_TURNS = 200, /* before the core is offered to others */
    PATIENCE = 5,     /* seconds for an orderly end */
};

/* A message under way: number, buffer, and whether it is one of those to send. */
struct message {
    uint64_t number;
    bool sends;
    bool under_way;
    uint8_t* data;
};

/* What one lcore owns. */
struct lane {
    uint16_t queue;
    struct rte_ring* handed_over; /* frames for this worker that came on another queue */
    tw_worker* worker;
    tw_av* av;
    tw_cq* cq;
    tw_ep* ep;
    tw_addr peer;
    struct message sends[WINDOW];
    struct message receives[WINDOW];
    uint64_t next_number;
    /* Read by lane 0, which prints them. */
    volatile uint64_t sent, received, wrong, failed, forwarded, dropped;
    volatile bool ended;
} __rte_cache_aligned;

static struct lane lanes[RTE_MAX_LCORE];
static uint16_t lane_count, port_count;
static struct rte_mempool* pool;
static struct tw_address own_address, peer_address;
static bool has_peer, waits_for_peer;
static uint32_t zero_copy; /* messages of so many bytes leave from where they are; 0: never */
static uint64_t wanted;    /* messages each way; 0: until the signal */
static volatile sig_atomic_t interrupted;

static const size_t sizes[] = {8, 200, 3000, LONGEST};

static void on_signal(int number) {
    (void)number;
    interrupted = 1;
}

static void need(int result, const char* what) {
    if (result >= 0)
        return;
    fprintf(stderr, "l2fwd_tagged: %s: %s %s\n", what, tw_strerror(result), tw_last_error());
    exit(1);
}

/* ---- Messages ---------------------------------------------------------------------------- */

static size_t size_of(uint64_t number) {
    return sizes[number % RTE_DIM(sizes)];
}

static void fill(uint8_t* data, uint64_t number) {
    for (size_t i = 0; i < size_of(number); ++i)
        data[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

static bool is_right(const uint8_t* data, size_t length, uint64_t number) {
    if (length != size_of(number))
        return false;
    for (size_t i = 0; i < length; ++i)
        if (data[i] != (uint8_t)(number * 31 + i * 7 + (i >> 8)))
            return false;
    return true;
}

static void send_message(struct lane* lane, struct message* message) {
    fill(message->data, message->number);
    message->under_way = tw_tsend(lane->ep, message->data, size_of(message->number), lane->peer,
                                  message->number, message) == 0;
}

static void post_receive(struct lane* lane, struct message* message) {
    message->under_way =
        tw_trecv(lane->ep, message->data, LONGEST, TW_ADDR_UNSPEC, 0, UINT64_MAX, message) == 0;
}

static void keep_busy(struct lane* lane) {
    for (int i = 0; i < WINDOW; ++i) {
        struct message* message = &lane->sends[i];
        if (!lane->receives[i].under_way)
            post_receive(lane, &lane->receives[i]);
        if (message->under_way || !has_peer || interrupted)
            continue;
        if (message->number == UINT64_MAX) { /* its last one arrived */
            if (wanted != 0 && lane->next_number >= wanted)
                continue;
            message->number = lane->next_number++;
        }
        send_message(lane, message);
    }
}

static void completed(struct lane* lane, const struct tw_cq_entry* entry) {
    struct message* message = entry->context;
    message->under_way = false;
    if (message->sends) {
        ++lane->sent;
        message->number = UINT64_MAX;
    } else {
        ++lane->received;
        lane->wrong += !is_right(message->data, entry->length, entry->tag);
    }
}

/* A peer that is not there yet, or no more. A message that did not get through is tried again. */
static void failed(struct lane* lane, const struct tw_cq_error* error) {
    struct message* message = error->entry.context;
    message->under_way = false;
    if (error->error != ECANCELED)
        ++lane->failed;
}

static int read_completions(struct lane* lane) {
    struct tw_cq_entry entries[BURST];
    int all = 0;
    for (;;) {
        const ssize_t count = tw_cq_read(lane->cq, entries, BURST);
        struct tw_cq_error error;
        if (count == -TW_EAVAIL && tw_cq_readerr(lane->cq, &error) == 1) {
            failed(lane, &error);
            ++all;
        }
        if (count == -EAGAIN)
            return all;
        for (ssize_t i = 0; i < count; ++i)
            completed(lane, &entries[i]);
        all += count > 0 ? (int)count : 0;
    }
}

/* ---- Frames ------------------------------------------------------------------------------ */

static void hand_over(struct lane* lane, struct rte_mbuf* packet) {
    if (packet != NULL && rte_ring_enqueue(lane->handed_over, packet) != 0)
        rte_pktmbuf_free(packet); /* as if a ring of the port had been full */
}

static bool is_arp(const struct rte_mbuf* packet) {
    return rte_pktmbuf_mtod(packet, const struct rte_ether_hdr*)->ether_type ==
           RTE_BE16(RTE_ETHER_TYPE_ARP);
}

/* Moves what is for the other lanes' workers to them: ARP, which concerns all workers of the
 * address, as a copy. */
static uint16_t sort_out(struct lane* lane, struct rte_mbuf** packets, uint16_t count) {
    uint16_t left = 0;
    for (uint16_t i = 0; i < count; ++i) {
        struct rte_mbuf* packet = packets[i];
        const struct rte_ether_hdr* ethernet =
            rte_pktmbuf_mtod(packet, const struct rte_ether_hdr*);
        const struct rte_ipv4_hdr* ip = (const void*)(ethernet + 1);
        const struct rte_udp_hdr* udp = (const void*)(ip + 1);
        uint32_t owner = lane->queue;
        if (packet->data_len >= sizeof(*ethernet) + sizeof(*ip) + sizeof(*udp) &&
            ethernet->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && ip->version_ihl == 0x45 &&
            ip->next_proto_id == IPPROTO_UDP && memcmp(&ip->dst_addr, own_address.ip, 4) == 0)
            owner = (uint32_t)rte_be_to_cpu_16(udp->dst_port) - UDP_PORT;
        if (packet->data_len >= sizeof(*ethernet) && is_arp(packet))
            for (uint16_t other = 0; other < lane_count; ++other)
                if (other != lane->queue)
                    hand_over(&lanes[other], rte_pktmbuf_copy(packet, pool, 0, UINT32_MAX));
        if (owner < lane_count && owner != lane->queue)
            hand_over(&lanes[owner], packet);
        else
            packets[left++] = packet;
    }
    return left;
}

static void forward(struct lane* lane, uint16_t from, struct rte_mbuf** packets, uint16_t count) {
    const uint16_t sent = rte_eth_tx_burst(from ^ 1, lane->queue, packets, count);
    lane->forwarded += sent;
    lane->dropped += count - sent;
    rte_pktmbuf_free_bulk(packets + sent, count - sent);
}

/* What the worker gives back of it: ARP was forwarded where it came in, the rest was not (it may
 * have the worker's IP address and port, but another station's MAC address). */
static int take_handed_over(struct lane* lane) {
    struct rte_mbuf* packets[BURST];
    const unsigned count = rte_ring_dequeue_burst(lane->handed_over, (void**)packets, BURST, NULL);
    const uint16_t given_back = tw_worker_input(lane->worker, packets, (uint16_t)count);
    uint16_t left = 0;
    for (uint16_t i = 0; i < given_back; ++i) {
        if (is_arp(packets[i]))
            rte_pktmbuf_free(packets[i]);
        else
            packets[left++] = packets[i];
    }
    if (left > 0)
        forward(lane, 0, packets, left);
    return (int)count;
}

static int take_frames(struct lane* lane) {
    struct rte_mbuf* packets[BURST];
    int all = 0;
    for (uint16_t port = 0; port < port_count; ++port) {
        if (port != 0 && waits_for_peer && lane->received == 0)
            continue;
        uint16_t count = rte_eth_rx_burst(port, lane->queue, packets, BURST);
        all += count;
        if (port == 0 && lane_count > 1)
            count = sort_out(lane, packets, count);
        if (port == 0)
            count = tw_worker_input(lane->worker, packets, count);
        if (count > 0)
            forward(lane, port, packets, count);
    }
    return all + take_handed_over(lane);
}

/* ---- A lane's life ----------------------------------------------------------------------- */

static void print_counts(bool last) {
    uint64_t sum[6] = {0};
    for (uint16_t i = 0; i < lane_count; ++i) {
        const struct lane* lane = &lanes[i];
        const uint64_t counts[6] = {lane->sent,   lane->received,  lane->wrong,
                                    lane->failed, lane->forwarded, lane->dropped};
        for (int k = 0; k < 6; ++k)
            sum[k] += counts[k];
    }
    printf("%s: messages %" PRIu64 " sent %" PRIu64 " received %" PRIu64 " wrong %" PRIu64
           " failed; frames %" PRIu64 " forwarded %" PRIu64 " dropped\n",
           last ? "end" : "so far", sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]);
    fflush(stdout);
}

/* Some of the counters of doc/api/memory.md. */
static void print_large(const struct lane* lane) {
    struct tw_stat stats[512];
    const int count = tw_worker_stats(lane->worker, stats, 512);
    printf("lane %u:", lane->queue);
    for (int i = 0; i < count && i < 512; ++i)
        if (strncmp(stats[i].name, "large_", 6) == 0 || strcmp(stats[i].name, "registrations") == 0)
            printf(" %s %" PRIu64, stats[i].name, stats[i].value);
    printf("\n");
}

static int turn(struct lane* lane) {
    return take_frames(lane) + tw_progress(lane->worker) + read_completions(lane);
}

static bool is_done(const struct lane* lane) {
    if (interrupted)
        return true;
    return wanted != 0 && lane->received >= wanted && (!has_peer || lane->sent >= wanted);
}

static bool all_ended(void) {
    for (uint16_t i = 0; i < lane_count; ++i)
        if (!lanes[i].ended)
            return false;
    return true;
}

/* Everything sent is delivered and the peer knows; the other lanes go on forwarding meanwhile. */
static void end_in_order(struct lane* lane) {
    const uint64_t limit = rte_get_timer_cycles() + PATIENCE * rte_get_timer_hz();
    while (tw_worker_shutdown(lane->worker) == -EAGAIN && rte_get_timer_cycles() < limit)
        turn(lane);
    lane->ended = true;
    while (!all_ended() && rte_get_timer_cycles() < limit)
        turn(lane);
    while (tw_ep_close(lane->ep) == -EBUSY && rte_get_timer_cycles() < limit)
        turn(lane);
    read_completions(lane);
}

static int run_lane(void* unused) {
    (void)unused;
    struct lane* lane = &lanes[rte_lcore_index((int)rte_lcore_id())];
    uint64_t next_print = 0;
    int idle = 0;
    while (!is_done(lane)) {
        keep_busy(lane);
        idle = turn(lane) > 0 ? 0 : idle + 1;
        if (idle >= IDLE_TURNS) {
            idle = 0;
            sched_yield();
        }
        if (lane->queue == 0 && rte_get_timer_cycles() >= next_print) {
            next_print = rte_get_timer_cycles() + rte_get_timer_hz();
            print_counts(false);
        }
    }
    end_in_order(lane);
    return 0;
}

/* ---- Set-up ------------------------------------------------------------------------------ */

static void set_up_port(uint16_t port) {
    struct rte_eth_dev_info info;
    struct rte_eth_conf conf = {0};
    char name[RTE_ETH_NAME_MAX_LEN];
    uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
    need(rte_eth_dev_info_get(port, &info), "the port does not describe itself");
    need(rte_eth_dev_get_name_by_port(port, name), "the port has no name");
    if (lane_count > 1) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf =
            info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);
    }
    /* With these the workers compute no checksums, and can send large messages without copying. */
    conf.txmode.offloads =
        info.tx_offload_capa & (RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
                                RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
    need(rte_eth_dev_configure(port, lane_count, lane_count, &conf),
         "the port refuses a queue for each lcore (name fewer with -l)");
    need(rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx), "no usable ring size");
    for (uint16_t queue = 0; queue < lane_count; ++queue) {
        need(rte_eth_rx_queue_setup(port, queue, rx, rte_eth_dev_socket_id(port), NULL, pool),
             "the port refuses an RX queue");
        need(rte_eth_tx_queue_setup(port, queue, tx, rte_eth_dev_socket_id(port), NULL),
             "the port refuses a TX queue");
    }
    need(rte_eth_dev_start(port), "the port does not start");
    const int result = rte_eth_promiscuous_enable(port);
    if (result != -ENOTSUP) /* ports that have no addresses see everything anyway */
        need(result, "the port does not become promiscuous");
    printf("port %u: %s, forwards to %u\n", port, name, port ^ 1u);
}

static void set_up_messages(struct lane* lane) {
    for (int i = 0; i < WINDOW; ++i) {
        lane->sends[i] = (struct message){UINT64_MAX, true, false, malloc(LONGEST)};
        lane->receives[i] = (struct message){0, false, false, malloc(LONGEST)};
        need(lane->sends[i].data && lane->receives[i].data ? 0 : -ENOMEM, "no memory for messages");
    }
}

static void set_up_lane(uint16_t number) {
    struct lane* lane = &lanes[number];
    /* Only tw_worker_input feeds the worker; it sends through its queue of port 0. */
    const struct tw_nic nic = {0};
    struct tw_worker_attr attr;
    char name[32];
    lane->queue = number;
    snprintf(name, sizeof(name), "lane%u", number);
    lane->handed_over = rte_ring_create(name, RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
    need(lane->handed_over != NULL ? 0 : -ENOMEM, "no memory for a ring");
    tw_worker_attr_init(&attr);
    attr.nic = &nic;
    attr.port_id = 0;
    attr.queue_id = number;
    attr.address = own_address;
    attr.address.udp_port = UDP_PORT + number;
    attr.max_operations = 1024;
    attr.zero_copy_bytes = zero_copy;
    need(tw_worker_open(&attr, &lane->worker), "the worker does not open");
    need(tw_av_open(lane->worker, &lane->av), "the address vector does not open");
    need(tw_cq_open(lane->worker, NULL, &lane->cq), "the completion queue does not open");
    need(tw_ep_open(lane->worker, NULL, &lane->ep), "the endpoint does not open");
    need(tw_ep_bind_av(lane->ep, lane->av), "the endpoint refuses the address vector");
    need(tw_ep_bind_cq(lane->ep, lane->cq, TW_SEND | TW_RECV), "the endpoint refuses the queue");
    need(tw_ep_enable(lane->ep), "the endpoint does not start");
    if (has_peer) {
        struct tw_address peer = peer_address;
        peer.udp_port = UDP_PORT + number;
        need(tw_av_insert(lane->av, &peer, &lane->peer), "the peer's address is refused");
    }
    set_up_messages(lane);
}

static int close_lane(struct lane* lane) {
    struct rte_mbuf* packet = NULL;
    const int result =
        tw_cq_close(lane->cq) | tw_av_close(lane->av) | tw_worker_close(lane->worker);
    while (rte_ring_dequeue(lane->handed_over, (void**)&packet) == 0)
        rte_pktmbuf_free(packet);
    rte_ring_free(lane->handed_over);
    for (int i = 0; result == 0 && i < WINDOW; ++i) {
        free(lane->sends[i].data);
        free(lane->receives[i].data);
    }
    return result;
}

static void parse_address(const char* text, struct tw_address* address) {
    char with_port[80];
    snprintf(with_port, sizeof(with_port), "%s:%u", text, UDP_PORT);
    need(tw_address_parse(with_port, address), text);
}

static void parse(int argc, char** argv) {
    static const struct option options[] = {
        {"ip", required_argument, NULL, 'i'},        {"peer", required_argument, NULL, 'p'},
        {"count", required_argument, NULL, 'c'},     {"wait", no_argument, NULL, 'w'},
        {"zero-copy", required_argument, NULL, 'z'}, {0}};
    bool has_ip = false, wrong = false;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'i') {
            parse_address(optarg, &own_address);
            has_ip = true;
        } else if (option == 'p') {
            parse_address(optarg, &peer_address);
            has_peer = true;
        } else if (option == 'c') {
            char* end;
            wanted = strtoull(optarg, &end, 10);
            wrong |= *end != '\0' || end == optarg;
        } else if (option == 'z') {
            zero_copy = (uint32_t)strtoul(optarg, NULL, 10);
        } else if (option == 'w') {
            waits_for_peer = true;
        } else {
            wrong = true;
        }
    }
    if (wrong || !has_ip || optind != argc) {
        fputs(
            "usage: l2fwd_tagged EAL-ARGUMENTS -- OPTIONS\n\n"
            "  --ip ADDRESS    of the workers, one for each lcore: UDP ports 4791, 4792 ...\n"
            "  --peer ADDRESS  where such a program runs: exchange messages with its workers\n"
            "  --count N       end after N messages each way with each worker (0: at Ctrl-C)\n"
            "  --wait          forward from other ports once the peer's first message came\n"
            "  --zero-copy N   send messages of N bytes and more without copying (not for "
            "net_ring)\n",
            stderr);
        exit(2);
    }
}

int main(int argc, char** argv) {
    const int used = rte_eal_init(argc, argv);
    if (used < 0)
        return 1;
    parse(argc - used, argv + used);
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    lane_count = (uint16_t)rte_lcore_count();
    port_count = rte_eth_dev_count_avail();
    if (port_count == 0 || port_count % 2 != 0) {
        fprintf(stderr, "l2fwd_tagged: %u ports; give it pairs of ports, as with two --vdev\n",
                port_count);
        return 1;
    }
    const unsigned frames = (unsigned)port_count * lane_count * 2 * DESCRIPTORS + 4096;
    pool = rte_pktmbuf_pool_create("frames", frames, POOL_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
                                   (int)rte_socket_id());
    need(pool != NULL ? 0 : -ENOMEM, "no memory for the frames (EAL's -m)");
    for (uint16_t port = 0; port < port_count; ++port)
        set_up_port(port);
    for (uint16_t number = 0; number < lane_count; ++number)
        set_up_lane(number);

    rte_eal_mp_remote_launch(run_lane, NULL, CALL_MAIN);
    rte_eal_mp_wait_lcore();

    print_counts(true);
    int status = 0;
    for (uint16_t number = 0; number < lane_count; ++number) {
        const struct lane* lane = &lanes[number];
        status |= lane->wrong != 0 || (wanted != 0 && !interrupted && lane->received < wanted);
        print_large(lane);
        if (close_lane(&lanes[number]) != 0) {
            fprintf(stderr, "l2fwd_tagged: lane %u does not close: %s\n", number, tw_last_error());
            status = 1;
        }
    }
    for (uint16_t port = 0; port < port_count; ++port) {
        rte_eth_dev_stop(port);
        rte_eth_dev_close(port);
    }
    rte_eal_cleanup();
    return status;
}
