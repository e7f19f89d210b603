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
constexpr size_t kRegion = 1 << 20;  // bytes; everybody's has the same key
constexpr uint64_t kKey = 7;

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
    region_.resize(kRegion / sizeof(uint64_t));
    const iovec iov{region_.data(), kRegion};
    tw_mr_attr memory{};
    memory.size = sizeof(memory);
    memory.iov = &iov;
    memory.iov_count = 1;
    memory.access = TW_REMOTE_READ | TW_REMOTE_WRITE;
    memory.flags = TW_MR_REQUESTED_KEY | TW_MR_OFFSET;
    memory.requested_key = kKey;
    check(tw_mr_open(worker_, &memory, &mr_), "the region");
}

// Peers may be dead and sends under way: the process ends, and the worker with it.
Actor::~Actor() {
    tw_mr_close(mr_);
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
    constexpr std::pair<const char*, Kind> kPosts[] = {{"send", Kind::kSend},
                                                       {"recv", Kind::kReceive},
                                                       {"write", Kind::kWrite},
                                                       {"read", Kind::kRead},
                                                       {"add", Kind::kAdd}};
    const auto* const found =
        std::find_if(std::begin(kPosts), std::end(kPosts),
                     [&](const auto& entry) { return command == entry.first; });
    if (found != std::end(kPosts)) {
        post(found->second, words);
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

void Actor::post(Kind kind, std::istringstream& arguments) {
    const bool is_message = kind == Kind::kSend || kind == Kind::kReceive;
    std::string ip;
    uint64_t tag = 0, count = 0;
    size_t length = sizeof(uint64_t);
    arguments >> ip;
    if (is_message) {
        arguments >> tag;
    }
    if (kind != Kind::kAdd) {
        arguments >> length;
    }
    if (!(arguments >> count) || (!is_message && length > kRegion)) {
        throw std::runtime_error("not as in actor.h");
    }
    const tw_addr to = peer(ip);
    for (uint64_t i = 0; i < count; ++i) {
        Operation& operation = operations_.emplace_back();
        operation.kind = kind;
        operation.tag = tag + i;
        operation.bytes =
            kind == Kind::kSend ? pattern(operation.tag, length) : std::string(length, '.');
        waiting_.push_back(&operation);
        peers_[&operation] = to;
    }
    summary_of(kind).posted += count;
}

Actor::Summary& Actor::summary_of(Kind kind) {
    return kind == Kind::kSend ? sends_ : kind == Kind::kReceive ? receives_ : remote_;
}

int Actor::start(Operation& operation, tw_addr to) {
    static constexpr uint64_t kOne = 1;
    char* const data = operation.bytes.data();
    const size_t length = operation.bytes.size();
    switch (operation.kind) {
        case Kind::kSend:
            return tw_tsend(ep_, data, length, to, operation.tag, &operation);
        case Kind::kReceive:
            return tw_trecv(ep_, data, length, to, operation.tag, 0, &operation);
        case Kind::kWrite:
            return tw_write(ep_, data, length, to, 0, kKey, &operation);
        case Kind::kRead:
            return tw_read(ep_, data, length, to, 0, kKey, &operation);
        case Kind::kAdd:
            break;
    }
    return tw_fetch_atomic(ep_, &kOne, 1, data, to, kRegion - sizeof(kOne), kKey, TW_UINT64, TW_SUM,
                           &operation);
}

void Actor::turn() {
    while (!waiting_.empty()) {
        Operation& operation = *waiting_.front();
        const int result = start(operation, peers_[&operation]);
        if (result == -EAGAIN) {
            break;
        }
        check(result, "an operation");
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
    Summary& summary = summary_of(operation.kind);
    ++summary.results[error];
    summary.twice += ++operation.ended > 1 ? 1 : 0;
    if (operation.kind == Kind::kReceive && error == 0 &&
        (entry.tag != operation.tag || operation.bytes != pattern(entry.tag, entry.length))) {
        ++summary.wrong;
    }
}

std::string Actor::report() const {
    std::string text = "{";
    for (const auto& [name, summary] :
         {std::pair{"sends", &sends_}, {"receives", &receives_}, {"remote", &remote_}}) {
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
    text += fmt::format("\"sum\": {}, \"recorded\": {}, \"replayed\": {}, \"stats\": {{",
                        region_.back(), nic_.recorded(), nic_.has_replayed());
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
