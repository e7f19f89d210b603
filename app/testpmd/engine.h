// SPDX-License-Identifier: BSD-3-Clause
// Forwarding from start to stop: launches the lcores and ends them, and tells what they did.
// Called by the main lcore alone.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "forwarder.h"
#include "layout.h"
#include "options.h"
#include "tag_set.h"

namespace tagwire::testpmd {

class Engine {
  public:
    Engine(Options& options, Ports& ports, rte_mempool* pool);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // With `tx_first` bursts of txonly's frames from each queue before. Throws perf::Failure.
    void start(uint32_t tx_first);
    void stop();  // throws perf::Failure when it is not running
    bool is_running() const { return running_; }

    void show_config() const;
    void show_statistics() const;
    void clear_statistics();
    // Of all queues with messages: as they are, or as they were when forwarding stopped.
    std::vector<TagReport> tag_reports();

    // Generators: every message was sent, and answered where that was wanted.
    bool is_done() const { return tags_ != nullptr && tags_->is_done(); }
    // False once a run's messages were not what they should have been.
    bool is_right() const { return right_; }

  private:
    static int run(void* lcore);
    void launch(int (*function)(void*));
    void flush_queues() const;
    void show_configuration_of_ports() const;
    void show_streams() const;
    void show_ports_statistics() const;
    void show_cycles() const;
    void fill_reports(const Lcore& lcore);

    // What run() gets; it belongs to one lcore.
    struct Running {
        Engine* engine;
        Lcore* lcore;
        std::atomic<bool> report_wanted{false};
    };

    Options& options_;
    Ports& ports_;
    rte_mempool* pool_;
    bool running_ = false;
    bool right_ = true;
    ForwardMode mode_;  // of the run
    Layout layout_;
    std::unique_ptr<Forwarder> forwarder_;
    std::unique_ptr<TagSet> tags_;
    std::vector<std::unique_ptr<Running>> running_lcores_;
    std::atomic<size_t> open_lcores_{0};  // that have workers to close
    std::vector<TagReport> reports_;
};

}  // namespace tagwire::testpmd
