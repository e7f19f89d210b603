// SPDX-License-Identifier: BSD-3-Clause
#include "tag_queue.h"

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ether.h>

#include "app/perf/failure.h"

namespace tagwire::testpmd {
namespace {

constexpr unsigned kRingFrames = 1024;
constexpr uint32_t kCompletionsAtOnce = 64;
constexpr double kToClose = 2;  // seconds beyond the peers' timeout

double seconds() noexcept {
    return static_cast<double>(rte_get_tsc_cycles()) / static_cast<double>(rte_get_tsc_hz());
}

bool is_arp(const rte_mbuf* packet) noexcept {
    return rte_pktmbuf_mtod(packet, const rte_ether_hdr*)->ether_type ==
           rte_cpu_to_be_16(RTE_ETHER_TYPE_ARP);
}

std::unique_ptr<rte_ring, decltype(&rte_ring_free)> make_ring(const TagQueueConfig& config) {
    const std::string name = fmt::format("testpmd_tag_{}_{}", config.port, config.queue);
    std::unique_ptr<rte_ring, decltype(&rte_ring_free)> ring(
        rte_ring_create(name.c_str(), kRingFrames, static_cast<int>(rte_socket_id()),
                        RING_F_SC_DEQ),
        &rte_ring_free);
    if (!ring) {
        throw perf::Failure(
            fmt::format("no memory for the ring {}: {}", name, rte_strerror(rte_errno)),
            "give the EAL more with -m MEGABYTES");
    }
    return ring;
}

TagEndpointConfig endpoint_config(const TagQueueConfig& config, const TagOptions& options) {
    const size_t peers = std::max<size_t>(1, config.peers.size());
    return {config.port, config.queue, config.address,
            static_cast<uint32_t>(peers * 2 * options.window + 128), options.timeout_s};
}

}  // namespace

TagQueue::TagQueue(const TagQueueConfig& config, const TagOptions& options)
    : config_(config),
      options_(options),
      ring_(make_ring(config)),
      endpoint_(std::make_unique<TagEndpoint>(endpoint_config(config, options))) {
    role_ = config.mode == TagMode::kGenerate ? make_generator(*endpoint_, options, config.peers)
                                              : make_responder(*endpoint_, options, config.mode);
}

TagQueue::~TagQueue() {
    rte_mbuf* packet = nullptr;
    while (rte_ring_dequeue(ring_.get(), reinterpret_cast<void**>(&packet)) == 0) {
        rte_pktmbuf_free(packet);
    }
}

uint16_t TagQueue::input(rte_mbuf** packets, uint16_t count) noexcept {
    if (siblings_.size() > 1 && count > 0) {
        count = hand_over(packets, count);
    }
    return endpoint_->input(packets, count);
}

uint16_t TagQueue::hand_over(rte_mbuf** packets, uint16_t count) noexcept {
    uint16_t kept = 0;
    for (uint16_t i = 0; i < count; ++i) {
        const int owner = config_.addresses.owner_of(packets[i]);
        if (owner >= 0 && owner != config_.queue) [[unlikely]] {
            ++handed_over_;
            give(*siblings_[static_cast<size_t>(owner)], packets[i]);
            continue;
        }
        if (owner == kEverybody) [[unlikely]] {
            for (TagQueue* other : siblings_) {
                rte_mbuf* copy = other == this
                                     ? nullptr
                                     : rte_pktmbuf_copy(packets[i], config_.pool, 0, UINT32_MAX);
                if (copy != nullptr) {
                    give(*other, copy);
                }
            }
        }
        packets[kept++] = packets[i];
    }
    return kept;
}

void TagQueue::give(TagQueue& other, rte_mbuf* packet) noexcept {
    if (rte_ring_mp_enqueue(other.ring_.get(), packet) != 0) {
        ++ring_full_;
        rte_pktmbuf_free(packet);
    }
}

uint16_t TagQueue::input_from_ring(rte_mbuf** packets, uint16_t count) noexcept {
    if (siblings_.size() <= 1) {
        return 0;
    }
    const auto got = static_cast<uint16_t>(
        rte_ring_sc_dequeue_burst(ring_.get(), reinterpret_cast<void**>(packets), count, nullptr));
    if (got == 0) {
        return 0;
    }
    for (uint16_t i = 0; i < got; ++i) {
        taken_over_ += is_arp(packets[i]) ? 0 : 1;
    }
    const uint16_t left = endpoint_->input(packets, got);
    uint16_t foreign = 0;
    for (uint16_t i = 0; i < left; ++i) {
        if (is_arp(packets[i])) {
            rte_pktmbuf_free(packets[i]);  // a copy; the frame itself went its way
        } else {
            packets[foreign++] = packets[i];
        }
    }
    return foreign;
}

uint32_t TagQueue::turn() noexcept {
    const uint32_t events = endpoint_->progress();
    take_completions();
    if (ending_ < Ending::kClosing) {
        now_ = seconds();
        role_->turn(now_);
        if (!done_.load(std::memory_order_relaxed) && role_->is_done()) {
            done_.store(true, std::memory_order_release);
        }
    }
    return events;
}

void TagQueue::take_completions() {
    tw_cq_entry entry;
    tw_cq_error error;
    for (uint32_t i = 0; i < kCompletionsAtOnce; ++i) {
        const int kind = endpoint_->next(&entry, &error);
        if (kind == 0) {
            return;
        }
        // While the endpoint closes, all that comes is the end of what was posted.
        const bool deaf = ending_ >= Ending::kClosing;
        if (kind > 0) {
            ++completions_;
            if (!deaf) {
                role_->completed(*static_cast<Slot*>(entry.context), entry);
            }
        } else if (!deaf) {
            ++error_completions_;
            last_error_ = fmt::format("{} ({})", error.text, tw_strerror(error.error));
            role_->failed(*static_cast<Slot*>(error.entry.context), error);
        }
    }
}

bool TagQueue::wind_down() noexcept {
    const double now = seconds();
    switch (ending_) {
        case Ending::kNotYet:
            deadline_ = now + options_.timeout_s + kToClose;
            ending_ = Ending::kFinishing;
            [[fallthrough]];
        case Ending::kFinishing:
            if (role_->finish(now) || now > deadline_) {
                ending_ = Ending::kClosing;
                deadline_ = now + options_.timeout_s + kToClose;
            }
            return false;
        case Ending::kClosing:
            if (endpoint_->close() || now > deadline_) {
                ending_ = Ending::kClosed;
            }
            return ending_ == Ending::kClosed;
        case Ending::kClosed:
            break;
    }
    return true;
}

void TagQueue::report(TagReport* report) const {
    report->port = config_.port;
    report->queue = config_.queue;
    report->mode = config_.mode;
    report->address = endpoint_->name();
    report->completions = completions_;
    report->error_completions = error_completions_;
    report->last_error = last_error_;
    report->handed_over = handed_over_;
    report->taken_over = taken_over_;
    report->ring_full = ring_full_;
    report->statistics = endpoint_->statistics();
    role_->report(report);
}

}  // namespace tagwire::testpmd
