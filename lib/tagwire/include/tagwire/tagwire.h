/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tagwire's native API: tagged messages with the semantics of libfabric's
 * fi_tagged(3) over any DPDK port.
 *
 * Threading: every object belongs to one worker, a worker to one thread. No call
 * here locks or blocks. Calls return 0 (or a count) or a negative errno.
 */
#ifndef TAGWIRE_H
#define TAGWIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;
struct rte_mempool;

typedef struct tw_worker tw_worker;
typedef struct tw_av tw_av;
typedef struct tw_cq tw_cq;
typedef struct tw_ep tw_ep;

/* An endpoint's address as it is exchanged between peers (out of band, or typed by a person). */
struct tw_address {
    uint8_t family; /* 4 or 6 */
    uint8_t reserved;
    uint16_t udp_port; /* host order */
    uint16_t endpoint;
    uint8_t ip[16]; /* network order, IPv4 in the first four */
};
/* "192.0.2.1:4791", "192.0.2.1:4791/3", "[2001:db8::1]:4791" */
int tw_address_parse(const char* text, struct tw_address* address);
int tw_address_format(const struct tw_address* address, char* text, size_t size);

/* Index into an address vector. */
typedef uint64_t tw_addr;
#define TW_ADDR_UNSPEC ((tw_addr)-1)
#define TW_ADDR_NOTAVAIL TW_ADDR_UNSPEC

/* A network card other than a DPDK port: a simulator, or a pipeline that polls the port itself. */
struct tw_nic {
    void* context;
    uint16_t (*rx_burst)(void* context, struct rte_mbuf** packets, uint16_t count);
    uint16_t (*tx_burst)(void* context, struct rte_mbuf** packets, uint16_t count);
    uint64_t (*now_ns)(void* context); /* NULL: the TSC */
};

struct tw_worker_attr {
    size_t size;                     /* sizeof(struct tw_worker_attr): the caller's version of it */
    uint16_t port_id;                /* a started ethdev port (ignored with nic) */
    uint16_t queue_id;               /* its RX and TX queue of this worker */
    const struct tw_nic* nic;        /* NULL: the ethdev port */
    struct tw_address address;       /* this worker's IP and UDP port (endpoint ignored) */
    uint8_t mac[6];                  /* all zero: the port's */
    uint16_t mtu;                    /* 0: the port's */
    struct rte_mempool* packet_pool; /* frames to send; NULL: one is made, and stays with the port's queue */
    uint32_t max_peers;              /* 0: 1024 */
    uint32_t max_operations;         /* sends outstanding, and as many receives; 0: 65536 */
    uint64_t unexpected_bytes;       /* budget for unexpected payload; 0: 64 MiB */
    uint32_t peer_timeout_ms;        /* silence after which a peer is dead; 0: 10000 */
    uint64_t random_seed;            /* 0: the system's randomness. Tests only. */
};

void tw_worker_attr_init(struct tw_worker_attr* attr);
int tw_worker_open(const struct tw_worker_attr* attr, tw_worker** worker);
int tw_worker_close(tw_worker* worker); /* -EBUSY while it has endpoints, queues or vectors */
/* Closes every session in order: -EAGAIN (call tw_progress, then again) until all that was sent is
 * acknowledged and the peers know; then 0. Nothing can be sent afterwards. */
int tw_worker_shutdown(tw_worker* worker);

/* One turn of the worker: receive, match, complete, transmit. Returns the number of events handled. */
int tw_progress(tw_worker* worker);
/* Earliest time (ns of the worker's clock) at which tw_progress has a timer to run; UINT64_MAX: none. */
uint64_t tw_worker_deadline(const tw_worker* worker);

/* Named counters, xstats style: returns how many there are; fills up to `count`. */
struct tw_stat {
    const char* name;
    uint64_t value;
};
int tw_worker_stats(const tw_worker* worker, struct tw_stat* stats, int count);

int tw_av_open(tw_worker* worker, tw_av** av);
int tw_av_close(tw_av* av);
int tw_av_insert(tw_av* av, const struct tw_address* address, tw_addr* index);
int tw_av_lookup(const tw_av* av, tw_addr index, struct tw_address* address);

/* Completion flags */
#define TW_SEND (1ull << 0)
#define TW_RECV (1ull << 1)
#define TW_TAGGED (1ull << 2)
#define TW_REMOTE_CQ_DATA (1ull << 3)

struct tw_cq_entry {
    void* context;
    uint64_t flags;
    size_t length;   /* bytes received */
    void* buffer;    /* the receive buffer */
    uint64_t data;   /* remote CQ data, with TW_REMOTE_CQ_DATA */
    uint64_t tag;    /* the sender's tag */
    tw_addr source;  /* receives: the sender, or TW_ADDR_NOTAVAIL when it is not in the address vector */
};
struct tw_cq_error {
    struct tw_cq_entry entry;
    size_t message_length; /* the sender's length of a received message, truncated or not */
    size_t overflow;       /* olen of fi_cq(3): bytes of it that did not fit the buffer (TW_ETRUNC) */
    int error;             /* positive errno or TW_E... */
    int provider_error;    /* the transport's status, positive; 0 when the error is the core's */
    const char* text;      /* what happened; a static string */
};
struct tw_cq_attr {
    size_t size;      /* sizeof(struct tw_cq_attr) */
    uint32_t entries; /* 0: room for every operation that the worker can have outstanding */
};

int tw_cq_open(tw_worker* worker, const struct tw_cq_attr* attr, tw_cq** cq);
int tw_cq_close(tw_cq* cq);
/* Errors beyond errno, numbered as in libfabric's fi_errno(3). */
#define TW_EOTHER 256
#define TW_EOPBADSTATE 258
#define TW_EAVAIL 259
#define TW_ENOCQ 263
#define TW_ETRUNC 265
#define TW_ENOAV 267
/* Up to `count` completions, oldest first. -EAGAIN: none. -TW_EAVAIL: the next one is an error, take it
 * with tw_cq_readerr. */
ssize_t tw_cq_read(tw_cq* cq, struct tw_cq_entry* entries, size_t count);
/* 1, or -EAGAIN when the next completion is not an error. */
ssize_t tw_cq_readerr(tw_cq* cq, struct tw_cq_error* error);

struct tw_ep_attr {
    size_t size;
    uint16_t endpoint; /* number within the worker; TW_EP_ANY: the next free one */
};
#define TW_EP_ANY 0xffff

int tw_ep_open(tw_worker* worker, const struct tw_ep_attr* attr, tw_ep** ep);
int tw_ep_close(tw_ep* ep);
int tw_ep_bind_av(tw_ep* ep, tw_av* av);
int tw_ep_bind_cq(tw_ep* ep, tw_cq* cq, uint64_t flags); /* TW_SEND and/or TW_RECV */
int tw_ep_enable(tw_ep* ep);
int tw_ep_name(const tw_ep* ep, struct tw_address* address);

#define TW_MAX_MESSAGE_SIZE ((size_t)1 << 30)
#define TW_IOV_LIMIT 8

int tw_tsend(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t tag, void* context);
int tw_tsendv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr dest, uint64_t tag, void* context);
int tw_trecv(tw_ep* ep, void* buffer, size_t length, tw_addr source, uint64_t tag, uint64_t ignore, void* context);
int tw_trecvv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr source, uint64_t tag, uint64_t ignore,
              void* context);
/* Cancels the oldest receive posted with `context`: its completion is ECANCELED. -ENOENT: none, or it already matched. */
int tw_cancel(tw_ep* ep, void* context);

const char* tw_strerror(int error);
/* The text of the last failed call of this thread, with its remedy. */
const char* tw_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
