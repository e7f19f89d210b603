// SPDX-License-Identifier: BSD-3-Clause
#include "tag_endpoint.h"

#include <fmt/format.h>
#include <rte_malloc.h>

#include <algorithm>
#include <cerrno>

#include "app/perf/failure.h"

namespace tagwire::testpmd {

using perf::Failure;

namespace {

constexpr uint32_t kLeastOperations = 1024;

void check(int result, const char* what) {
    if (result < 0) {
        throw Failure(fmt::format("{}: {} ({})", what, tw_strerror(-result), tw_last_error()),
                      "give the EAL more memory with -m MEGABYTES, or reserve hugepages");
    }
}

}  // namespace

std::string address_text(const tw_address& address) {
    char text[80] = {};
    tw_address_format(&address, text, sizeof(text));
    return text;
}

TagEndpoint::TagEndpoint(const TagEndpointConfig& config) : config_(config) {
    // The forwarding loop polls the port; what the worker sends leaves through the same queue.
    static const tw_nic fed_by_us{};
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.port_id = config.port;
    attr.queue_id = config.queue;
    attr.nic = &fed_by_us;
    attr.address = config.address;
    attr.max_operations = std::max(kLeastOperations, config.operations);
    attr.peer_timeout_ms = static_cast<uint32_t>(config.timeout_s * 1000);
    check(tw_worker_open(&attr, &worker_), "the worker does not open");
    try {
        check(tw_av_open(worker_, &av_), "the address vector does not open");
        tw_cq_attr cq_attr{};
        cq_attr.size = sizeof(cq_attr);
        check(tw_cq_open(worker_, &cq_attr, &cq_), "the completion queue does not open");
        tw_ep_attr ep_attr{};
        ep_attr.size = sizeof(ep_attr);
        check(tw_ep_open(worker_, &ep_attr, &ep_), "the endpoint does not open");
        check(tw_ep_bind_av(ep_, av_), "the endpoint refuses its address vector");
        check(tw_ep_bind_cq(ep_, cq_, TW_SEND | TW_RECV),
              "the endpoint refuses its completion queue");
        check(tw_ep_enable(ep_), "the endpoint does not start");
    } catch (...) {
        tw_ep_close(ep_);
        tw_cq_close(cq_);
        tw_av_close(av_);
        tw_worker_close(worker_);
        throw;
    }
}

TagEndpoint::~TagEndpoint() {
    if (ep_ != nullptr && tw_ep_close(ep_) != 0) {
        // A message is still under way into the buffers: they stay as long as the process.
        fmt::print(stderr, "testpmd: {} cannot be closed: {}\n", name(), tw_last_error());
        for (auto& slots : slots_) {
            static_cast<void>(slots.release());
        }
        return;
    }
    tw_cq_close(cq_);
    tw_av_close(av_);
    tw_worker_close(worker_);
    for (void* buffer : buffers_) {
        rte_free(buffer);
    }
}

std::vector<Slot*> TagEndpoint::make_slots(Slot::Kind kind, size_t count, uint32_t capacity) {
    const size_t step = std::max<size_t>(RTE_ALIGN_CEIL(capacity, RTE_CACHE_LINE_SIZE), 1);
    auto* memory =
        static_cast<std::byte*>(rte_malloc("testpmd_messages", count * step, RTE_CACHE_LINE_SIZE));
    if (memory == nullptr) {
        throw Failure(fmt::format("no memory for {} buffers of {} B", count, capacity),
                      "give the EAL more with -m MEGABYTES, or ask for less with --tag-window, "
                      "--tag-size or --tag-max-size");
    }
    buffers_.push_back(memory);
    slots_.push_back(std::make_unique<Slot[]>(count));
    std::vector<Slot*> list;
    for (size_t i = 0; i < count; ++i) {
        Slot& slot = slots_.back()[i];
        slot.kind = kind;
        slot.capacity = capacity;
        slot.buffer = memory + i * step;
        list.push_back(&slot);
    }
    return list;
}

int TagEndpoint::insert(const tw_address& peer, tw_addr* index) {
    return tw_av_insert(av_, &peer, index);
}

int TagEndpoint::post(Slot& slot) {
    int result = deferred_.empty() ? try_post(slot) : -EAGAIN;
    if (result == -EAGAIN) {
        deferred_.push_back(&slot);
        result = 0;
    }
    return result;
}

int TagEndpoint::try_post(Slot& slot) {
    switch (slot.kind) {
        case Slot::Kind::kControlReceive:
            return tw_recv(ep_, slot.buffer, slot.capacity, TW_ADDR_UNSPEC, &slot);
        case Slot::Kind::kControlSend:
            return tw_send(ep_, slot.buffer, slot.length, slot.peer, &slot);
        case Slot::Kind::kReceive:
            return tw_trecv(ep_, slot.buffer, slot.capacity, slot.peer, slot.tag, slot.ignore,
                            &slot);
        case Slot::Kind::kSend:
            return tw_tsenddata(ep_, slot.buffer, slot.length, slot.sequence, slot.peer, slot.tag,
                                &slot);
    }
    return -EINVAL;
}

uint32_t TagEndpoint::progress() {
    const int events = tw_progress(worker_);
    while (!deferred_.empty()) {
        const int result = try_post(*deferred_.front());
        if (result == -EAGAIN) {
            break;
        }
        if (result < 0) {
            refused_.emplace_back(deferred_.front(), -result);
        }
        deferred_.pop_front();
    }
    return events > 0 ? static_cast<uint32_t>(events) : 0;
}

int TagEndpoint::next(tw_cq_entry* entry, tw_cq_error* error) {
    if (!refused_.empty()) [[unlikely]] {
        const auto [slot, number] = refused_.front();
        refused_.pop_front();
        *error = {};
        error->entry.context = slot;
        error->error = number;
        error->text = tw_strerror(number);
        return -1;
    }
    const ssize_t result = tw_cq_read(cq_, entry, 1);
    if (result == -TW_EAVAIL) {
        return tw_cq_readerr(cq_, error) == 1 ? -1 : 0;
    }
    return result == 1 ? 1 : 0;
}

bool TagEndpoint::close() {
    deferred_.clear();
    if (!told_peers_) {
        told_peers_ = tw_worker_shutdown(worker_) == 0;
        return false;
    }
    if (ep_ != nullptr) {
        if (tw_ep_close(ep_) != 0) {
            return false;
        }
        ep_ = nullptr;
    }
    return true;
}

std::string TagEndpoint::name() const {
    return address_text(config_.address);
}

std::vector<std::pair<std::string, uint64_t>> TagEndpoint::statistics() const {
    std::vector<tw_stat> stats(
        static_cast<size_t>(std::max(0, tw_worker_stats(worker_, nullptr, 0))));
    tw_worker_stats(worker_, stats.data(), static_cast<int>(stats.size()));
    std::vector<std::pair<std::string, uint64_t>> list;
    for (const tw_stat& stat : stats) {
        list.emplace_back(stat.name, stat.value);
    }
    return list;
}

}  // namespace tagwire::testpmd
