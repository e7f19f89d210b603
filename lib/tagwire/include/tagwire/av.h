/* SPDX-License-Identifier: BSD-3-Clause */
/* Address vectors: peers by index. doc/api/av.md */
#ifndef TAGWIRE_AV_H
#define TAGWIRE_AV_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

int tw_av_open(tw_worker* worker, tw_av** av);
int tw_av_close(tw_av* av);
int tw_av_insert(tw_av* av, const struct tw_address* address, tw_addr* index);
int tw_av_lookup(const tw_av* av, tw_addr index, struct tw_address* address);

#ifdef __cplusplus
}
#endif
#endif
