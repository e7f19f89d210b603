/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages. doc/api/tagged.md */
#ifndef TAGWIRE_TAGGED_H
#define TAGWIRE_TAGGED_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_MAX_MESSAGE_SIZE ((size_t)1 << 30)
#define TW_IOV_LIMIT 8

int tw_tsend(tw_ep* ep, const void* buffer, size_t length, tw_addr dest, uint64_t tag,
             void* context);
int tw_tsendv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr dest, uint64_t tag,
              void* context);
int tw_trecv(tw_ep* ep, void* buffer, size_t length, tw_addr source, uint64_t tag, uint64_t ignore,
             void* context);
int tw_trecvv(tw_ep* ep, const struct iovec* iov, size_t count, tw_addr source, uint64_t tag,
              uint64_t ignore, void* context);

#ifdef __cplusplus
}
#endif
#endif
