// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/fabric.h"

#include <new>

#include "lib/fi/object.h"
#include "lib/fi/passive_endpoint.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

int close_fabric(fid* handle) {
    auto& fabric = object_of<Fabric>(handle);
    if (fabric.children != 0) {
        return refuse_busy(FI_LOG_FABRIC, "a fabric",
                           "its domains, passive endpoints, event queues and wait sets");
    }
    delete &fabric;
    return 0;
}

fi_ops fabric_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_fabric,
    .bind = kAbsent,
    .control = kAbsent,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_fabric fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = open_passive_endpoint,
    .eq_open = open_event_queue,
    .wait_open = open_wait_set,
    .trywait = try_wait,
    .domain2 = kAbsent,
};

}  // namespace

int open_fabric(fi_fabric_attr* attr, fid_fabric** handle, void* context) {
    auto* fabric = new (std::nothrow) Fabric{};
    if (fabric == nullptr) {
        return -FI_ENOMEM;
    }
    fabric->fid.fid.fclass = FI_CLASS_FABRIC;
    fabric->fid.fid.context = context;
    fabric->fid.fid.ops = &fabric_fid_ops;
    fabric->fid.ops = &fabric_ops;
    fabric->fid.api_version = attr->api_version;
    *handle = &fabric->fid;
    return 0;
}

}  // namespace tagwire::fi
