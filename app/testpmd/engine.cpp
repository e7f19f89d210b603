// SPDX-License-Identifier: BSD-3-Clause
#include "engine.h"

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "app/perf/failure.h"

namespace tagwire::testpmd {

using perf::Failure;

namespace {

constexpr uint64_t kFlushMs = 1000;

// True once all of its workers are closed.
bool wind_down(const Lcore& lcore) {
    bool closed = true;
    for (const Stream* stream : lcore.streams) {
        closed = (stream->messages == nullptr || stream->messages->wind_down()) && closed;
    }
    return closed;
}

}  // namespace

Engine::Engine(Options& options, Ports& ports, rte_mempool* pool)
    : options_(options), ports_(ports), pool_(pool), mode_(options.mode) {}

Engine::~Engine() = default;

void Engine::start(uint32_t tx_first) {
    if (running_) {
        throw Failure("Packet forwarding already started");
    }
    if (std::any_of(ports_.begin(), ports_.end(),
                    [](const auto& port) { return !port->started(); })) {
        throw Failure("Not all ports were started", "port start all");
    }
    tags_.reset();
    layout_ = make_layout(options_, ports_);
    mode_ = options_.mode;
    layout_.print(mode_);
    if (options_.flush_rx) {
        flush_queues();
    }
    reports_.clear();
    if (mode_.tag != TagMode::kNone) {
        tags_ = std::make_unique<TagSet>(options_, mode_.tag, layout_, pool_);
        reports_.resize(tags_->size());
    }
    forwarder_ = std::make_unique<Forwarder>(options_, mode_.plain, pool_);
    show_configuration_of_ports();
    clear_statistics();
    running_lcores_.clear();
    for (const auto& lcore : layout_.lcores) {
        running_lcores_.push_back(std::make_unique<Running>(this, lcore.get()));
    }
    for (uint32_t burst = 0; burst < tx_first; ++burst) {
        launch([](void* argument) {
            const auto& running = *static_cast<Running*>(argument);
            for (Stream* stream : running.lcore->streams) {
                running.engine->forwarder_->transmit(*stream);
            }
            return 0;
        });
        rte_eal_mp_wait_lcore();
    }
    open_lcores_.store(running_lcores_.size(), std::memory_order_relaxed);
    launch(&Engine::run);
    running_ = true;
}

void Engine::launch(int (*function)(void*)) {
    for (const auto& running : running_lcores_) {
        running->lcore->stop.store(false, std::memory_order_relaxed);
        if (const int error = rte_eal_remote_launch(function, running.get(), running->lcore->id);
            error != 0) {
            throw Failure(fmt::format("launch lcore {} failed: {}", running->lcore->id,
                                      rte_strerror(-error)));
        }
    }
}

int Engine::run(void* argument) {
    auto& running = *static_cast<Running*>(argument);
    Engine& engine = *running.engine;
    const Lcore& lcore = *running.lcore;
    const Forwarder& forwarder = *engine.forwarder_;
    const uint32_t idle_turns = engine.options_.idle_turns;
    uint32_t idle = 0;
    bool closed = false;
    for (;;) {
        uint32_t work = 0;
        for (Stream* stream : lcore.streams) {
            work += forwarder.turn(*stream);
        }
        if (running.report_wanted.load(std::memory_order_acquire)) [[unlikely]] {
            engine.fill_reports(lcore);
            running.report_wanted.store(false, std::memory_order_release);
        }
        if (lcore.stop.load(std::memory_order_acquire)) [[unlikely]] {
            // Others may still need the frames that arrive here.
            if (!closed && wind_down(lcore)) {
                closed = true;
                engine.open_lcores_.fetch_sub(1, std::memory_order_acq_rel);
            }
            if (engine.open_lcores_.load(std::memory_order_acquire) == 0) {
                return 0;
            }
        }
        // Programs that share a core must not wait for the scheduler's time slice.
        idle = work > 0 ? 0 : idle + 1;
        if (idle_turns != 0 && idle >= idle_turns) {
            sched_yield();
        }
    }
}

void Engine::fill_reports(const Lcore& lcore) {
    for (const Stream* stream : lcore.streams) {
        if (stream->messages != nullptr) {
            const size_t index = tags_->index_of(*stream);
            reports_[index] = {};
            tags_->report(index, &reports_[index]);
        }
    }
}

void Engine::stop() {
    if (!running_) {
        throw Failure("Packet forwarding not started");
    }
    fmt::print("Telling cores to stop...");
    for (const auto& lcore : layout_.lcores) {
        lcore->stop.store(true, std::memory_order_release);
    }
    fmt::print("\nWaiting for lcores to finish...\n");
    rte_eal_mp_wait_lcore();
    running_ = false;
    if (tags_ != nullptr) {
        for (const auto& lcore : layout_.lcores) {
            fill_reports(*lcore);
        }
        right_ = show_tag_result(reports_) && right_;
    }
    show_statistics();
    tags_.reset();
    fmt::print("\nDone.\n");
}

std::vector<TagReport> Engine::tag_reports() {
    if (running_ && tags_ != nullptr) {
        for (const auto& running : running_lcores_) {
            running->report_wanted.store(true, std::memory_order_release);
        }
        for (const auto& running : running_lcores_) {
            while (running->report_wanted.load(std::memory_order_acquire)) {
                usleep(100);
            }
        }
    }
    return reports_;
}

void Engine::flush_queues() const {
    rte_mbuf* packets[kMaxBurst];
    const uint64_t end = rte_get_timer_cycles() + rte_get_timer_hz() * kFlushMs / 1000;
    for (const auto& stream : layout_.streams) {
        uint16_t count = 0;
        do {
            count = rte_eth_rx_burst(stream->rx_port, stream->rx_queue, packets, kMaxBurst);
            rte_pktmbuf_free_bulk(packets, count);
        } while (count > 0 && rte_get_timer_cycles() < end);
    }
}

}  // namespace tagwire::testpmd
