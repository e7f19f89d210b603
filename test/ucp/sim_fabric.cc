// SPDX-License-Identifier: BSD-3-Clause
#include "test/ucp/sim_fabric.h"

#include <rte_mbuf.h>

#include <algorithm>

#include "lib/tagwire/address.h"
#include "lib/ucp/worker.h"
#include "test/sim/nic.h"

namespace tagwire::test {
namespace {

constexpr uint64_t kTurn = 500;  // virtual ns

}  // namespace

uint16_t SimFabric::rx(void* machine, rte_mbuf** packets, uint16_t count) {
    auto& m = *static_cast<Machine*>(machine);
    if (!m.fabric->passing_) {
        m.fabric->passing_ = m.active = true;
        m.fabric->simulator_.run_for(kTurn);
        m.fabric->passing_ = m.active = false;
    }
    return m.node->rx_burst(packets, count);
}

uint16_t SimFabric::tx(void* machine, rte_mbuf** packets, uint16_t count) {
    auto& m = *static_cast<Machine*>(machine);
    if (m.silent) {
        rte_pktmbuf_free_bulk(packets, count);
        return count;
    }
    return m.node->tx_burst(packets, count);
}

uint64_t SimFabric::now(void* machine) {
    return static_cast<Machine*>(machine)->node->now_ns();
}

int SimFabric::open_worker(tw_worker_attr attr, tw_worker** worker, tw_address* address) {
    auto machine = std::make_unique<Machine>();
    machine->fabric = this;
    machine->node = &simulator_.add_node();
    tw_nic nic{};
    nic.context = machine.get();
    nic.rx_burst = rx;
    nic.tx_burst = tx;
    nic.now_ns = now;
    attr.nic = &nic;
    attr.address = from_transport(machine->node->address());
    const auto mac = machine->node->mac();
    std::copy(mac.begin(), mac.end(), attr.mac);
    attr.packet_pool = machine->node->pool();
    attr.max_peers = 64;
    attr.max_operations = max_operations_;
    attr.peer_timeout_ms = peer_timeout_ms;
    attr.unexpected_bytes = unexpected_bytes;
    attr.random_seed = 1000 + machines_.size();
    *address = attr.address;
    Machine* opened = machines_.emplace_back(std::move(machine)).get();
    if (const int error = tw_worker_open(&attr, worker); error != 0) {
        return error;
    }
    ++open_;
    opened->worker = *worker;
    opened->node->run([opened] {
        if (opened->active || opened->worker == nullptr) {
            return UINT64_MAX;
        }
        tw_progress(opened->worker);
        return tw_worker_deadline(opened->worker);
    });
    return 0;
}

void SimFabric::silence(size_t n) {
    machines_[n]->silent = true;
    machines_[n]->node->stop();
}

void SimFabric::close_worker(tw_worker* worker) {
    for (const auto& machine : machines_) {
        if (machine->worker == worker) {
            machine->worker = nullptr;
            machine->node->stop();
        }
    }
    EXPECT_EQ(tw_worker_close(worker), 0) << tw_last_error();
    --open_;
}

UcpPeer::UcpPeer(uint64_t features, size_t request_size) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE;
    params.features = features;
    params.request_size = request_size;
    EXPECT_EQ(ucp_init(&params, nullptr, &context), UCS_OK);
    ucp_worker_params_t worker_params{};
    EXPECT_EQ(ucp_worker_create(context, &worker_params, &worker), UCS_OK);
}

void UcpPeer::close() {
    if (worker != nullptr) {
        EXPECT_EQ(worker->requests().unreleased(), leaks);
        ucp_worker_destroy(worker);
        ucp_cleanup(context);
        worker = nullptr;
    }
}

ucp_ep_h UcpPeer::connect(UcpPeer& other, ucp_err_handling_mode_t mode) {
    ucp_address_t* address = nullptr;
    size_t length = 0;
    EXPECT_EQ(ucp_worker_get_address(other.worker, &address, &length), UCS_OK);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = address;
    params.err_mode = mode;
    params.err_handler.arg = this;
    params.err_handler.cb = [](void* peer, ucp_ep_h, ucs_status_t status) {
        static_cast<UcpPeer*>(peer)->failures.push_back(status);
    };
    ucp_ep_h ep = nullptr;
    EXPECT_EQ(ucp_ep_create(worker, &params, &ep), UCS_OK);
    ucp_worker_release_address(other.worker, address);
    return ep;
}

bool UcpTest::run(const std::function<bool()>& done, unsigned turns) {
    for (unsigned i = 0; i < turns; ++i) {
        if (done()) {
            return true;
        }
        for (UcpPeer* peer : peers_) {
            if (peer->worker != nullptr) {
                ucp_worker_progress(peer->worker);
            }
        }
    }
    return done();
}

bool UcpTest::run_long(const std::function<bool()>& done) {
    for (int i = 0; i < 2000; ++i) {
        if (run(done, 1)) {
            return true;
        }
        simulator.sleep(20'000'000);
    }
    return false;
}

ucs_status_t UcpTest::wait(void* request) {
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_RAW_STATUS(request);
    }
    EXPECT_TRUE(run([&] { return ucp_request_check_status(request) != UCS_INPROGRESS; }));
    const ucs_status_t status = ucp_request_check_status(request);
    ucp_request_free(request);
    return status;
}

std::string bytes(uint64_t seed, size_t length) {
    std::string result(length, '\0');
    uint64_t state = seed * 0x9e3779b97f4a7c15u + length;
    for (char& byte : result) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<char>(state >> 56);
    }
    return result;
}

}  // namespace tagwire::test
