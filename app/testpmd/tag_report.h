// SPDX-License-Identifier: BSD-3-Clause
// What a queue's messages came to, as "show tag" and "stop" print it. Filled by the lcore that
// owns the queue, read by the one that runs the commands.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "options.h"

namespace tagwire::testpmd {

struct TagPeerReport {
    std::string address;
    std::string state;
    uint64_t sent = 0;
    uint64_t sent_bytes = 0;
    uint64_t received = 0;
    uint64_t received_bytes = 0;
    uint64_t mismatches = 0;
    uint64_t errors = 0;
};

struct TagReport {
    uint16_t port = 0;
    uint16_t queue = 0;
    TagMode mode{};
    std::string address;
    bool right = true;  // nothing lost, nothing wrong
    std::vector<TagPeerReport> peers;
    uint64_t strangers = 0;  // messages of peers that did not say hello
    uint64_t completions = 0;
    uint64_t error_completions = 0;
    std::string last_error;
    uint64_t handed_over = 0;  // frames that belonged to another queue's lcore
    uint64_t taken_over = 0;   // frames that came from one
    uint64_t ring_full = 0;    // of the former, dropped
    std::vector<std::pair<std::string, uint64_t>> statistics;  // the worker's own
};

void show_tag_peers(const std::vector<TagReport>& reports);
void show_tag_match(const std::vector<TagReport>& reports);
void show_tag_cq(const std::vector<TagReport>& reports);
// The lines that "stop" prints; false if something was wrong.
bool show_tag_result(const std::vector<TagReport>& reports);

}  // namespace tagwire::testpmd
