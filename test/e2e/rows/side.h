// SPDX-License-Identifier: BSD-3-Clause
// One of the two processes that show the rows of fi_tagged(3) to each other: a worker, the
// endpoints of the row in hand, and a socket to the other process beside the wire.
#pragma once

#include <fmt/format.h>
#include <tagwire/tagwire.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tagwire::rows {

// What a row saw that it must not see.
struct Failure : std::runtime_error {
    using runtime_error::runtime_error;
};

// How an operation ended.
struct Done {
    tw_cq_entry entry{};
    int error = 0;  // positive; 0: well
    size_t message_length = 0;
    size_t overflow = 0;
    int provider_error = 0;
    std::string text;
};

struct EndpointOptions {
    uint64_t tx_flags = 0;
    uint64_t rx_flags = 0;
    uint64_t cq_flags = 0;    // TW_SELECTIVE_COMPLETION
    uint32_t cq_entries = 0;  // of each direction's queue
    std::string key;
    bool enable = true;
    bool connects = false;  // a connected endpoint, with the row's event queue
    tw_request* request = nullptr;
};

class Side;

// An endpoint with a queue and a counter for each direction.
class Endpoint {
  public:
    Endpoint(Side& side, uint16_t number, const EndpointOptions& options);
    void close();

    void enable();
    // The next completion of a direction; fails when none comes.
    Done sent() { return next(tx); }
    Done received() { return next(rx); }
    // As these, and it has to have ended well.
    tw_cq_entry sent_well();
    tw_cq_entry received_well();
    // Neither direction has a completion to read.
    bool is_quiet();

    tw_ep* ep = nullptr;
    tw_av* av = nullptr;
    tw_cq* tx = nullptr;
    tw_cq* rx = nullptr;
    tw_cntr* sends = nullptr;
    tw_cntr* receives = nullptr;

  private:
    Done next(tw_cq* cq);

    Side& side_;
};

struct SideOptions {
    bool server = false;
    uint16_t port = 0;
    int socket = -1;  // to the other process
    uint64_t unexpected_bytes = 1 << 20;
    uint32_t peer_timeout_ms = 10000;
    uint32_t max_operations = 8192;
};

class Side {
  public:
    explicit Side(const SideOptions& options);
    ~Side();
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    bool server() const { return options_.server; }
    bool slow() const { return slow_; }

    // Endpoint `index` of the row in hand. Its number is the same at the other side.
    Endpoint& open(int index = 0, const EndpointOptions& options = {});
    // The other side's endpoint `index`, as `from` knows it.
    tw_addr peer(Endpoint& from, int index = 0);
    tw_address peer_address(int index = 0) const;
    // Of connected endpoints: the row's passive endpoint, whose number is that of endpoint 0, and
    // the next event, which has to be this one.
    void listen();
    tw_eq_entry event(tw_event wanted);
    tw_eq* event_queue();
    // Memory that lives until the row's endpoints are closed.
    std::string& buffer(size_t size) { return buffers_.emplace_back(size, '.'); }
    std::string& keep(std::string bytes) { return buffers_.emplace_back(std::move(bytes)); }

    // Both processes come here. This one goes on with its worker meanwhile...
    void meet();
    // ... or stands still: what the other one sends finds nobody.
    void meet_standing_still();
    void turn();
    void turn_for(std::chrono::milliseconds time);
    // Turns until it holds; fails after a while.
    template <typename Condition>
    void until(const char* what, Condition condition) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        for (uint32_t i = 1; !condition(); ++i) {
            turn();
            if (i % 1024 == 0) {
                look_at_the_clock(end, what);
            }
        }
    }

    uint64_t stat(const char* name) const;
    uint64_t frames_sent() const;
    // For whoever reads the test's output.
    void saw(const std::string& text) { notes_ += (notes_.empty() ? "" : "; ") + text; }

    // Runs the row at both sides. What both saw, or a Failure with what is wrong.
    std::string run(int row, void (*function)(Side&));

    tw_worker* worker() const { return worker_; }
    static constexpr std::chrono::seconds kPatience{30};

  private:
    void look_at_the_clock(std::chrono::steady_clock::time_point end, const char* what);
    void tell(char kind, const std::string& text);
    // The other side's next message: its kind, or 0 when there is none and `wait` is false.
    char hear(bool wait, std::string* text);
    void close_row();
    uint16_t number(int index) const;

    SideOptions options_;
    tw_worker* worker_ = nullptr;
    int row_ = 0;
    uint32_t idle_ = 0;
    bool slow_ = false;
    std::deque<Endpoint> endpoints_;
    tw_pep* pep_ = nullptr;
    tw_eq* eq_ = nullptr;
    std::deque<std::string> buffers_;
    std::string notes_;
};

// Bytes that differ for each tag and at each place.
std::string pattern(uint64_t tag, size_t length);

[[noreturn]] void fail_check(const char* file, int line, const std::string& what);

}  // namespace tagwire::rows

#define EXPECT(condition)                                                     \
    do {                                                                      \
        if (!(condition))                                                     \
            ::tagwire::rows::fail_check(__FILE_NAME__, __LINE__, #condition); \
    } while (false)

#define EXPECT_IS(value, wanted)                                                                \
    do {                                                                                        \
        auto value_ = (value);                                                                  \
        const auto wanted_ = static_cast<decltype(value_)>(wanted);                             \
        if (!(value_ == wanted_))                                                               \
            ::tagwire::rows::fail_check(__FILE_NAME__, __LINE__,                                \
                                        fmt::format(#value " is {}, not {}", value_, wanted_)); \
    } while (false)

// A call of the API that succeeds.
#define CALL(call)                                                             \
    do {                                                                       \
        const auto result_ = (call);                                           \
        if (result_ < 0)                                                       \
            ::tagwire::rows::fail_check(                                       \
                __FILE_NAME__, __LINE__,                                       \
                fmt::format(#call " gave {} ({})", result_, tw_last_error())); \
    } while (false)
