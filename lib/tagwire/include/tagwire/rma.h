/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get, fi_rma(3), and flush. doc/api/rma.md */
#ifndef TAGWIRE_RMA_H
#define TAGWIRE_RMA_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each call returns 0 or a negative errno; after an error nothing has happened. Local buffers are
 * the library's until the operation completes. */

struct tw_rma_iov {
    uint64_t address; /* in the region: a virtual address of the target, or with TW_MR_OFFSET the
                       * bytes from its start */
    size_t length;
    uint64_t key;
};
struct tw_msg_rma {
    const struct iovec* iov; /* local; as long in all as rma_iov */
    size_t iov_count;
    tw_addr addr;
    const struct tw_rma_iov* rma_iov;
    size_t rma_iov_count; /* 1 to TW_IOV_LIMIT */
    void* context;
    uint64_t data; /* puts with TW_REMOTE_CQ_DATA */
};

int tw_write(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t remote_address,
             uint64_t key, void* context);
int tw_writev(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr dest,
              uint64_t remote_address, uint64_t key, void* context);
/* Flags: TW_COMPLETION, TW_MORE, TW_INJECT, TW_REMOTE_CQ_DATA, TW_FENCE, one completion level. They
 * replace the endpoint's tx_flags. */
int tw_writemsg(tw_ep* ep, const struct tw_msg_rma* msg, uint64_t flags);
/* At most TW_INJECT_SIZE bytes; the buffer is free on return; only an error completes. */
int tw_inject_write(tw_ep* ep, const void* buffer, size_t length, tw_addr dest,
                    uint64_t remote_address, uint64_t key);
int tw_writedata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                 uint64_t remote_address, uint64_t key, void* context);
int tw_inject_writedata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                        uint64_t remote_address, uint64_t key);

int tw_read(tw_ep* ep, void* buffer, size_t length, tw_addr source, uint64_t remote_address,
            uint64_t key, void* context);
int tw_readv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr source,
             uint64_t remote_address, uint64_t key, void* context);
/* Flags: TW_COMPLETION, TW_MORE, TW_FENCE, and a completion level, which a get reaches anyway. */
int tw_readmsg(tw_ep* ep, const struct tw_msg_rma* msg, uint64_t flags);

/* Completes with TW_FLUSH once every operation of the endpoint begun before it to `dest`
 * (TW_ADDR_UNSPEC: to all peers) has ended: puts and atomics at the target, gets here, messages
 * with the level that they asked for. It holds nothing up, and always has a completion. */
int tw_ep_flush(tw_ep* ep, tw_addr dest, void* context);

#ifdef __cplusplus
}
#endif
#endif
