// SPDX-License-Identifier: BSD-3-Clause
#include "test/e2e/rows/side.h"

#include <rte_ethdev.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace tagwire::rows {

namespace {

constexpr uint16_t kEndpointsPerRow = 8;
constexpr uint32_t kIdleTurnsBeforeYield = 200;
constexpr size_t kLongestMessage = 4096;
// What the sides tell each other beside the wire.
constexpr char kMeet = 'm', kFailed = 'f', kSaw = 's';

tw_address address_of(bool server, uint16_t endpoint) {
    tw_address address{};
    CALL(tw_address_parse(server ? "10.87.0.1:18515" : "10.87.0.2:18515", &address));
    address.endpoint = endpoint;
    return address;
}

}  // namespace

void fail_check(const char* file, int line, const std::string& what) {
    throw Failure(fmt::format("{}:{}: {}", file, line, what));
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

Endpoint::Endpoint(Side& side, uint16_t number, const EndpointOptions& options) : side_(side) {
    const tw_cq_attr cq_attr{sizeof(tw_cq_attr), options.cq_entries};
    CALL(tw_cq_open(side.worker(), &cq_attr, &tx));
    CALL(tw_cq_open(side.worker(), &cq_attr, &rx));
    CALL(tw_cntr_open(side.worker(), &sends));
    CALL(tw_cntr_open(side.worker(), &receives));
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = number;
    attr.tx_flags = options.tx_flags;
    attr.rx_flags = options.rx_flags;
    attr.auth_key = options.key.empty() ? nullptr : options.key.data();
    attr.auth_key_size = options.key.size();
    attr.type = options.connects ? TW_EP_MSG : TW_EP_RDM;
    attr.request = options.request;
    CALL(tw_ep_open(side.worker(), &attr, &ep));
    if (options.connects) {
        CALL(tw_ep_bind_eq(ep, side.event_queue()));
    } else {
        CALL(tw_av_open(side.worker(), &av));
        CALL(tw_ep_bind_av(ep, av));
    }
    CALL(tw_ep_bind_cq(ep, tx, TW_SEND | options.cq_flags));
    CALL(tw_ep_bind_cq(ep, rx, TW_RECV | options.cq_flags));
    CALL(tw_ep_bind_cntr(ep, sends, TW_SEND));
    CALL(tw_ep_bind_cntr(ep, receives, TW_RECV));
    if (options.enable) {
        enable();
    }
}

void Endpoint::enable() {
    CALL(tw_ep_enable(ep));
}

void Endpoint::close() {
    int result = 0;
    side_.until("an endpoint that closes", [&] {
        result = tw_ep_close(ep);
        return result != -EBUSY;
    });
    CALL(result);
    CALL(tw_cntr_close(sends));
    CALL(tw_cntr_close(receives));
    CALL(tw_cq_close(tx));
    CALL(tw_cq_close(rx));
    if (av != nullptr) {
        CALL(tw_av_close(av));
    }
}

Done Endpoint::next(tw_cq* cq) {
    Done done;
    ssize_t count = 0;
    side_.until("a completion", [&] {
        count = tw_cq_read(cq, &done.entry, 1);
        return count != -EAGAIN;
    });
    if (count == -TW_EAVAIL) {
        tw_cq_error error{};
        EXPECT_IS(tw_cq_readerr(cq, &error), 1);
        return {error.entry,    error.error,          error.message_length,
                error.overflow, error.provider_error, error.text != nullptr ? error.text : ""};
    }
    EXPECT_IS(count, 1);
    return done;
}

tw_cq_entry Endpoint::sent_well() {
    const Done done = sent();
    if (done.error != 0) {
        throw Failure("a send ended with " + done.text);
    }
    return done.entry;
}

tw_cq_entry Endpoint::received_well() {
    const Done done = received();
    if (done.error != 0) {
        throw Failure("a receive ended with " + done.text);
    }
    return done.entry;
}

bool Endpoint::is_quiet() {
    tw_cq_entry entry{};
    return tw_cq_read(tx, &entry, 1) == -EAGAIN && tw_cq_read(rx, &entry, 1) == -EAGAIN;
}

Side::Side(const SideOptions& options) : options_(options) {
    slow_ = std::getenv("TAGWIRE_TEST_SLOW") != nullptr;
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.port_id = options.port;
    attr.address = address_of(server(), 0);
    attr.max_peers = 64;
    attr.max_operations = options.max_operations;
    attr.unexpected_bytes = options.unexpected_bytes;
    attr.peer_timeout_ms = options.peer_timeout_ms;
    CALL(tw_worker_open(&attr, &worker_));
}

Side::~Side() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (tw_worker_shutdown(worker_) == -EAGAIN && std::chrono::steady_clock::now() < end) {
        tw_progress(worker_);
    }
    tw_worker_close(worker_);
}

uint16_t Side::number(int index) const {
    return static_cast<uint16_t>(row_ * kEndpointsPerRow + index);
}

Endpoint& Side::open(int index, const EndpointOptions& options) {
    return endpoints_.emplace_back(*this, number(index), options);
}

tw_address Side::peer_address(int index) const {
    return address_of(!server(), number(index));
}

tw_eq* Side::event_queue() {
    if (eq_ == nullptr) {
        CALL(tw_eq_open(worker_, nullptr, &eq_));
    }
    return eq_;
}

void Side::listen() {
    tw_pep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = number(0);
    attr.eq = event_queue();
    CALL(tw_pep_open(worker_, &attr, &pep_));
    CALL(tw_listen(pep_));
}

tw_eq_entry Side::event(tw_event wanted) {
    tw_eq_entry entry{};
    int result = 0;
    until("an event", [&] {
        result = tw_eq_read(event_queue(), &entry, 0);
        return result != -EAGAIN;
    });
    if (result == -TW_EAVAIL) {
        tw_eq_error error{};
        EXPECT_IS(tw_eq_readerr(eq_, &error), 1);
        throw Failure(fmt::format("no connection: {}", error.text));
    }
    EXPECT_IS(static_cast<int>(entry.event), static_cast<int>(wanted));
    return entry;
}

tw_addr Side::peer(Endpoint& from, int index) {
    const tw_address address = peer_address(index);
    tw_addr found = TW_ADDR_UNSPEC;
    CALL(tw_av_insert(from.av, &address, &found));
    return found;
}

void Side::turn() {
    if (tw_progress(worker_) > 0) {
        idle_ = 0;
    } else if (++idle_ >= kIdleTurnsBeforeYield) {
        idle_ = 0;
        sched_yield();
    }
}

void Side::turn_for(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        turn();
    }
}

void Side::look_at_the_clock(std::chrono::steady_clock::time_point end, const char* what) {
    char kind = 0;
    if (recv(options_.socket, &kind, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && kind == kFailed) {
        std::string text;
        hear(true, &text);
        throw Failure("the other side failed: " + text);
    }
    if (std::chrono::steady_clock::now() > end) {
        throw Failure(fmt::format("waited {} s for {}", kPatience.count(), what));
    }
}

void Side::tell(char kind, const std::string& text) {
    const std::string message = (kind + text).substr(0, kLongestMessage);
    if (send(options_.socket, message.data(), message.size(), MSG_NOSIGNAL) < 0) {
        throw Failure("the other process is gone");
    }
}

char Side::hear(bool wait, std::string* text) {
    char message[kLongestMessage + 1];
    const ssize_t size = recv(options_.socket, message, kLongestMessage, wait ? 0 : MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (size <= 0) {
        throw Failure("the other process is gone");
    }
    text->assign(message + 1, static_cast<size_t>(size) - 1);
    return message[0];
}

void Side::meet() {
    tell(kMeet, "");
    std::string text;
    char kind = 0;
    until("the other side", [&] {
        kind = hear(false, &text);
        return kind != 0;
    });
    if (kind != kMeet) {
        throw Failure("the other side failed: " + text);
    }
}

void Side::meet_standing_still() {
    tell(kMeet, "");
    std::string text;
    if (hear(true, &text) != kMeet) {
        throw Failure("the other side failed: " + text);
    }
}

uint64_t Side::stat(const char* name) const {
    std::vector<tw_stat> stats(static_cast<size_t>(tw_worker_stats(worker_, nullptr, 0)));
    tw_worker_stats(worker_, stats.data(), static_cast<int>(stats.size()));
    for (const tw_stat& stat : stats) {
        if (std::strcmp(stat.name, name) == 0) {
            return stat.value;
        }
    }
    throw Failure(fmt::format("there is no counter {}", name));
}

uint64_t Side::frames_sent() const {
    rte_eth_stats stats{};
    EXPECT_IS(rte_eth_stats_get(options_.port, &stats), 0);
    return stats.opackets;
}

void Side::close_row() {
    for (Endpoint& endpoint : endpoints_) {
        endpoint.close();
    }
    endpoints_.clear();
    buffers_.clear();
    if (pep_ != nullptr) {
        int result = 0;
        until("a passive endpoint that closes", [&] {
            result = tw_pep_close(pep_);
            return result != -EBUSY;
        });
        CALL(result);
        pep_ = nullptr;
    }
    if (eq_ != nullptr) {
        CALL(tw_eq_close(eq_));
        eq_ = nullptr;
    }
}

// A side that fails tells the other one at once, and both give up: endpoints of a row that
// failed may stay open, and the driver of the test ends the processes.
std::string Side::run(int row, void (*function)(Side&)) {
    row_ = row;
    notes_.clear();
    std::string others;
    try {
        meet();
        function(*this);
        meet();
        close_row();
        tell(kSaw, notes_);
        char kind = 0;
        until("what the other side saw", [&] {
            kind = hear(false, &others);
            return kind != 0;
        });
        if (kind != kSaw) {
            throw Failure("the other side failed: " + others);
        }
    } catch (const Failure& failure) {
        tell(kFailed, failure.what());
        throw;
    }
    return notes_ + (notes_.empty() || others.empty() ? "" : "; ") + others;
}

}  // namespace tagwire::rows
