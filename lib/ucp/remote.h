// SPDX-License-Identifier: BSD-3-Clause
// Put, get and atomics on the core's. put_get.cc, atomic.cc
#pragma once

#include "lib/ucp/worker.h"

namespace tagwire::ucp {

// Completes when the target has it.
inline constexpr uint64_t kRemoteFlags = TW_COMPLETION | TW_DELIVERY_COMPLETE;

// TW_FENCE for the first operation with the peer after ucp_worker_fence: the first that the core
// takes, which is then observed.
inline uint64_t fence_flag(const Worker& worker, const Peer& peer) {
    return peer.fence == worker.fence() ? 0 : TW_FENCE;
}
inline void fence_observed(const Worker& worker, Peer& peer) {
    peer.fence = worker.fence();
}

ucs_status_ptr_t put(Endpoint& endpoint, const void* buffer, size_t count, uint64_t address,
                     const ucp_rkey& rkey, const Call& call, bool wants_request);
ucs_status_ptr_t get(Endpoint& endpoint, void* buffer, size_t count, uint64_t address,
                     const ucp_rkey& rkey, const Call& call);

struct AtomicCall {
    ucp_atomic_op_t op;
    uint64_t operand;  // of a compare-and-swap: what is compared
    size_t size;
    void* result;  // NULL: nothing is fetched. Of a compare-and-swap: in, the new value
    uint64_t address;
    const ucp_rkey* rkey;
};
ucs_status_ptr_t atomic(Endpoint& endpoint, const AtomicCall& atomic, const Call& call);

}  // namespace tagwire::ucp
