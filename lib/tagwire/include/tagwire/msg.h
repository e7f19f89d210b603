/* SPDX-License-Identifier: BSD-3-Clause */
/* Untagged messages, fi_msg(3). doc/api/msg.md */
#ifndef TAGWIRE_MSG_H
#define TAGWIRE_MSG_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Untagged messages take untagged receives, in order; neither meets a tagged one. The calls are
 * those of tagwire/tagged.h without tag and mask. */

struct tw_msg {
    const struct iovec* iov;
    size_t iov_count;
    tw_addr addr; /* as in tw_msg_tagged */
    void* context;
    uint64_t data; /* sends with TW_REMOTE_CQ_DATA */
};

int tw_send(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, void* context);
int tw_sendv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr dest, void* context);
int tw_sendmsg(tw_ep* ep, const struct tw_msg* msg, uint64_t flags);
int tw_inject(tw_ep* ep, const void* buffer, size_t length, tw_addr dest);
int tw_senddata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest,
                void* context);
int tw_injectdata(tw_ep* ep, const void* buffer, size_t length, uint64_t data, tw_addr dest);

int tw_recv(tw_ep* ep, void* buffer, size_t length, tw_addr source, void* context);
int tw_recvv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr source, void* context);
/* Flags: TW_COMPLETION, TW_MORE, TW_MULTI_RECV, TW_AUTH_KEY. */
int tw_recvmsg(tw_ep* ep, const struct tw_msg* msg, uint64_t flags);

#ifdef __cplusplus
}
#endif
#endif
