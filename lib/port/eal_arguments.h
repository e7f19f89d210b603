// SPDX-License-Identifier: BSD-3-Clause
// The EAL arguments: what the user gave, completed with what is left open.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tagwire::port {

struct EalArguments {
    std::vector<std::string> arguments;  // [0] is the program
    std::vector<std::string> choices;    // what was chosen here and why, for people
};

struct EalMemory {
    uint64_t hugepage_bytes = uint64_t{256} << 20;  // hugepages are used when as much is free
    uint32_t no_huge_megabytes = 512;               // otherwise: address space, filled as needed
};

// Chooses the memory (hugepages, or --no-huge), the cores, and the log level where `given` says
// nothing about them; given[0] is the program. `lcores`: threads, the main one among them.
EalArguments complete_eal_arguments(std::vector<std::string> given, const EalMemory& memory = {},
                                    uint32_t lcores = 1);

// The device, too: an mlx5 RDMA device. `program` is for the remedy when there is none (Failure).
void choose_device(EalArguments& eal, const std::string& program);

// The first mlx5 RDMA device that libibverbs shows, a software one, too; empty: none.
std::string first_mlx5_device();

// Whether one of the options is among the arguments: "--vdev", "--vdev=x", "-l", "-l0".
bool has_option(const std::vector<std::string>& arguments,
                std::initializer_list<std::string_view> options);

// Initializes the EAL; throws Failure with a remedy. False: the program has done so itself.
bool initialize_eal(const EalArguments& eal);

}  // namespace tagwire::port
