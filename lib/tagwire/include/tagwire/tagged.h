/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages, fi_tagged(3). doc/api/tagged.md */
#ifndef TAGWIRE_TAGGED_H
#define TAGWIRE_TAGGED_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each call returns 0 or a negative errno; after an error nothing has happened. */

struct tw_msg_tagged {
    const struct iovec* iov;
    size_t iov_count;
    tw_addr addr; /* sends: the peer. Receives: the peer, or TW_ADDR_UNSPEC, or with TW_AUTH_KEY
                   * what tw_av_insert_auth_key gave */
    uint64_t tag;
    uint64_t ignore; /* receives: bits of the tag that may differ */
    void* context;
    uint64_t data; /* sends with TW_REMOTE_CQ_DATA */
};

int tw_tsend(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t tag,
             void* context);
int tw_tsendv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr dest, uint64_t tag,
              void* context);
/* Flags: TW_COMPLETION, TW_MORE, TW_REMOTE_CQ_DATA, TW_INJECT, TW_FENCE, and one completion level.
 * They replace the endpoint's tx_flags. */
int tw_tsendmsg(tw_ep* ep, const struct tw_msg_tagged* msg, uint64_t flags);
/* At most TW_INJECT_SIZE bytes; the buffer is free on return; only an error completes. */
int tw_tinject(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t tag);
int tw_tsenddata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                 uint64_t tag, void* context);
int tw_tinjectdata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                   uint64_t tag);

int tw_trecv(tw_ep* ep, void* buffer, size_t length, tw_addr source, uint64_t tag, uint64_t ignore,
             void* context);
int tw_trecvv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr source, uint64_t tag,
              uint64_t ignore, void* context);
/* Flags: TW_COMPLETION, TW_MORE, TW_MULTI_RECV, TW_AUTH_KEY; TW_PEEK, TW_CLAIM, TW_DISCARD. They
 * replace the endpoint's rx_flags. */
int tw_trecvmsg(tw_ep* ep, const struct tw_msg_tagged* msg, uint64_t flags);

#ifdef __cplusplus
}
#endif
#endif
