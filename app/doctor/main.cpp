// SPDX-License-Identifier: BSD-3-Clause
// tagwire-doctor: the part of ./run doctor that needs a program. A line per finding:
// status, item, what was found, remedy, separated by tabs. Exit status 1: something is bad.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "checks.h"

namespace {

using tagwire::doctor::Finding;
using tagwire::doctor::Status;

const char* word(Status status) {
    switch (status) {
        case Status::kGood:
            return "ok";
        case Status::kNote:
            return "note";
        case Status::kBad:
            return "missing";
    }
    return "missing";
}

constexpr const char* kUsage =
    "usage: tagwire-doctor devices|exchange\n"
    "  devices   the RDMA devices of this machine\n"
    "  exchange  a message between two ports; start it as\n"
    "            softcx-run --devices 2 --wire pair tagwire-doctor exchange\n";

}  // namespace

int main(int argc, char** argv) {
    std::vector<Finding> findings;
    if (argc == 2 && std::strcmp(argv[1], "devices") == 0) {
        findings = tagwire::doctor::check_rdma_devices();
    } else if (argc == 2 && std::strcmp(argv[1], "exchange") == 0) {
        findings = tagwire::doctor::check_self_exchange();
    } else {
        fmt::print(stderr, "{}", kUsage);
        return 2;
    }
    for (const Finding& finding : findings) {
        fmt::print("{}\t{}\t{}\t{}\n", word(finding.status), finding.item, finding.found,
                   finding.remedy);
    }
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& finding) { return finding.status == Status::kBad; })
               ? 1
               : 0;
}
