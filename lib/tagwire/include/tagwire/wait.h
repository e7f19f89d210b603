/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping until a worker has something to do. doc/api/wait.md */
#ifndef TAGWIRE_WAIT_H
#define TAGWIRE_WAIT_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A descriptor for poll, epoll or select, which becomes readable when tw_progress has something to
 * do. Not to be read or closed by the caller. To sleep: arm; on 0 poll the descriptor; tw_progress.
 *
 * Each thread (or event loop) that sleeps has a descriptor of its own: the worker's, or one of
 * tw_wait_open.
 */
int tw_worker_wait_fd(tw_worker* worker, int* fd);
/* 0: nothing is to be done, sleep now. -EAGAIN: there is something, call tw_progress and read the
 * queues first. Makes progress itself. As fi_trywait(3). */
int tw_worker_arm(tw_worker* worker);
/* Makes the descriptor readable until it is armed next. Any thread, also in a signal handler. */
int tw_worker_signal(tw_worker* worker);

typedef struct tw_wait tw_wait; /* one more descriptor of a worker */
int tw_wait_open(tw_worker* worker, tw_wait** wait);
int tw_wait_close(tw_wait* wait);
int tw_wait_fd(const tw_wait* wait, int* fd);
int tw_wait_arm(tw_wait* wait);
int tw_wait_signal(tw_wait* wait);

#ifdef __cplusplus
}
#endif
#endif
