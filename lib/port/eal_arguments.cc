// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/eal_arguments.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "lib/port/failure.h"

namespace tagwire::port {
namespace {

uint64_t free_hugepage_bytes() {
    uint64_t total = 0;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
        unsigned long kilobytes = 0;
        if (std::sscanf(entry.path().filename().c_str(), "hugepages-%lukB", &kilobytes) != 1) {
            continue;
        }
        uint64_t pages = 0;
        std::ifstream(entry.path() / "free_hugepages") >> pages;
        total += pages * kilobytes * 1024;
    }
    return total;
}

std::string megabytes(uint64_t bytes) {
    return fmt::format("{} MiB", bytes >> 20);
}

void choose_memory(EalArguments& eal, const EalMemory& memory) {
    auto& arguments = eal.arguments;
    if (has_option(arguments, {"--no-huge", "--in-memory", "--huge-dir", "--proc-type"})) {
        return;
    }
    const uint64_t available = free_hugepage_bytes();
    if (available >= memory.hugepage_bytes) {
        arguments.emplace_back("--in-memory");
        eal.choices.push_back(
            fmt::format("memory: hugepages ({} free), --in-memory: no files left behind",
                        megabytes(available)));
        return;
    }
    arguments.emplace_back("--no-huge");
    if (!has_option(arguments, {"-m", "--socket-mem"})) {
        arguments.insert(arguments.end(), {"-m", std::to_string(memory.no_huge_megabytes)});
    }
    if (!has_option(arguments, {"--no-shconf", "--file-prefix"})) {
        arguments.emplace_back("--no-shconf");
    }
    eal.choices.push_back(fmt::format("memory: --no-huge ({} of hugepages free, {} wanted)",
                                      megabytes(available), megabytes(memory.hugepage_bytes)));
}

// The lcores float over all allowed cores: two of these programs started alike would
// otherwise all be pinned to the first ones.
void choose_cores(EalArguments& eal, uint32_t lcores) {
    if (has_option(eal.arguments, {"-l", "-c", "--lcores"})) {
        return;
    }
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return;
    }
    std::string list;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &allowed)) {
            list += fmt::format("{}{}", list.empty() ? "" : ",", cpu);
        }
    }
    std::string option = "--lcores=";
    for (uint32_t lcore = 0; lcore < lcores; ++lcore) {
        option += fmt::format("{}{}@({})", lcore == 0 ? "" : ",", lcore, list);
    }
    eal.arguments.push_back(option);
    eal.choices.push_back(lcores == 1
                              ? fmt::format("cores: one thread, on any of {}", list)
                              : fmt::format("cores: {} threads, on any of {}", lcores, list));
}

}  // namespace

std::string first_mlx5_device() {
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    std::string found;
    for (int i = 0; devices != nullptr && i < count && found.empty(); ++i) {
        const std::string name = ibv_get_device_name(devices[i]);
        if (name.starts_with("mlx5")) {
            found = name;
        }
    }
    if (devices != nullptr) {
        ibv_free_device_list(devices);
    }
    return found;
}

bool has_option(const std::vector<std::string>& arguments,
                std::initializer_list<std::string_view> options) {
    return std::any_of(arguments.begin() + 1, arguments.end(), [&](const std::string& argument) {
        return std::any_of(options.begin(), options.end(), [&](std::string_view option) {
            if (option.starts_with("--")) {
                return argument == option || argument.starts_with(std::string(option) + "=");
            }
            return argument.starts_with(option) && !argument.starts_with("--");
        });
    });
}

void choose_device(EalArguments& eal, const std::string& program) {
    if (has_option(eal.arguments, {"--vdev", "-a", "--allow", "-w", "-b", "--block"})) {
        return;
    }
    const std::string device = first_mlx5_device();
    if (device.empty()) {
        throw Failure(
            "no port: no mlx5 RDMA device on this machine",
            "start the program under the software device: softcx-run --wire switch:NAME " +
                program +
                " ...; or name a port with EAL arguments before '--', as in "
                "--vdev net_memif0,role=client; ./run doctor lists what is there");
    }
    eal.arguments.push_back("--vdev=net_mlx5raw0,ibdev=" + device);
    if (!has_option(eal.arguments, {"--no-pci"})) {
        eal.arguments.emplace_back("--no-pci");
    }
    eal.choices.push_back("port: net_mlx5raw0 on " + device);
}

EalArguments complete_eal_arguments(std::vector<std::string> given, const EalMemory& memory,
                                    uint32_t lcores) {
    EalArguments eal{std::move(given), {}};
    choose_memory(eal, memory);
    choose_cores(eal, lcores);
    if (!has_option(eal.arguments, {"--log-level"})) {
        // What the drivers tell at information level is in the path that this program prints.
        eal.arguments.emplace_back("--log-level=lib.eal:warning");
        eal.arguments.emplace_back("--log-level=pmd.*:warning");
    }
    if (!has_option(eal.arguments, {"--telemetry", "--no-telemetry"})) {
        eal.arguments.emplace_back("--no-telemetry");
    }
    return eal;
}

bool initialize_eal(const EalArguments& eal) {
    std::vector<char*> argv;
    std::string line;
    for (const std::string& argument : eal.arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));
        line += (line.empty() ? "" : " ") + argument;
    }
    argv.push_back(nullptr);
    if (rte_eal_init(static_cast<int>(argv.size()) - 1, argv.data()) < 0) {
        if (rte_errno == EALREADY) {
            return false;
        }
        throw Failure(fmt::format("the EAL did not start: {}", rte_strerror(rte_errno)),
                      "its own messages are above; the arguments were: " + line);
    }
    return true;
}

}  // namespace tagwire::port
