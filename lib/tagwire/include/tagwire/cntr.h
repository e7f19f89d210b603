/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion counters, fi_cntr(3). doc/api/cntr.md */
#ifndef TAGWIRE_CNTR_H
#define TAGWIRE_CNTR_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

int tw_cntr_open(tw_worker* worker, tw_cntr** cntr);
int tw_cntr_close(tw_cntr* cntr); /* -EBUSY while an endpoint is bound to it */
/* Operations that ended well, and those that ended in an error. No progress. */
uint64_t tw_cntr_read(const tw_cntr* cntr);
uint64_t tw_cntr_readerr(const tw_cntr* cntr);
int tw_cntr_add(tw_cntr* cntr, uint64_t value);
int tw_cntr_adderr(tw_cntr* cntr, uint64_t value);
int tw_cntr_set(tw_cntr* cntr, uint64_t value);
int tw_cntr_seterr(tw_cntr* cntr, uint64_t value);
/* Makes progress until the counter is at least `threshold`. -ETIMEDOUT after timeout_ms (negative:
 * never); -TW_EAVAIL when the error count rises meanwhile. */
int tw_cntr_wait(tw_cntr* cntr, uint64_t threshold, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
