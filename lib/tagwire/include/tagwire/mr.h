/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions: memory that peers may read and write, fi_mr(3). doc/api/mr.md */
#ifndef TAGWIRE_MR_H
#define TAGWIRE_MR_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tw_mr_attr {
    size_t size;             /* sizeof(struct tw_mr_attr) */
    const struct iovec* iov; /* the memory; it stays the caller's until tw_mr_close */
    size_t iov_count;        /* 1 to TW_IOV_LIMIT; more than 1 only with TW_MR_OFFSET */
    uint64_t access; /* TW_REMOTE_READ, TW_REMOTE_WRITE. TW_READ, TW_WRITE, TW_SEND and TW_RECV
                      * are taken as well, and need no region */
    uint64_t flags;  /* TW_MR_REQUESTED_KEY, TW_MR_OFFSET, TW_RMA_EVENT */
    uint64_t requested_key; /* with TW_MR_REQUESTED_KEY */
    void* context;          /* the caller's: tw_mr_context */
};

/* The region is open to every peer of the worker's endpoints that knows its key. -ENOKEY: the
 * requested key is in use. */
int tw_mr_open(tw_worker* worker, const struct tw_mr_attr* attr, tw_mr** mr);
/* On return nothing of the worker touches the memory any more: puts under way into it end with an
 * error at their origin, gets under way with what was there. -ENOMEM: no memory to keep what gets
 * under way still have to send; the region stays open. */
int tw_mr_close(tw_mr* mr);
/* Random 64 bits, or the requested key. */
uint64_t tw_mr_key(const tw_mr* mr);
void* tw_mr_context(const tw_mr* mr);
/* Counts accesses of peers that ended: TW_REMOTE_WRITE puts and atomics, TW_REMOTE_READ gets and
 * fetching atomics. The region must have been opened with TW_RMA_EVENT. */
int tw_mr_bind_cntr(tw_mr* mr, tw_cntr* cntr, uint64_t flags);

#ifdef __cplusplus
}
#endif
#endif
