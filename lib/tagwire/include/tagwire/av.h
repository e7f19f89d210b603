/* SPDX-License-Identifier: BSD-3-Clause */
/* Address vectors: peers by index, fi_av(3). doc/api/av.md */
#ifndef TAGWIRE_AV_H
#define TAGWIRE_AV_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

int tw_av_open(tw_worker* worker, tw_av** av);
int tw_av_close(tw_av* av);
/* The same address has the same index until it is removed; no index is ever given out twice. */
int tw_av_insert(tw_av* av, const struct tw_address* address, tw_addr* index);
int tw_av_lookup(const tw_av* av, tw_addr index, struct tw_address* address);
/* -EBUSY while an operation with the peer is under way; of a key, while endpoints are bound. */
int tw_av_remove(tw_av* av, tw_addr index);

/* An authorization key (1 to TW_AUTH_KEY_MAX bytes) for the endpoints of the vector, beside their
 * own. Its index is for receives with TW_AUTH_KEY and for tw_av_insert_with_key. */
int tw_av_insert_auth_key(tw_av* av, const void* key, size_t size, tw_addr* key_index);
/* A peer that is spoken to with that key. */
int tw_av_insert_with_key(tw_av* av, const struct tw_address* address, tw_addr key_index,
                          tw_addr* index);

#ifdef __cplusplus
}
#endif
#endif
