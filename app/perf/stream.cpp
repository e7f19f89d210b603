// SPDX-License-Identifier: BSD-3-Clause
#include "stream.h"

#include <fmt/format.h>
#include <rte_cycles.h>

#include <algorithm>
#include <cstring>

#include "failure.h"
#include "progress.h"
#include "sizes.h"

namespace tagwire::perf {
namespace {

constexpr const char* kWhat = "streaming messages";

struct Run {
    size_t size = 0;
    uint64_t warmup = 0;
    uint64_t count = 0;  // after the warm-up
    uint32_t window = 1;
    bool check = false;

    uint64_t total() const { return warmup + count; }
};

// What message number `sequence` holds: every word is different within a message and
// from one message to the next.
void fill(std::byte* data, size_t size, uint64_t sequence) {
    uint64_t word = sequence * 0x9e3779b97f4a7c15ull + 1;
    for (size_t i = 0; i < size; i += sizeof(word)) {
        std::memcpy(data + i, &word, std::min(sizeof(word), size - i));
        word += 0x9e3779b97f4a7c15ull;
    }
}

void verify(const std::byte* data, size_t size, uint64_t sequence, std::byte* expected) {
    fill(expected, size, sequence);
    if (std::memcmp(data, expected, size) != 0) {
        throw Failure(
            fmt::format("message {} of {} bytes arrived with wrong contents", sequence, size));
    }
}

// Time and messages after the warm-up.
struct Meter {
    uint64_t start = 0;
    uint64_t messages = 0;

    double seconds() const {
        return static_cast<double>(rte_rdtsc() - start) / static_cast<double>(rte_get_tsc_hz());
    }
};

// Slots are used in turn, and messages of one tag match in order: slot i % slots holds
// message i.
Meter send_all(Session& session, const Run& run, Progress* progress, Meter& meter) {
    Operation* ops = session.fabric().operations(run.window);
    const size_t buffers = run.check ? run.window : 1;
    std::byte* data = session.fabric().buffer(buffers * run.size);
    const uint64_t tag = session.tag(TagKind::kData);
    for (uint64_t i = 0; i < run.total() + run.window; ++i) {
        Operation& op = ops[i % run.window];
        if (i >= run.window) {
            session.wait(op, run.size, kWhat);
            session.require_success(op, kWhat);
            const uint64_t done = i - run.window + 1;
            if (done > run.warmup) {
                meter.messages = done - run.warmup;
                progress->update(meter.messages);
            }
        }
        if (i == run.warmup) {
            meter.start = rte_rdtsc();
        }
        if (i < run.total()) {
            std::byte* message = data + (i % buffers) * run.size;
            if (run.check) {
                fill(message, run.size, i);
            }
            session.send_data(op, message, run.size, tag);
        }
    }
    return meter;
}

// Returns the seconds from the last warm-up message (or the first one) to the last one.
double receive_all(Session& session, const Run& run) {
    const uint32_t slots = 2 * run.window;
    Operation* ops = session.fabric().operations(slots);
    std::byte* data = session.fabric().buffer(slots * run.size);
    std::byte* expected = session.fabric().buffer(run.check ? run.size : 0);
    const uint64_t tag = session.tag(TagKind::kData);
    uint64_t posted = 0;
    for (; posted < std::min<uint64_t>(slots, run.total()); ++posted) {
        session.receive_data(ops[posted], data + posted * run.size, run.size, tag);
    }
    session.send({{"type", "ready"}});
    Meter meter;
    for (uint64_t i = 0; i < run.total(); ++i) {
        Operation& op = ops[i % slots];
        std::byte* message = data + (i % slots) * run.size;
        session.wait(op, run.size, kWhat);
        session.require_success(op, kWhat);
        if (op.length != run.size) {
            throw Failure(fmt::format("message {} arrived with {} bytes instead of {}", i,
                                      op.length, run.size));
        }
        if (run.check) {
            verify(message, run.size, i, expected);
        }
        if (i + 1 == std::max<uint64_t>(run.warmup, 1)) {
            meter.start = rte_rdtsc();
        }
        if (posted < run.total()) {
            session.receive_data(op, message, run.size, tag);
            ++posted;
        }
    }
    return meter.seconds();
}

// A run with a short warm-up starts its clock after the first message.
uint64_t measured(const Run& run) {
    return run.warmup > 0 ? run.count : std::max<uint64_t>(run.count - 1, 1);
}

Json to_row(const Run& run, uint64_t messages, double seconds) {
    const double rate = seconds > 0 ? static_cast<double>(messages) / seconds : 0;
    return {{"test", "stream"},
            {"size", run.size},
            {"messages", messages},
            {"seconds", seconds},
            {"messages_per_second", rate},
            {"million_messages_per_second", rate / 1e6},
            {"megabytes_per_second", rate * static_cast<double>(run.size) / 1e6}};
}

void run_size(Session& session, const Run& run, Report& report, bool show_progress) {
    session.send({{"type", "run"},
                  {"size", run.size},
                  {"warmup", run.warmup},
                  {"count", run.count},
                  {"window", run.window},
                  {"check", run.check}});
    session.expect("ready");
    Meter meter;
    try {
        Progress progress("stream " + format_size(run.size), run.count, Progress::Unit::kCount,
                          show_progress);
        send_all(session, run, &progress, meter);
    } catch (const Failure&) {
        Json row = to_row(run, meter.messages, meter.start != 0 ? meter.seconds() : 0);
        row["partial"] = true;
        report.add_row(std::move(row));
        throw;
    }
    const double sender_seconds = meter.seconds();
    const Json result = session.expect("result");
    Json row = to_row(run, measured(run), result.at("seconds").get<double>());
    row["sender_seconds"] = sender_seconds;
    row["checked"] = run.check;
    report.add_row(std::move(row));
}

}  // namespace

Json to_parameters(const StreamOptions& options) {
    return {{"sizes", options.sizes},
            {"iterations", options.iterations},
            {"warmup", options.warmup},
            {"window", options.window},
            {"check", options.check}};
}

void run_stream_client(Session& session, const StreamOptions& options, Report& report,
                       bool progress) {
    report.say(
        fmt::format("one way, {} messages outstanding, measured at the receiver", options.window));
    report.begin_table({{"size", "bytes", 10},
                        {"messages", "messages", 12},
                        {"seconds", "seconds", 10},
                        {"million_messages_per_second", "million/s", 12},
                        {"megabytes_per_second", "MB/s", 12}});
    for (const uint64_t size : options.sizes) {
        const Run run{size, options.warmup, options.iterations, options.window, options.check};
        run_size(session, run, report, progress);
    }
}

void run_stream_server(Session& session, const Json& parameters) {
    const size_t sizes = parameters.at("sizes").size();
    for (size_t i = 0; i < sizes; ++i) {
        const Json request = session.expect("run");
        Run run{request.at("size").get<size_t>(), request.at("warmup").get<uint64_t>(),
                request.at("count").get<uint64_t>(), request.at("window").get<uint32_t>(),
                request.at("check").get<bool>()};
        if (run.size > TW_MAX_MESSAGE_SIZE || run.window == 0 || run.window > 4096) {
            throw Failure(fmt::format("the client asks for {} messages of {} bytes at once",
                                      run.window, run.size));
        }
        const double seconds = receive_all(session, run);
        session.send({{"type", "result"}, {"seconds", seconds}});
    }
}

}  // namespace tagwire::perf
