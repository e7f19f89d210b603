// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/domain.h"

#include <pthread.h>
#include <rte_cycles.h>

#include <chrono>
#include <cstring>
#include <new>

#include "lib/fi/address.h"
#include "lib/fi/completion_queue.h"
#include "lib/fi/connection.h"
#include "lib/fi/flags.h"
#include "lib/fi/object.h"
#include "lib/fi/offer.h"
#include "lib/fi/passive_endpoint.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"
#include "lib/port/failure.h"
#include "lib/port/give_way.h"

namespace tagwire::fi {
namespace {

using std::chrono::steady_clock;

// Sends within this time of each other are a burst, which leaves in parts of kBurst.
constexpr double kBurstGapSeconds = 1e-6;
constexpr unsigned kBurst = 16;
constexpr auto kShutdownTime = std::chrono::seconds(5);
constexpr auto kHelperPeriod = std::chrono::microseconds(1000);
constexpr auto kAutomaticPeriod = std::chrono::microseconds(50);

uint64_t burst_gap() {
    static const auto cycles =
        static_cast<uint64_t>(kBurstGapSeconds * static_cast<double>(rte_get_tsc_hz()));
    return cycles;
}

// With FI_PROGRESS_AUTO the helper does the work whenever the application does not; otherwise
// only when the application has been away for a period.
void run_helper(Domain& domain, bool automatic) {
    pthread_setname_np(pthread_self(), "tagwire-helper");
    uint32_t seen = domain.turns;
    bool busy = false;
    while (!domain.stopping) {
        if (!busy) {
            std::this_thread::sleep_for(automatic ? kAutomaticPeriod : kHelperPeriod);
        }
        const uint32_t turns = domain.turns.load(std::memory_order_relaxed);
        busy = false;
        if (automatic || turns == seen) {
            busy = domain.help() > 0;
        }
        seen = turns;
    }
}

void close_worker(Domain& domain) {
    if (domain.helper.joinable()) {
        domain.stopping = true;
        domain.helper.join();
    }
    if (domain.worker == nullptr) {
        return;
    }
    domain.sleepers.close();
    if (domain.connections != nullptr) {
        tw_eq_close(domain.connections);
        domain.connections = nullptr;
    }
    if (domain.sink != nullptr) {
        tw_cq_close(domain.sink);
        domain.sink = nullptr;
    }
    if (domain.no_addresses != nullptr) {
        tw_av_close(domain.no_addresses);
        domain.no_addresses = nullptr;
    }
    // Peers get what was sent, and know that this side ends.
    const auto end = steady_clock::now() + kShutdownTime;
    while (tw_worker_shutdown(domain.worker) == -EAGAIN && steady_clock::now() < end) {
        domain.progress();
    }
    if (const int result = tw_worker_close(domain.worker); result != 0) {
        log_failure("the worker does not close", result);
    }
    domain.worker = nullptr;
}

int close_domain(fid* handle) {
    auto& domain = object_of<Domain>(handle);
    if (domain.children != 0) {
        return refuse_busy(FI_LOG_DOMAIN, "a domain",
                           "its endpoints, queues, counters, address vectors, memory regions and "
                           "poll sets");
    }
    release_domain(domain);
    return 0;
}

int control_domain(fid* handle, int command, void* argument) {
    return control_work(object_of<Domain>(handle), command, argument);
}

// The address that the application wants for its endpoints, where it wants one. It knows the IP
// address of a process's first worker only.
void take_address(const fi_info& info, bool first, tw_address* address) {
    tw_address wanted{};
    if (!read_source(info, &wanted)) {
        return;
    }
    if (first && !names_no_card(wanted)) {
        std::memcpy(address->ip, wanted.ip, sizeof(address->ip));
    }
    if (wanted.udp_port != 0) {
        address->udp_port = wanted.udp_port;
    }
}

int open_worker(Domain& domain, const fi_info& info) {
    const port::Settings settings = read_settings();
    domain.lease = port::Lease::acquire(settings);
    domain.peer_timeout_ms = settings.peer_timeout_ms;
    tw_worker_attr attr = domain.lease->worker_attr();
    take_address(info, domain.lease->index() == 0, &attr.address);
    domain.address = attr.address;
    if (const int result = tw_worker_open(&attr, &domain.worker); result != 0) {
        return log_failure("the worker does not open", result);
    }
    if (info.domain_attr->threading == FI_THREAD_DOMAIN && !domain.lock.prefer_one_thread()) {
        FI_INFO(&provider, FI_LOG_DOMAIN, "no membarrier(2): calls take a mutex\n");
    }
    domain.address_format = info.addr_format;
    domain.basic_memory = (info.domain_attr->mr_mode & (kBasicMemory | FI_MR_VIRT_ADDR)) != 0;
    const bool automatic = info.domain_attr->data_progress == FI_PROGRESS_AUTO;
    domain.helper = std::thread([&domain, automatic] { run_helper(domain, automatic); });
    return 0;
}

fi_ops domain_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_domain,
    .bind = kAbsent,
    .control = control_domain,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = open_av,
    .cq_open = open_cq,
    .endpoint = open_endpoint,
    .scalable_ep = open_scalable_endpoint,
    .cntr_open = open_counter,
    .poll_open = open_poll_set,
    .stx_ctx = open_shared_transmit,
    .srx_ctx = open_shared_receive,
    .query_atomic = query_atomic,
    .query_collective = kAbsent,
    .endpoint2 = kAbsent,
};

int make_domain(Fabric& fabric, const fi_info& info, Domain** made) {
    std::unique_ptr<Domain> domain(new (std::nothrow) Domain{});
    if (domain == nullptr) {
        return -FI_ENOMEM;
    }
    domain->fid.fid.fclass = FI_CLASS_DOMAIN;
    domain->fid.fid.ops = &domain_fid_ops;
    domain->fid.ops = &domain_ops;
    domain->fid.mr = &memory_ops;
    domain->fabric = &fabric;
    try {
        if (const int error = open_worker(*domain, info); error != 0) {
            return error;
        }
    } catch (const port::Failure& failure) {
        FI_WARN(&provider, FI_LOG_DOMAIN, "%s\n", failure.text().c_str());
        return -FI_ENODEV;
    }
    ++fabric.children;
    *made = domain.release();
    return 0;
}

bool is_connected(const fi_info& info) {
    return info.ep_attr != nullptr && info.ep_attr->type == FI_EP_MSG;
}

}  // namespace

int open_domain(fid_fabric* handle, fi_info* info, fid_domain** opened, void* context) {
    if (info == nullptr || info->domain_attr == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_DOMAIN,
                      "fi_domain takes what fi_getinfo gave: info and its domain_attr cannot be "
                      "NULL");
    }
    if (const int error = check_domain(*info->domain_attr); error != 0) {
        return error;
    }
    auto& fabric = object_of<Fabric>(handle);
    PassiveEndpoint* const pep = yielding(*info);
    if (const int error = pep != nullptr ? pep->open() : 0; error != 0) {
        return error;
    }
    const std::lock_guard guard(fabric.mutex);
    Domain* domain = nullptr;
    const bool connected = is_connected(*info);
    if (connected) {
        const ConnectionRequest* const request = request_of(*info);
        domain = pep != nullptr ? pep->domain : request != nullptr ? request->domain : nullptr;
        if (domain == nullptr && fabric.listening != nullptr && !fabric.listening->given) {
            domain = fabric.listening;
        }
    }
    if (domain != nullptr) {
        ++domain->users;
    } else if (const int error = make_domain(fabric, *info, &domain); error != 0) {
        return error;
    }
    if (connected && !domain->given) {
        domain->given = true;
        fabric.connected.push_back(domain);
    }
    domain->for_connections = connected;
    domain->fid.fid.context = context;
    *opened = &domain->fid;
    return 0;
}

int domain_to_listen(Fabric& fabric, const fi_info& info, Domain** domain) {
    const std::lock_guard guard(fabric.mutex);
    if (fabric.listening == nullptr && !fabric.connected.empty()) {
        fabric.listening = fabric.connected.front();
    }
    if (fabric.listening != nullptr) {
        ++fabric.listening->users;
    } else if (const int error = make_domain(fabric, info, &fabric.listening); error != 0) {
        return error;
    }
    *domain = fabric.listening;
    return 0;
}

void release_domain(Domain& domain) {
    Fabric& fabric = *domain.fabric;
    const std::lock_guard guard(fabric.mutex);
    if (--domain.users > 0) {
        return;
    }
    if (fabric.listening == &domain) {
        fabric.listening = nullptr;
    }
    std::erase(fabric.connected, &domain);
    close_worker(domain);
    --fabric.children;
    delete &domain;
}

int Domain::help() {
    if (!lock.helper_try_lock()) {
        return 0;
    }
    // What one turn sends, a software card puts on the wire in the next.
    const int events = tw_progress(worker) + tw_progress(worker);
    if (sink != nullptr || connections != nullptr || deferred.active()) {
        rare_work();
    }
    lock.helper_unlock();
    if (events > 0) {
        sleepers.wake();  // the core takes a worker's turns for those of the thread that sleeps
    }
    return events;
}

void Domain::posted() {
    const uint64_t now = rte_rdtsc();
    const bool burst = now - last_post < burst_gap();
    last_post = now;
    if (!burst || ++unflushed >= kBurst) {
        progress();
        last_post = rte_rdtsc();  // the time of the turn is no pause of the application
    }
}

void Domain::yield() {
    idle_turns = 0;
    lock.unlock();
    idle_limit = port::give_way() ? kIdleTurnsBeforeNap : kIdleTurnsBeforeYield;
    lock.lock();
}

void Domain::rare_work() {
    tw_cq_entry entry;
    tw_cq_error error;
    for (ssize_t count = 0; sink != nullptr && count != -EAGAIN;) {
        count = tw_cq_read(sink, &entry, 1);
        if (count == -TW_EAVAIL) {
            tw_cq_readerr(sink, &error);
            deferred.take(error.entry, true);
        } else if (count == 1) {
            deferred.take(entry, false);
        } else {
            count = -EAGAIN;
        }
    }
    if (connections != nullptr) {
        pump_connection_events(*this);
    }
    if (deferred.active()) {
        for (CompletionQueue* queue : queues) {
            queue->collect();
        }
        deferred.run();
    }
}

int Domain::open_sink() {
    if (sink != nullptr) {
        return 0;
    }
    const tw_cq_attr attr{.size = sizeof(tw_cq_attr), .entries = 0};
    return tw_cq_open(worker, &attr, &sink);
}

int Domain::open_no_addresses() {
    return no_addresses != nullptr ? 0 : tw_av_open(worker, &no_addresses);
}

int Domain::open_wait(tw_wait** wait, int* fd) {
    if (const int result = tw_wait_open(worker, wait); result != 0) {
        return log_failure("no descriptor to wait on", result);
    }
    sleepers.add(*wait);
    return tw_wait_fd(*wait, fd);
}

}  // namespace tagwire::fi
