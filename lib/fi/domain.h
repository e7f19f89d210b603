// SPDX-License-Identifier: BSD-3-Clause
// A domain is a worker on a port of its own. Each call holds the domain's lock. A helper thread
// turns the worker when the application has not done so for a while (or all the time, with
// FI_PROGRESS_AUTO): peers wait for acknowledgements also while it computes, or sleeps elsewhere.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <tagwire/tagwire.h>

#include <atomic>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "lib/fi/deferred.h"
#include "lib/fi/domain_lock.h"
#include "lib/fi/fabric.h"
#include "lib/fi/sleep.h"
#include "lib/port/process_ports.h"

namespace tagwire::fi {

struct CompletionQueue;
struct CoreEndpoint;
struct Endpoint;

struct Domain {
    fid_domain fid;
    Fabric* fabric;
    std::unique_ptr<port::Lease> lease;
    tw_worker* worker = nullptr;
    tw_address address{};  // the worker's
    DomainLock lock;
    bool basic_memory = false;  // remote addresses are virtual, keys are chosen by us
    uint32_t address_format = FI_SOCKADDR_IN;  // of its address vectors
    std::atomic<int> children{0};
    uint64_t last_post = 0;  // TSC of the last send
    unsigned unflushed = 0;  // sends since the last turn
    unsigned idle_turns = 0;
    unsigned idle_limit = kIdleTurnsBeforeYield;
    SleepPool sleepers;
    unsigned peer_timeout_ms = 0;
    DeferredWork deferred{*this};
    std::vector<CompletionQueue*> queues;
    std::vector<CoreEndpoint*> receive_contexts;
    // Receive contexts without a transmit context, which start with the application's next turn.
    std::vector<std::weak_ptr<CoreEndpoint>> starting;
    tw_eq* connections = nullptr;  // events of connected endpoints
    std::unordered_map<tw_ep*, Endpoint*> connected;
    bool given = false;              // by an fi_domain
    int users = 1;                   // fi_domain, and passive endpoints
    bool for_connections = false;    // what it was opened with is of FI_EP_MSG
    tw_cq* sink = nullptr;           // of endpoints without a completion queue
    tw_av* no_addresses = nullptr;   // of receive contexts of connected endpoints
    std::atomic<uint32_t> turns{0};  // of the application
    std::atomic<bool> stopping{false};
    std::thread helper;

    // One turn of the worker.
    void progress() {
        unflushed = 0;
        turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (!starting.empty()) [[unlikely]] {
            start_receivers();
        }
        if (tw_progress(worker) > 0) [[likely]] {
            idle_turns = 0;
        } else if (++idle_turns >= idle_limit) {
            yield();
        }
        if (sink != nullptr || connections != nullptr || deferred.active()) [[unlikely]] {
            rare_work();
        }
    }
    // After a send: it leaves now, unless it is one of many in a row, which leave together.
    void posted();
    void yield();
    // What the helper does: a turn, unless the application is in a call. Any thread.
    int help();
    void start_receivers();
    // Behind a turn: deferred operations, and the queue that nobody reads.
    void rare_work();
    // The queue of an endpoint, or of a direction, that is bound to counters only.
    int open_sink();
    int open_no_addresses();
    // Receive contexts without endpoints let go of a queue or counter that is to be closed.
    int free_from_receive_contexts(const void* queue_or_counter);

    // A descriptor that can be armed to tell when there is something to do.
    int open_wait(tw_wait** wait, int* fd);

    // Two peers on one core must not wait for the end of a time slice.
    static constexpr unsigned kIdleTurnsBeforeYield = 64;
    static constexpr unsigned kIdleTurnsBeforeNap = 16;
};

class Guard {
  public:
    explicit Guard(Domain& domain) : lock_(domain.lock) { lock_.lock(); }
    ~Guard() { lock_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    DomainLock& lock_;
};

// The domain that the fabric's passive endpoints share.
int domain_to_listen(Fabric& fabric, const fi_info& info, Domain** domain);
// Closes it with the last user.
void release_domain(Domain& domain);

// The other files' part of a domain's operations.
extern fi_ops_mr memory_ops;
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op op, fi_atomic_attr* attr,
                 uint64_t flags);
int open_av(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context);
int open_cq(fid_domain* domain, fi_cq_attr* attr, fid_cq** cq, void* context);
int open_counter(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** counter, void* context);
int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context);
int open_scalable_endpoint(fid_domain* domain, fi_info* info, fid_ep** ep, void* context);
int open_shared_transmit(fid_domain* domain, fi_tx_attr* attr, fid_stx** stx, void* context);
int open_shared_receive(fid_domain* domain, fi_rx_attr* attr, fid_ep** srx, void* context);
int open_poll_set(fid_domain* domain, fi_poll_attr* attr, fid_poll** set);

}  // namespace tagwire::fi
