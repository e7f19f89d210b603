/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected endpoints, fi_cm(3) and fi_eq(3). doc/api/connect.md */
#ifndef TAGWIRE_CONNECT_H
#define TAGWIRE_CONNECT_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_eq tw_eq;           /* event queue */
typedef struct tw_pep tw_pep;         /* passive endpoint: it listens */
typedef struct tw_request tw_request; /* a peer that wants to connect */

#define TW_CM_PARAM_MAX                                                      \
    256 /* bytes of the application that travel with connect, accept, reject \
         */

enum tw_event {
    TW_CONNREQ = 1,   /* pep, request, context, peer, param */
    TW_CONNECTED = 2, /* ep, peer, param of the accept (on the side that called tw_connect) */
    TW_SHUTDOWN = 3,  /* ep, peer, error: 0, or why the peer is gone */
};
struct tw_eq_entry {
    enum tw_event event;
    int error; /* TW_SHUTDOWN: 0 the peer closed in order; ECONNRESET; ETIMEDOUT */
    tw_ep* ep;
    tw_pep* pep;
    void* context;       /* TW_CONNREQ: the one of tw_pep_attr */
    tw_request* request; /* until it was rejected, or its endpoint is accepted or closed */
    struct tw_address peer;
    size_t param_length;
    uint8_t param[TW_CM_PARAM_MAX];
};
struct tw_eq_error { /* a tw_connect or tw_accept that came to nothing */
    tw_ep* ep;
    int error;        /* positive errno */
    const char* text; /* a static string */
    size_t param_length;
    uint8_t param[TW_CM_PARAM_MAX]; /* of the reject */
};
struct tw_eq_attr {
    size_t size;      /* sizeof(struct tw_eq_attr) */
    uint32_t entries; /* any: each endpoint and request brings the room for its events */
};

int tw_eq_open(tw_worker* worker, const struct tw_eq_attr* attr, tw_eq** eq);
int tw_eq_close(tw_eq* eq);
/* 1, -EAGAIN when there is none, -TW_EAVAIL when the next one is an error. TW_PEEK leaves it. */
int tw_eq_read(tw_eq* eq, struct tw_eq_entry* entry, uint64_t flags);
/* The same, after progress and sleep: -EAGAIN after timeout_ms (negative: never). */
int tw_eq_sread(tw_eq* eq, struct tw_eq_entry* entry, int timeout_ms, uint64_t flags);
/* 1, or -EAGAIN when the next event is no error. */
int tw_eq_readerr(tw_eq* eq, struct tw_eq_error* error);

struct tw_pep_attr {
    size_t size;       /* sizeof(struct tw_pep_attr) */
    uint16_t endpoint; /* its number, TW_EP_ANY: the next free one */
    uint16_t reserved;
    uint32_t backlog; /* requests neither accepted nor rejected; 0: 64. More are refused. */
    tw_eq* eq;
    void* context;
    const void* auth_key; /* peers must have the same one; NULL: none */
    size_t auth_key_size;
};
int tw_pep_open(tw_worker* worker, const struct tw_pep_attr* attr, tw_pep** pep);
int tw_pep_close(tw_pep* pep);
int tw_pep_name(const tw_pep* pep, struct tw_address* address);
int tw_listen(tw_pep* pep);
int tw_reject(tw_pep* pep, tw_request* request, const void* param, size_t param_length);

/* Endpoints of type TW_EP_MSG (struct tw_ep_attr). */
int tw_ep_bind_eq(tw_ep* ep, tw_eq* eq);
/* Before it is enabled: what the peer sends meets the receives of `receiver`, an endpoint of type
 * TW_EP_RDM of the same worker, and ends in its completion queue (a shared receive context,
 * fi_endpoint(3)). `ep` itself takes no receives. `receiver` is enabled first and closed last. */
int tw_ep_bind_receiver(tw_ep* ep, tw_ep* receiver);
/* Return at once; TW_CONNECTED or an error is in the event queue later. */
int tw_connect(tw_ep* ep, const struct tw_address* address, const void* param, size_t param_length);
int tw_accept(tw_ep* ep, const void* param, size_t param_length);
/* What was sent before is delivered, then the peer has TW_SHUTDOWN. `flags` is 0. */
int tw_shutdown(tw_ep* ep, uint64_t flags);
int tw_getpeer(const tw_ep* ep, struct tw_address* address);

#ifdef __cplusplus
}
#endif
#endif
