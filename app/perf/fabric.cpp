// SPDX-License-Identifier: BSD-3-Clause
#include "fabric.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "failure.h"
#include "interrupt.h"

namespace tagwire::perf {
namespace {

constexpr size_t kBurst = 32;
// Two peers on one core must not wait for the scheduler's time slice.
constexpr uint32_t kIdleTurnsBeforeYield = 200;
constexpr auto kShutdownTime = std::chrono::seconds(1);

void check(int result, const char* what, const char* remedy = "") {
    if (result < 0) {
        throw Failure(fmt::format("{}: {} ({})", what, tw_strerror(-result), tw_last_error()),
                      remedy);
    }
}

}  // namespace

Fabric::Fabric(const port::Port& port, const Config& config) : config_(config) {
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.port_id = port.id();
    attr.queue_id = 0;
    attr.address = config.address;
    std::copy_n(port.mac().addr_bytes, sizeof(attr.mac), attr.mac);
    attr.mtu = port.mtu();
    attr.max_operations = config.max_operations;
    attr.peer_timeout_ms = static_cast<uint32_t>(std::max(1.0, config.timeout_s * 1000));
    check(tw_worker_open(&attr, &worker_), "the worker does not open",
          "give the EAL more memory with -m MEGABYTES, or reserve hugepages");
    try {
        check(tw_av_open(worker_, &av_), "the address vector does not open");
        tw_cq_attr cq_attr{};
        cq_attr.size = sizeof(cq_attr);
        check(tw_cq_open(worker_, &cq_attr, &cq_), "the completion queue does not open");
        open_endpoint();
    } catch (...) {
        close_endpoint();
        tw_cq_close(cq_);
        tw_av_close(av_);
        tw_worker_close(worker_);
        throw;
    }
}

Fabric::~Fabric() {
    if (!close_endpoint()) {
        // The worker still refers to the operations and buffers: they stay as long as the process.
        for (auto& operations : operations_) {
            static_cast<void>(operations.release());
        }
        for (auto& buffer : buffers_) {
            static_cast<void>(buffer.release());
        }
        return;
    }
    tw_cq_close(cq_);
    tw_av_close(av_);
    tw_worker_close(worker_);
}

void Fabric::open_endpoint() {
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = 0;
    check(tw_ep_open(worker_, &attr, &ep_), "the endpoint does not open");
    check(tw_ep_bind_av(ep_, av_), "the endpoint refuses its address vector");
    check(tw_ep_bind_cq(ep_, cq_, TW_SEND | TW_RECV), "the endpoint refuses its completion queue");
    check(tw_ep_enable(ep_), "the endpoint does not start");
}

bool Fabric::close_endpoint() noexcept {
    // Busy while a message is under way: until it is there, or its sender counts as dead.
    const auto end = Clock::now() + std::chrono::duration<double>(config_.timeout_s + 2);
    while (ep_ != nullptr && tw_ep_close(ep_) == -EBUSY) {
        if (Clock::now() > end) {
            return false;
        }
        progress_quietly();
    }
    ep_ = nullptr;
    if (cq_ != nullptr) {
        drain_completions();
    }
    return true;
}

void Fabric::reset() {
    if (!close_endpoint()) {
        throw Failure("a message of the last client is still under way", "start the server again");
    }
    operations_.clear();
    buffers_.clear();
    open_endpoint();
}

std::string Fabric::name() const {
    tw_address address{};
    check(tw_ep_name(ep_, &address), "the endpoint has no name");
    char text[80] = {};
    check(tw_address_format(&address, text, sizeof(text)), "the endpoint's name cannot be printed");
    return text;
}

tw_addr Fabric::insert(const tw_address& peer) {
    tw_addr index = TW_ADDR_UNSPEC;
    check(tw_av_insert(av_, &peer, &index), "the peer's address is refused");
    return index;
}

Operation* Fabric::operations(size_t count) {
    operations_.push_back(std::make_unique<Operation[]>(count));
    return operations_.back().get();
}

std::byte* Fabric::buffer(size_t size) {
    // Zero pages that the kernel gives at the first touch: clearing a GiB here would be a silence.
    auto* memory = static_cast<std::byte*>(std::calloc(std::max<size_t>(size, 1), 1));
    if (memory == nullptr) {
        throw Failure(fmt::format("no memory for {} bytes", size), "choose smaller messages");
    }
    buffers_.emplace_back(memory);
    return memory;
}

void Fabric::send(Operation& op, const void* data, size_t length, tw_addr peer, uint64_t tag) {
    op = Operation{.pending = true};
    int result = 0;
    while ((result = tw_tsend(ep_, data, length, peer, tag, &op)) == -EAGAIN) {
        progress();
    }
    if (result < 0) {
        op.pending = false;
        check(result, "the send is refused");
    }
}

void Fabric::send_quietly(Operation& op, const void* data, size_t length, tw_addr peer,
                          uint64_t tag) noexcept {
    op = Operation{.pending = true};
    const int result = tw_tsend(ep_, data, length, peer, tag, &op);
    if (result < 0) {
        op.pending = false;
        op.error = -result;
    }
}

void Fabric::receive(Operation& op, void* data, size_t length, tw_addr peer, uint64_t tag) {
    op = Operation{.pending = true};
    int result = 0;
    while ((result = tw_trecv(ep_, data, length, peer, tag, 0, &op)) == -EAGAIN) {
        progress();
    }
    if (result < 0) {
        op.pending = false;
        check(result, "the receive is refused");
    }
}

void Fabric::progress() {
    if (g_interrupted != 0) {
        throw Interrupted();
    }
    progress_quietly();
}

void Fabric::progress_quietly() noexcept {
    const int events = tw_progress(worker_);
    drain_completions();
    if (events > 0) {
        idle_turns_ = 0;
    } else if (++idle_turns_ >= kIdleTurnsBeforeYield) {
        idle_turns_ = 0;
        sched_yield();
    }
}

void Fabric::shut_down() noexcept {
    const auto end = Clock::now() + kShutdownTime;
    while (tw_worker_shutdown(worker_) == -EAGAIN && Clock::now() < end) {
        progress_quietly();
    }
}

void Fabric::drain_completions() noexcept {
    tw_cq_entry entries[kBurst];
    for (;;) {
        const ssize_t count = tw_cq_read(cq_, entries, kBurst);
        if (count == -TW_EAVAIL) {
            complete_error();
            continue;
        }
        if (count <= 0) {
            return;
        }
        completions_ += static_cast<uint64_t>(count);
        for (ssize_t i = 0; i < count; ++i) {
            auto* op = static_cast<Operation*>(entries[i].context);
            op->pending = false;
            op->length = entries[i].length;
            op->source = entries[i].source;
        }
    }
}

void Fabric::complete_error() noexcept {
    tw_cq_error error{};
    if (tw_cq_readerr(cq_, &error) < 0) {
        return;
    }
    ++completions_;
    last_error_text_ = error.text != nullptr ? error.text : "";
    auto* op = static_cast<Operation*>(error.entry.context);
    op->pending = false;
    op->error = error.error;
    op->length = error.entry.length;
    op->overflow = error.overflow;
    op->source = error.entry.source;
}

std::vector<std::pair<std::string, uint64_t>> Fabric::counters() const {
    const int count = tw_worker_stats(worker_, nullptr, 0);
    std::vector<tw_stat> stats(static_cast<size_t>(std::max(count, 0)));
    tw_worker_stats(worker_, stats.data(), count);
    std::vector<std::pair<std::string, uint64_t>> named;
    for (const tw_stat& stat : stats) {
        named.emplace_back(stat.name, stat.value);
    }
    return named;
}

}  // namespace tagwire::perf
