/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics, fi_atomic(3). doc/api/atomic.md */
#ifndef TAGWIRE_ATOMIC_H
#define TAGWIRE_ATOMIC_H

#include <tagwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbered as enum fi_datatype and enum fi_op. */
enum tw_datatype {
    TW_INT8,
    TW_UINT8,
    TW_INT16,
    TW_UINT16,
    TW_INT32,
    TW_UINT32,
    TW_INT64,
    TW_UINT64,
    TW_FLOAT,
    TW_DOUBLE,
};
enum tw_op {
    TW_MIN,
    TW_MAX,
    TW_SUM,
    TW_PROD,
    TW_LOR,
    TW_LAND,
    TW_BOR,
    TW_BAND,
    TW_LXOR,
    TW_BXOR,
    TW_ATOMIC_READ,  /* fetching only */
    TW_ATOMIC_WRITE, /* fetching, it is a swap */
    TW_CSWAP,        /* this and the following: comparing only */
    TW_CSWAP_NE,
    TW_CSWAP_LE, /* swaps where compare <= target */
    TW_CSWAP_LT,
    TW_CSWAP_GE,
    TW_CSWAP_GT,
    TW_MSWAP, /* target = (operand & compare) | (target & ~compare) */
};
/* Bytes of all operands of one operation; as many again for what it compares with. */
#define TW_ATOMIC_SIZE 1024

struct tw_ioc {
    void* addr;
    size_t count; /* elements of the datatype */
};
struct tw_rma_ioc {
    uint64_t address; /* a multiple of the element's size */
    size_t count;
    uint64_t key;
};
struct tw_msg_atomic {
    const struct tw_ioc* ioc; /* operands; ignored by TW_ATOMIC_READ */
    size_t ioc_count;
    tw_addr addr;
    const struct tw_rma_ioc* rma_ioc;
    size_t rma_ioc_count; /* 1 to TW_IOV_LIMIT */
    enum tw_datatype datatype;
    enum tw_op op;
    void* context;
    uint64_t data; /* reserved: 0 */
};

/* Each call returns 0 or a negative errno; after an error nothing has happened. `count` is in
 * elements. Operands are free on return; results are the library's until the operation completes.
 */

int tw_atomic(tw_ep* ep, const void* buffer, size_t count, tw_addr dest, uint64_t remote_address,
              uint64_t key, enum tw_datatype datatype, enum tw_op op, void* context);
int tw_atomicv(tw_ep* ep, const struct tw_ioc* ioc, size_t ioc_count, tw_addr dest,
               uint64_t remote_address, uint64_t key, enum tw_datatype datatype, enum tw_op op,
               void* context);
/* Flags: TW_COMPLETION, TW_MORE, TW_INJECT, TW_FENCE, one completion level. */
int tw_atomicmsg(tw_ep* ep, const struct tw_msg_atomic* msg, uint64_t flags);
/* At most TW_INJECT_SIZE bytes; only an error completes. */
int tw_inject_atomic(tw_ep* ep, const void* buffer, size_t count, tw_addr dest,
                     uint64_t remote_address, uint64_t key, enum tw_datatype datatype,
                     enum tw_op op);

int tw_fetch_atomic(tw_ep* ep, const void* buffer, size_t count, void* result, tw_addr dest,
                    uint64_t remote_address, uint64_t key, enum tw_datatype datatype, enum tw_op op,
                    void* context);
int tw_fetch_atomicv(tw_ep* ep, const struct tw_ioc* ioc, size_t ioc_count,
                     const struct tw_ioc* results, size_t result_count, tw_addr dest,
                     uint64_t remote_address, uint64_t key, enum tw_datatype datatype,
                     enum tw_op op, void* context);
int tw_fetch_atomicmsg(tw_ep* ep, const struct tw_msg_atomic* msg, const struct tw_ioc* results,
                       size_t result_count, uint64_t flags);

int tw_compare_atomic(tw_ep* ep, const void* buffer, size_t count, const void* compare,
                      void* result, tw_addr dest, uint64_t remote_address, uint64_t key,
                      enum tw_datatype datatype, enum tw_op op, void* context);
int tw_compare_atomicv(tw_ep* ep, const struct tw_ioc* ioc, size_t ioc_count,
                       const struct tw_ioc* compares, size_t compare_count,
                       const struct tw_ioc* results, size_t result_count, tw_addr dest,
                       uint64_t remote_address, uint64_t key, enum tw_datatype datatype,
                       enum tw_op op, void* context);
int tw_compare_atomicmsg(tw_ep* ep, const struct tw_msg_atomic* msg, const struct tw_ioc* compares,
                         size_t compare_count, const struct tw_ioc* results, size_t result_count,
                         uint64_t flags);

/* 0 when the operation exists for the datatype, with the most elements of one call in *count;
 * else -EOPNOTSUPP. `ep` may be NULL: all have the same ones. `kind`: 0, TW_FETCH_ATOMIC or
 * TW_COMPARE_ATOMIC. */
int tw_atomic_valid(const tw_ep* ep, enum tw_datatype datatype, enum tw_op op, uint64_t kind,
                    size_t* count);

#ifdef __cplusplus
}
#endif
#endif
