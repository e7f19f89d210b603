// SPDX-License-Identifier: BSD-3-Clause
#include "tag_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace tagwire::testpmd {
namespace {

constexpr const char* kBorder = "----------------------";

void print_head(const char* what, const TagReport& report) {
    fmt::print("\n  {} {} of {} {} (port {} queue {}) {}\n", kBorder, what, name_of(report.mode),
               report.address, report.port, report.queue, kBorder);
}

void print_peer(const TagPeerReport& peer) {
    fmt::print("  Peer {}: {}\n", peer.address, peer.state);
    fmt::print("    TX-messages: {:<14} TX-bytes: {:<16} Mismatches: {}\n", peer.sent,
               peer.sent_bytes, peer.mismatches);
    fmt::print("    RX-messages: {:<14} RX-bytes: {:<16} Errors: {}\n", peer.received,
               peer.received_bytes, peer.errors);
}

// The core's counters have fixed names; all that follow are the transport's.
const std::set<std::string_view> kMatch = {
    "unexpected_messages",
    "unexpected_messages_peak",
    "matched_posted",
    "matched_unexpected",
    "receives_without_class",
    "posted_queue_long",
    "unexpected_queue_long",
    "messages_discarded",
    "messages_unwanted",
    "messages_lost",
    "truncated",
};
const std::set<std::string_view> kQueue = {
    "sends_outstanding", "receives_outstanding", "receives_blocked",
    "send_errors",       "receive_errors",
};

void print_statistics(const TagReport& report, const std::set<std::string_view>& names) {
    for (const auto& [name, value] : report.statistics) {
        if (names.contains(name)) {
            fmt::print("  {}: {}\n", name, value);
        }
    }
}

}  // namespace

void show_tag_peers(const std::vector<TagReport>& reports) {
    for (const TagReport& report : reports) {
        print_head("Peers", report);
        for (const TagPeerReport& peer : report.peers) {
            print_peer(peer);
        }
        fmt::print("  Frames handed to other queues: {}, taken from them: {}, ring full: {}\n",
                   report.handed_over, report.taken_over, report.ring_full);
    }
}

void show_tag_match(const std::vector<TagReport>& reports) {
    for (const TagReport& report : reports) {
        print_head("Matching", report);
        print_statistics(report, kMatch);
    }
}

void show_tag_cq(const std::vector<TagReport>& reports) {
    for (const TagReport& report : reports) {
        print_head("Completion queue", report);
        fmt::print("  completions: {}\n  error_completions: {}\n", report.completions,
                   report.error_completions);
        print_statistics(report, kQueue);
        if (!report.last_error.empty()) {
            fmt::print("  Last error: {}\n", report.last_error);
        }
    }
}

bool show_tag_result(const std::vector<TagReport>& reports) {
    uint64_t sent = 0, received = 0, mismatches = 0, errors = 0, strangers = 0;
    bool right = true;
    for (const TagReport& report : reports) {
        print_head("Messages", report);
        for (const TagPeerReport& peer : report.peers) {
            print_peer(peer);
            sent += peer.sent;
            received += peer.received;
            mismatches += peer.mismatches;
            errors += peer.errors;
        }
        strangers += report.strangers;
        right = right && report.right;
    }
    if (!reports.empty()) {
        fmt::print("\n  {}: sent {} received {} mismatches {} errors {} strangers {}: {}\n",
                   name_of(reports.front().mode), sent, received, mismatches, errors, strangers,
                   right ? "right" : "WRONG");
    }
    return right;
}

}  // namespace tagwire::testpmd
