/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints, fi_endpoint(3). doc/api/endpoint.md */
#ifndef TAGWIRE_ENDPOINT_H
#define TAGWIRE_ENDPOINT_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_ep_attr {
    size_t size;
    uint16_t endpoint; /* number within the worker; TW_EP_ANY: the next free one */
    uint16_t reserved;
    uint64_t tx_flags; /* of sends without a flags argument: TW_COMPLETION, one completion level */
    uint64_t rx_flags; /* of receives without one: TW_COMPLETION, TW_MULTI_RECV */
    const void* auth_key; /* peers must have the same one; NULL: none */
    size_t auth_key_size; /* at most TW_AUTH_KEY_MAX */
    uint32_t type;        /* TW_EP_RDM: connectionless. TW_EP_MSG: connected (tagwire/connect.h) */
    struct tw_request* request; /* TW_EP_MSG: the request that it will accept */
};
#define TW_EP_RDM 0
#define TW_EP_MSG 1
#define TW_EP_ANY 0xffff

int tw_ep_open(tw_worker* worker, const struct tw_ep_attr* attr, tw_ep** ep);
int tw_ep_close(tw_ep* ep);
int tw_ep_bind_av(tw_ep* ep, tw_av* av);
/* TW_SEND and/or TW_RECV; with TW_SELECTIVE_COMPLETION only operations with TW_COMPLETION, and
 * errors, have an entry. */
int tw_ep_bind_cq(tw_ep* ep, tw_cq* cq, uint64_t flags);
/* Any of TW_SEND, TW_RECV; TW_WRITE (puts, atomics), TW_READ (gets, fetching atomics);
 * TW_REMOTE_WRITE, TW_REMOTE_READ (the same, of peers to any region, through this endpoint). */
int tw_ep_bind_cntr(tw_ep* ep, tw_cntr* cntr, uint64_t flags);
int tw_ep_enable(tw_ep* ep);
int tw_ep_name(const tw_ep* ep, struct tw_address* address);
/* Before it is enabled: another address, of which only the endpoint's number is its own. IP address
 * and UDP port are 0 or the worker's, else -EADDRNOTAVAIL. -EADDRINUSE: the number is taken. */
int tw_ep_set_name(tw_ep* ep, const struct tw_address* address);

enum tw_option {
    TW_OPT_MIN_MULTI_RECV = 0,   /* size_t, default 64: of receives posted afterwards */
    TW_OPT_INJECT_SIZE = 1,      /* size_t, cannot be set */
    TW_OPT_MAX_MESSAGE_SIZE = 2, /* size_t, cannot be set */
    /* size_t, 0 (default) or 1: a posted receive that names its source ends with an error when that
     * peer is found dead, and it is asked whether it lives */
    TW_OPT_WATCH_SOURCES = 3,
    /* size_t, 0 (default) or 1: a message longer than its receive leaves the buffers untouched */
    TW_OPT_WHOLE_MESSAGES = 4,
};
int tw_ep_setopt(tw_ep* ep, int option, const void* value, size_t size);
int tw_ep_getopt(const tw_ep* ep, int option, void* value, size_t* size);

/* Cancels the oldest receive posted with `context`, which is not NULL: its completion is ECANCELED.
 * -ENOENT: there is none, or it already matched. Sends cannot be cancelled. */
int tw_cancel(tw_ep* ep, void* context);
/* Gives a peer up: what is under way between it and the endpoint ends with ECANCELED at the next
 * tw_progress, and with ECONNRESET there. What is sent afterwards begins anew. */
int tw_ep_reset_peer(tw_ep* ep, tw_addr peer);
/* 1: the peer has answered, and a session stands: what is sent leaves with the next tw_progress.
 * 0: it has not, or not since it was lost. */
int tw_ep_peer_is_up(tw_ep* ep, tw_addr peer);

#ifdef __cplusplus
}
#endif
#endif
