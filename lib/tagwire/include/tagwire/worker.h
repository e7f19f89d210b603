/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker: one thread's share of a port, and everything behind it. doc/api/worker.md */
#ifndef TAGWIRE_WORKER_H
#define TAGWIRE_WORKER_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;
struct rte_mempool;

/* A network card other than a DPDK port: a simulator, or a pipeline that polls the port itself. */
struct tw_nic {
    void* context;
    /* NULL: frames come through tw_worker_input alone. */
    uint16_t (*rx_burst)(void* context, struct rte_mbuf** packets, uint16_t count);
    /* Takes (and later frees) the first frames of the burst, returns how many. NULL: frames leave
     * through port_id and queue_id, and what is not given of mac, mtu and packet_pool is theirs. */
    uint16_t (*tx_burst)(void* context, struct rte_mbuf** packets, uint16_t count);
    uint64_t (*now_ns)(void* context); /* NULL: the TSC */
    /* For sleeping (tagwire/wait.h); NULL: look for frames every millisecond or more often. With
     * `on` 1: from now on rx_fd is readable while frames wait, also those that are there already;
     * 0: no longer. Returns 0, or an error: then as NULL. rx_fd may be watched by epoll. */
    int (*rx_interrupt)(void* context, int on);
    int rx_fd;
};

/* Who may use the objects of a worker (doc/api/wait.md). */
enum tw_threading {
    TW_THREAD_DOMAIN = 0, /* one thread at a time: the program sees to it */
    TW_THREAD_SAFE = 1,   /* any thread at any time: the worker has a lock */
};

struct tw_worker_attr {
    size_t size;               /* sizeof(struct tw_worker_attr): the caller's version of it */
    uint16_t port_id;          /* a started ethdev port (ignored with nic->tx_burst) */
    uint16_t queue_id;         /* its RX and TX queue of this worker */
    const struct tw_nic* nic;  /* NULL: the ethdev port */
    struct tw_address address; /* this worker's IP and UDP port (endpoint ignored) */
    uint8_t mac[6];            /* all zero: the port's */
    uint16_t mtu;              /* 0: the port's */
    struct rte_mempool*
        packet_pool;    /* frames to send; NULL: one is made, and stays with the port's queue */
    uint32_t max_peers; /* 0: 1024 */
    uint32_t max_operations;   /* sends outstanding, and as many receives; 0: 65536 */
    uint64_t unexpected_bytes; /* budget for unexpected payload; 0: 64 MiB */
    uint32_t peer_timeout_ms;  /* silence after which a peer is dead; 0: 10000 */
    uint64_t random_seed;      /* 0: the system's randomness. Tests only. */
    uint32_t threading;        /* enum tw_threading */
    /* Sends of so many bytes leave from where they are; the port must be one that sends in order
     * and by DMA (doc/api/memory.md). 0: every payload is copied. */
    uint32_t zero_copy_bytes;
    /* tw_worker_open waits so long for another station to say that it has the IP address already
     * (doc/api/worker.md), and then fails with -EADDRINUSE. 0: it does not ask. */
    uint32_t probe_ms;
};

void tw_worker_attr_init(struct tw_worker_attr* attr);
int tw_worker_open(const struct tw_worker_attr* attr, tw_worker** worker);
int tw_worker_close(tw_worker* worker); /* -EBUSY while anything of it is open */
/* Closes every session in order: -EAGAIN (call tw_progress, then again) until all that was sent is
 * acknowledged and the peers know; then 0. A send afterwards opens a new session. */
int tw_worker_shutdown(tw_worker* worker);

/* One turn of the worker: receive, match, complete, transmit. Returns the number of events handled.
 */
int tw_progress(tw_worker* worker);
/* For a pipeline that receives for itself (doc/api/embed.md): takes the frames that are this
 * worker's, to its IP address and UDP port or ARP for its address, and frees them when it is done
 * with them. The others are moved to the front of `mbufs`, in their order and untouched, and are
 * the caller's; returns how many. Acknowledgements leave with the next tw_progress. Not from within
 * the functions of tw_nic. NULL: gives all back. */
uint16_t tw_worker_input(tw_worker* worker, struct rte_mbuf** mbufs, uint16_t count);
/* Earliest time (ns of the worker's clock) at which tw_progress has a timer to run; UINT64_MAX:
 * none. */
uint64_t tw_worker_deadline(const tw_worker* worker);

/* Named counters, xstats style: returns how many there are; fills up to `count`. */
struct tw_stat {
    const char* name;
    uint64_t value;
};
int tw_worker_stats(const tw_worker* worker, struct tw_stat* stats, int count);
/* The same for one peer of an endpoint: its share of the unexpected budget, in units of one small
 * message or one packet of a longer one. */
int tw_peer_stats(tw_ep* ep, tw_addr peer, struct tw_stat* stats, int count);

#ifdef __cplusplus
}
#endif
#endif
