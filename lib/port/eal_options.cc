// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/eal_options.h"

#include <fmt/format.h>
#include <rte_version.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "lib/port/failure.h"

namespace tagwire::port {
namespace {

enum class Value { kNone, kOptional, kNeeded };

struct Option {
    std::string_view name;
    Value value;
};

// "EAL parameters" of DPDK's guide for Linux, 22.11 to 24.11, without those that end the program.
constexpr int kLastYear = 24;
constexpr std::array kOptions = {
    Option{"allow", Value::kNeeded},
    Option{"base-virtaddr", Value::kNeeded},
    Option{"block", Value::kNeeded},
    Option{"create-uio-dev", Value::kNone},
    Option{"file-prefix", Value::kNeeded},
    Option{"force-max-simd-bitwidth", Value::kNeeded},
    Option{"huge-dir", Value::kNeeded},
    Option{"huge-unlink", Value::kOptional},
    Option{"huge-worker-stack", Value::kOptional},
    Option{"in-memory", Value::kNone},
    Option{"iova-mode", Value::kNeeded},
    Option{"lcores", Value::kNeeded},
    Option{"legacy-mem", Value::kNone},
    Option{"log-color", Value::kOptional},
    Option{"log-level", Value::kNeeded},
    Option{"log-timestamp", Value::kOptional},
    Option{"main-lcore", Value::kNeeded},
    Option{"match-allocations", Value::kNone},
    Option{"mbuf-pool-ops-name", Value::kNeeded},
    Option{"no-hpet", Value::kNone},
    Option{"no-huge", Value::kNone},
    Option{"no-pci", Value::kNone},
    Option{"no-shconf", Value::kNone},
    Option{"no-telemetry", Value::kNone},
    Option{"proc-type", Value::kNeeded},
    Option{"single-file-segments", Value::kNone},
    Option{"socket-limit", Value::kNeeded},
    Option{"socket-mem", Value::kNeeded},
    Option{"syslog", Value::kNeeded},
    Option{"telemetry", Value::kNone},
    Option{"trace", Value::kNeeded},
    Option{"trace-bufsz", Value::kNeeded},
    Option{"trace-dir", Value::kNeeded},
    Option{"trace-mode", Value::kNeeded},
    Option{"vdev", Value::kNeeded},
    Option{"vfio-intr", Value::kNeeded},
    Option{"vfio-vf-token", Value::kNeeded},
    Option{"vmware-tsc-map", Value::kNone},
};
constexpr std::string_view kLettersWithValue = "abcdlmnrsS";
constexpr std::string_view kLettersWithout = "v";

[[noreturn]] void refuse(const char* variable, std::string_view word) {
    throw Failure(fmt::format("{}: '{}' is no EAL argument that can be used here", variable, word),
                  "the EAL's arguments are in DPDK's guide, \"EAL parameters\"");
}

// Whether the next word is the value of this one.
bool takes_next(const char* variable, std::string_view word) {
    if (word.starts_with("--")) {
        const std::string_view name = word.substr(2, word.find('=') - 2);
        // getopt_long takes an abbreviation, too.
        const auto* found = std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& o) {
            return o.name.starts_with(name) && !name.empty();
        });
        if (found == kOptions.end()) {
            refuse(variable, word);
        }
        return found->value == Value::kNeeded && word.find('=') == std::string_view::npos;
    }
    if (word.size() < 2 || word[0] != '-') {
        refuse(variable, word);
    }
    if (kLettersWithout.find(word[1]) != std::string_view::npos) {
        return false;
    }
    if (kLettersWithValue.find(word[1]) == std::string_view::npos) {
        refuse(variable, word);
    }
    return word.size() == 2;
}

}  // namespace

void check_eal_arguments(const char* variable, const std::vector<std::string>& words) {
    if (RTE_VER_YEAR > kLastYear) {
        return;  // it may know more
    }
    for (auto word = words.begin(); word != words.end(); ++word) {
        if (takes_next(variable, *word) && ++word == words.end()) {
            throw Failure(fmt::format("{}: '{}' needs a value", variable, words.back()));
        }
    }
}

}  // namespace tagwire::port
