// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace tagwire::fi {

struct Domain;

struct Fabric {
    fid_fabric fid;
    std::mutex mutex;
    Domain* listening = nullptr;     // of passive endpoints
    std::vector<Domain*> connected;  // of fi_domain, for connected endpoints
    std::atomic<int> children{0};
};

int open_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context);

// domain.cc, event_queue.cc, wait_set.cc
int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);
int open_event_queue(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context);
int open_wait_set(fid_fabric* fabric, fi_wait_attr* attr, fid_wait** set);
// 0: the wait objects of all of them may be slept on; -FI_EAGAIN: one has something to read.
int try_wait(fid_fabric* fabric, fid** fids, int count);

}  // namespace tagwire::fi
