/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers in EAL's memory. doc/api/memory.md */
#ifndef TAGWIRE_MEMORY_H
#define TAGWIRE_MEMORY_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_SOCKET_ANY (-1)

/* `size` bytes of hugepages (of ordinary pages with --no-huge), which devices can read without
 * registration. `align`: a power of two, or 0 for a cache line. `socket`: a NUMA node, or
 * TW_SOCKET_ANY for that of the calling lcore and others if need be. NULL: see tw_last_error. Any
 * thread, after rte_eal_init. */
void* tw_alloc(size_t size, size_t align, int socket);
/* What tw_alloc gave, or NULL. Any thread. */
void tw_free(void* memory);

#ifdef __cplusplus
}
#endif
#endif
