// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstring>

#include "app/perf/addresses.h"
#include "app/perf/fabric.h"
#include "app/perf/failure.h"
#include "checks.h"
#include "lib/port/eal_arguments.h"
#include "lib/port/port.h"

namespace tagwire::doctor {
namespace {

using perf::Clock;
using perf::Fabric;
using perf::Failure;
using perf::Operation;
using port::Port;

constexpr auto kPatience = std::chrono::seconds(10);
constexpr uint64_t kTag = 0x7477;
constexpr char kMessage[] = "a tagged message from one port to the other";

Fabric::Config config_for(const char* ip) {
    Fabric::Config config;
    config.address = perf::parse_address(ip, 18515);
    config.max_operations = 256;
    return config;
}

void exchange() {
    const Port left_port(0, {});
    const Port right_port(1, {});
    const Fabric::Config left_config = config_for("10.78.0.1");
    const Fabric::Config right_config = config_for("10.78.0.2");
    Fabric left(left_port, left_config);
    Fabric right(right_port, right_config);

    Operation* send = left.operations(1);
    Operation* receive = right.operations(1);
    std::byte* data = right.buffer(sizeof(kMessage));
    right.receive(*receive, data, sizeof(kMessage), TW_ADDR_UNSPEC, kTag);
    left.send(*send, kMessage, sizeof(kMessage), left.insert(right_config.address), kTag);
    const auto end = Clock::now() + kPatience;
    while ((send->pending || receive->pending) && Clock::now() < end) {
        left.progress();
        right.progress();
    }
    if (send->pending || receive->pending) {
        throw Failure("the message did not arrive within 10 s");
    }
    if (send->error != 0 || receive->error != 0 || receive->length != sizeof(kMessage) ||
        std::memcmp(data, kMessage, sizeof(kMessage)) != 0) {
        throw Failure("the message arrived wrong: " + left.last_error_text() +
                      right.last_error_text());
    }
}

}  // namespace

std::vector<Finding> check_self_exchange() {
    std::vector<Finding> findings;
    const char* item = "EAL with two ports";
    try {
        const auto eal =
            port::complete_eal_arguments({"tagwire-doctor", "--vdev=net_mlx5raw0,ibdev=mlx5_0",
                                          "--vdev=net_mlx5raw1,ibdev=mlx5_1", "--no-pci",
                                          "--no-huge", "-m", "256", "--no-shconf"});
        port::initialize_eal(eal);
        findings.push_back({Status::kGood, item, "starts, net_mlx5raw on softcx", ""});
        item = "tagged message";
        exchange();
        findings.push_back({Status::kGood, item, "crosses from port to port", ""});
    } catch (const port::Failure& failure) {
        findings.push_back({Status::kBad, item, failure.what(), failure.remedy()});
    }
    return findings;
}

}  // namespace tagwire::doctor
