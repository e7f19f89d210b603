/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues. doc/api/cq.md */
#ifndef TAGWIRE_CQ_H
#define TAGWIRE_CQ_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_cq_entry {
    void* context;
    uint64_t flags;
    size_t length; /* bytes received */
    void* buffer;  /* the receive buffer */
    uint64_t data; /* remote CQ data, with TW_REMOTE_CQ_DATA */
    uint64_t tag;  /* the sender's tag */
    tw_addr
        source; /* receives: the sender, or TW_ADDR_NOTAVAIL when it is not in the address vector */
};
struct tw_cq_error {
    struct tw_cq_entry entry;
    size_t message_length; /* the sender's length of a received message, truncated or not */
    size_t overflow;    /* olen of fi_cq(3): bytes of it that did not fit the buffer (TW_ETRUNC) */
    int error;          /* positive errno or TW_E... */
    int provider_error; /* the transport's status, positive; 0 when the error is the core's */
    const char* text;   /* what happened; a static string */
};
struct tw_cq_attr {
    size_t size;      /* sizeof(struct tw_cq_attr) */
    uint32_t entries; /* 0: room for every operation that the worker can have outstanding */
};

int tw_cq_open(tw_worker* worker, const struct tw_cq_attr* attr, tw_cq** cq);
int tw_cq_close(tw_cq* cq);
/* Up to `count` completions, oldest first. -EAGAIN: none. -TW_EAVAIL: the next one is an error,
 * take it with tw_cq_readerr. */
ssize_t tw_cq_read(tw_cq* cq, struct tw_cq_entry* entries, size_t count);
/* As tw_cq_read, but makes progress and sleeps until there is a completion: -EAGAIN after
 * timeout_ms (negative: never), and after tw_cq_signal. */
ssize_t tw_cq_sread(tw_cq* cq, struct tw_cq_entry* entries, size_t count, int timeout_ms);
/* Ends the calls of tw_cq_sread that wait, or else the next one. Any thread, also in a signal
 * handler. */
int tw_cq_signal(tw_cq* cq);
/* 1, or -EAGAIN when the next completion is not an error. */
ssize_t tw_cq_readerr(tw_cq* cq, struct tw_cq_error* error);

#ifdef __cplusplus
}
#endif
#endif
