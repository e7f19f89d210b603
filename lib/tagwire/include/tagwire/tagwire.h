/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tagwire's native API: tagged messages with the semantics of libfabric's
 * fi_tagged(3) over any DPDK port.
 *
 * Threading: every object belongs to one worker, and a worker to one thread at a time unless
 * it was opened with TW_THREAD_SAFE. Only the calls that say so sleep. Calls return 0 (or a count)
 * or a negative errno.
 */
#ifndef TAGWIRE_H
#define TAGWIRE_H

#include <tagwire/atomic.h>
#include <tagwire/av.h>
#include <tagwire/cntr.h>
#include <tagwire/connect.h>
#include <tagwire/cq.h>
#include <tagwire/endpoint.h>
#include <tagwire/memory.h>
#include <tagwire/mr.h>
#include <tagwire/msg.h>
#include <tagwire/rma.h>
#include <tagwire/tagged.h>
#include <tagwire/types.h>
#include <tagwire/wait.h>
#include <tagwire/worker.h>

#endif
