// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/fabric.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "lib/port/failure.h"
#include "lib/port/process_ports.h"
#include "lib/ucp/log.h"

namespace tagwire::ucp {
namespace {

// The transport keeps room for two packets of each peer.
uint32_t held_mb(const port::Settings& settings) {
    constexpr uint32_t kLargestMtu = 9216;
    const uint64_t bytes =
        uint64_t{3} * settings.max_peers * (settings.mtu != 0 ? settings.mtu : kLargestMtu);
    return static_cast<uint32_t>((bytes >> 20) + 1);
}

class PortFabric final : public Fabric {
  public:
    int open_worker(tw_worker_attr wanted, tw_worker** worker, tw_address* address) override;
    void close_worker(tw_worker* worker) override;
    std::string device_name() override;

  private:
    std::mutex mutex_;
    std::unordered_map<tw_worker*, std::unique_ptr<port::Lease>> leases_;
};

int PortFabric::open_worker(tw_worker_attr wanted, tw_worker** worker, tw_address* address) {
    try {
        port::Settings settings = port::Settings::from_environment();
        settings.max_peers = std::max(settings.max_peers, wanted.max_peers);
        settings.unexpected_mb = std::max(settings.unexpected_mb, held_mb(settings));
        auto lease = port::Lease::acquire(settings);
        tw_worker_attr attr = lease->worker_attr();
        if (const int error = tw_worker_open(&attr, worker); error != 0) {
            log_error("ucp_worker_create: %s", tw_last_error());
            return error;
        }
        *address = attr.address;
        const std::lock_guard<std::mutex> lock(mutex_);
        leases_[*worker] = std::move(lease);
        return 0;
    } catch (const port::Failure& failure) {
        log_error("ucp_worker_create: %s", failure.text().c_str());
        return -ENODEV;
    }
}

void PortFabric::close_worker(tw_worker* worker) {
    std::unique_ptr<port::Lease> lease;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = leases_.find(worker);
        if (found != leases_.end()) {
            lease = std::move(found->second);
            leases_.erase(found);
        }
    }
    if (const int error = tw_worker_close(worker); error != 0) {
        log_warning("a worker was not closed: %s", tw_last_error());
        // Its port cannot serve another one.
        lease.release();  // NOLINT(bugprone-unused-return-value)
    }
}

std::string PortFabric::device_name() {
    try {
        return port::prospect(port::Settings::from_environment()).device;
    } catch (const port::Failure&) {
        return "none";
    }
}

Fabric* replaced = nullptr;

}  // namespace

Fabric& fabric() {
    static PortFabric ports;
    return replaced != nullptr ? *replaced : ports;
}

void set_fabric(Fabric* replacement) {
    replaced = replacement;
}

}  // namespace tagwire::ucp
