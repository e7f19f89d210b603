// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>

#include "checks.h"

namespace tagwire::doctor {
namespace {

Finding check_device(ibv_device* device) {
    const std::string name = ibv_get_device_name(device);
    ibv_context* context = ibv_open_device(device);
    if (context == nullptr) {
        return {Status::kBad, "RDMA device " + name, std::strerror(errno),
                "be root, or give the user read and write permission on /dev/infiniband/uverbs*"};
    }
    ibv_device_attr attributes{};
    ibv_port_attr port{};
    const bool known =
        ibv_query_device(context, &attributes) == 0 && ibv_query_port(context, 1, &port) == 0;
    const Finding finding{known ? Status::kGood : Status::kBad, "RDMA device " + name,
                          known ? fmt::format("opens, firmware {}, port 1 {}", attributes.fw_ver,
                                              ibv_port_state_str(port.state))
                                : "does not answer queries",
                          known ? "" : "look at the kernel's messages: dmesg | grep mlx5"};
    ibv_close_device(context);
    return finding;
}

}  // namespace

std::vector<Finding> check_rdma_devices() {
    std::vector<Finding> findings;
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    for (int i = 0; devices != nullptr && i < count; ++i) {
        findings.push_back(check_device(devices[i]));
    }
    if (devices != nullptr) {
        ibv_free_device_list(devices);
    }
    if (findings.empty()) {
        findings.push_back({Status::kNote, "RDMA devices", "none",
                            "without a card, start programs under softcx-run"});
    }
    return findings;
}

}  // namespace tagwire::doctor
