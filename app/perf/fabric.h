// SPDX-License-Identifier: BSD-3-Clause
// One worker with one endpoint: posting, completion and waiting over the public API.
#pragma once

#include <tagwire/tagwire.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lib/port/port.h"

namespace tagwire::perf {

using Clock = std::chrono::steady_clock;

// One posted send or receive. It lives in a Fabric (see operations()), because the
// worker holds on to it until it completes.
struct Operation {
    bool pending = false;
    int error = 0;        // positive errno once it failed
    size_t length = 0;    // received bytes
    size_t overflow = 0;  // bytes that did not fit
    tw_addr source = TW_ADDR_UNSPEC;
};

class Fabric {
  public:
    struct Config {
        tw_address address{};  // IP and UDP port
        double timeout_s = 10;
        uint32_t max_operations = 16384;
    };

    Fabric(const port::Port& port, const Config& config);
    ~Fabric();
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    std::string name() const;  // this endpoint's address as text
    double timeout_s() const noexcept { return config_.timeout_s; }
    tw_addr insert(const tw_address& peer);

    // Memory that stays valid until reset(): the worker may still refer to it.
    Operation* operations(size_t count);
    std::byte* buffer(size_t size);

    void send(Operation& op, const void* data, size_t length, tw_addr peer, uint64_t tag);
    void receive(Operation& op, void* data, size_t length, tw_addr peer, uint64_t tag);
    // For clearing up: tries once, never throws; a refusal is in op.error.
    void send_quietly(Operation& op, const void* data, size_t length, tw_addr peer,
                      uint64_t tag) noexcept;

    // One turn of the worker and its completions. Throws Interrupted after a signal.
    void progress();
    // As progress, for clearing up: never throws.
    void progress_quietly() noexcept;
    // Until everything sent is acknowledged and the peers know that this side ends; bounded.
    void shut_down() noexcept;

    // Closes the endpoint with everything posted on it, frees the memory, and opens it again.
    void reset();

    uint64_t completions() const noexcept { return completions_; }
    // What the worker said about the latest failed operation.
    const std::string& last_error_text() const noexcept { return last_error_text_; }
    std::vector<std::pair<std::string, uint64_t>> counters() const;

  private:
    struct Freed {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };

    void open_endpoint();
    // False if the peers' messages under way did not end in time.
    bool close_endpoint() noexcept;
    void drain_completions() noexcept;
    void complete_error() noexcept;

    Config config_;
    tw_worker* worker_ = nullptr;
    tw_av* av_ = nullptr;
    tw_cq* cq_ = nullptr;
    tw_ep* ep_ = nullptr;
    uint64_t completions_ = 0;
    uint32_t idle_turns_ = 0;
    std::string last_error_text_;
    std::vector<std::unique_ptr<Operation[]>> operations_;
    std::vector<std::unique_ptr<std::byte[], Freed>> buffers_;
};

}  // namespace tagwire::perf
