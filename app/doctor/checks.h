// SPDX-License-Identifier: BSD-3-Clause
// What only a program can find out: do the RDMA devices open, does the EAL start, do
// two ports exchange a message.
#pragma once

#include <string>
#include <vector>

namespace tagwire::doctor {

enum class Status { kGood, kNote, kBad };

struct Finding {
    Status status;
    std::string item;
    std::string found;
    std::string remedy;
};

// The devices that libibverbs lists, each opened.
std::vector<Finding> check_rdma_devices();

// Two net_mlx5raw ports on mlx5_0 and mlx5_1, which are connected (softcx-run
// --devices 2): the EAL starts, and a tagged message crosses. Once per process.
std::vector<Finding> check_self_exchange();

}  // namespace tagwire::doctor
