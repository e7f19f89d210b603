// SPDX-License-Identifier: BSD-3-Clause
#include "test/e2e/lives/actor.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace tagwire::lives {

namespace {

constexpr uint32_t kIdleTurnsBeforeYield = 100;

void check(int result, const char* what) {
    if (result < 0) {
        throw std::runtime_error(
            fmt::format("{}: {} ({})", what, tw_strerror(-result), tw_last_error()));
    }
}

tw_address address_of(const std::string& ip) {
    tw_address address{};
    check(tw_address_parse((ip + ":18515").c_str(), &address), "an address");
    return address;
}

std::string pattern(uint64_t tag, size_t length) {
    std::string bytes(length, '\0');
    uint64_t word = tag * 0x9e3779b97f4a7c15u + length;
    for (size_t at = 0; at < length; at += sizeof(word)) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        std::memcpy(bytes.data() + at, &word, std::min(sizeof(word), length - at));
    }
    return bytes;
}

}  // namespace

Actor::Actor(const ActorOptions& options, ReplayNic& nic, const uint8_t* mac, rte_mempool* pool)
    : nic_(nic) {
    const tw_nic functions = nic.nic();
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.nic = &functions;
    std::copy_n(mac, sizeof(attr.mac), attr.mac);
    attr.packet_pool = pool;
    attr.address = address_of(options.ip);
    attr.max_peers = 32;
    attr.max_operations = 8192;
    attr.unexpected_bytes = options.unexpected_bytes;
    attr.peer_timeout_ms = options.peer_timeout_ms;
    check(tw_worker_open(&attr, &worker_), "the worker");
    const tw_cq_attr cq_attr{sizeof(tw_cq_attr), 0};
    check(tw_av_open(worker_, &av_), "the address vector");
    check(tw_cq_open(worker_, &cq_attr, &cq_), "the completion queue");
    check(tw_ep_open(worker_, nullptr, &ep_), "the endpoint");
    check(tw_ep_bind_av(ep_, av_), "bind");
    check(tw_ep_bind_cq(ep_, cq_, TW_SEND | TW_RECV), "bind");
    check(tw_ep_enable(ep_), "enable");
}

// Peers may be dead and sends under way: the process ends, and the worker with it.
Actor::~Actor() {
    if (tw_ep_close(ep_) == 0) {
        tw_cq_close(cq_);
        tw_av_close(av_);
        tw_worker_close(worker_);
    }
}

tw_addr Actor::peer(const std::string& ip) {
    if (ip == "any") {
        return TW_ADDR_UNSPEC;
    }
    const tw_address address = address_of(ip);
    tw_addr index = TW_ADDR_UNSPEC;
    check(tw_av_insert(av_, &address, &index), "a peer");
    return index;
}

std::string Actor::obey(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "send" || command == "recv") {
        post(command == "send", words);
    } else if (command == "record") {
        size_t frames = 0;
        words >> frames;
        nic_.record(frames);
    } else if (command == "replay") {
        nic_.replay();
    } else if (command == "report") {
        return report();
    } else {
        throw std::runtime_error("no such command: " + line);
    }
    return "ok";
}

void Actor::post(bool send, std::istringstream& arguments) {
    std::string ip;
    uint64_t tag = 0, count = 0;
    size_t length = 0;
    if (!(arguments >> ip >> tag >> length >> count)) {
        throw std::runtime_error("send and recv take IP TAG LENGTH COUNT");
    }
    const tw_addr to = peer(ip);
    for (uint64_t i = 0; i < count; ++i) {
        Operation& operation = operations_.emplace_back();
        operation.send = send;
        operation.tag = tag + i;
        operation.bytes = send ? pattern(operation.tag, length) : std::string(length, '.');
        waiting_.push_back(&operation);
        peers_[&operation] = to;
    }
    (send ? sends_ : receives_).posted += count;
}

void Actor::turn() {
    while (!waiting_.empty()) {
        Operation& operation = *waiting_.front();
        const tw_addr to = peers_[&operation];
        char* data = operation.bytes.data();
        const size_t length = operation.bytes.size();
        const int result = operation.send
                               ? tw_tsend(ep_, data, length, to, operation.tag, &operation)
                               : tw_trecv(ep_, data, length, to, operation.tag, 0, &operation);
        if (result == -EAGAIN) {
            break;
        }
        check(result, operation.send ? "a send" : "a receive");
        waiting_.pop_front();
        peers_.erase(&operation);
    }
    const int events = tw_progress(worker_);
    drain();
    if (events > 0) {
        idle_ = 0;
    } else if (++idle_ >= kIdleTurnsBeforeYield) {
        idle_ = 0;
        sched_yield();
    }
}

void Actor::drain() {
    tw_cq_entry entry{};
    for (;;) {
        const ssize_t count = tw_cq_read(cq_, &entry, 1);
        if (count == 1) {
            ended(entry, 0);
        } else if (count == -TW_EAVAIL) {
            tw_cq_error error{};
            tw_cq_readerr(cq_, &error);
            ended(error.entry, error.error);
        } else {
            return;
        }
    }
}

void Actor::ended(const tw_cq_entry& entry, int error) {
    auto& operation = *static_cast<Operation*>(entry.context);
    Summary& summary = operation.send ? sends_ : receives_;
    ++summary.results[error];
    summary.twice += ++operation.ended > 1 ? 1 : 0;
    if (!operation.send && error == 0 &&
        (entry.tag != operation.tag || operation.bytes != pattern(entry.tag, entry.length))) {
        ++summary.wrong;
    }
}

std::string Actor::report() const {
    std::string text = "{";
    for (const auto& [name, summary] : {std::pair{"sends", &sends_}, {"receives", &receives_}}) {
        text +=
            fmt::format("\"{}\": {{\"posted\": {}, \"twice\": {}, \"wrong\": {}, \"results\": {{",
                        name, summary->posted, summary->twice, summary->wrong);
        const char* comma = "";
        for (const auto& [error, count] : summary->results) {
            text += fmt::format("{}\"{}\": {}", comma, error, count);
            comma = ", ";
        }
        text += "}}, ";
    }
    text += fmt::format("\"recorded\": {}, \"replayed\": {}, \"stats\": {{", nic_.recorded(),
                        nic_.has_replayed());
    std::vector<tw_stat> stats(static_cast<size_t>(tw_worker_stats(worker_, nullptr, 0)));
    tw_worker_stats(worker_, stats.data(), static_cast<int>(stats.size()));
    const char* comma = "";
    for (const tw_stat& stat : stats) {
        text += fmt::format("{}\"{}\": {}", comma, stat.name, stat.value);
        comma = ", ";
    }
    return text + "}}";
}

}  // namespace tagwire::lives
