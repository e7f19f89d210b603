/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints. doc/api/endpoint.md */
#ifndef TAGWIRE_ENDPOINT_H
#define TAGWIRE_ENDPOINT_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Cancels the oldest receive posted with `context`: its completion is ECANCELED. -ENOENT: none, or
 * it already matched. */
int tw_cancel(tw_ep* ep, void* context);

#ifdef __cplusplus
}
#endif
#endif
