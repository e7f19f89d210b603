// SPDX-License-Identifier: BSD-3-Clause
#include "pingpong.h"

#include <fmt/format.h>
#include <rte_cycles.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "failure.h"
#include "percentiles.h"
#include "progress.h"
#include "sizes.h"

namespace tagwire::perf {
namespace {

constexpr const char* kWhat = "exchanging ping-pong messages";

// What one side posts. The outgoing bytes never change, so a send need not be over
// when the next one starts: a late acknowledgement does not disturb the measurement.
class Side {
  public:
    Side(Session& session, size_t size)
        : session_(session),
          size_(size),
          send_ops_(session.fabric().operations(kSendSlots)),
          receive_op_(session.fabric().operations(1)),
          out_(session.fabric().buffer(size)),
          in_(session.fabric().buffer(size)) {
        // The worker goes on meanwhile: who fills a GiB at one go is silent for too long.
        for (size_t at = 0; at < size; at += kFillAtOnce) {
            std::memset(out_ + at, 'p', std::min(kFillAtOnce, size - at));
            session.fabric().progress();
        }
    }

    void post_receive(TagKind kind, uint64_t sequence) {
        session_.receive_data(*receive_op_, in_, size_, session_.tag(kind, sequence));
    }
    void send(TagKind kind, uint64_t sequence) {
        Operation& op = send_ops_[sequence % kSendSlots];
        session_.wait(op, size_, kWhat);
        session_.require_success(op, kWhat);
        session_.send_data(op, out_, size_, session_.tag(kind, sequence));
    }
    void wait_receive() {
        session_.wait(*receive_op_, 2 * size_, kWhat);
        session_.require_success(*receive_op_, kWhat);
        if (receive_op_->length != size_) {
            throw Failure(fmt::format("a message of {} bytes arrived as one of {} bytes", size_,
                                      receive_op_->length));
        }
    }
    void finish() {
        for (size_t i = 0; i < kSendSlots; ++i) {
            session_.wait(send_ops_[i], size_, kWhat);
            session_.require_success(send_ops_[i], kWhat);
        }
    }

  private:
    static constexpr size_t kSendSlots = 16;
    static constexpr size_t kFillAtOnce = size_t{4} << 20;

    Session& session_;
    size_t size_;
    Operation* send_ops_;
    Operation* receive_op_;
    std::byte* out_;
    std::byte* in_;
};

void round_trip(Side& side, uint64_t sequence) {
    side.post_receive(TagKind::kPong, sequence);
    side.send(TagKind::kPing, sequence);
    side.wait_receive();
}

Json to_row(size_t size, std::vector<double>& half_us, bool partial) {
    std::sort(half_us.begin(), half_us.end());
    Json row{{"test", "pingpong"}, {"size", size}, {"iterations", half_us.size()}};
    if (!half_us.empty()) {
        row["min_us"] = half_us.front();
        row["p50_us"] = percentile(half_us, 50);
        row["p90_us"] = percentile(half_us, 90);
        row["p99_us"] = percentile(half_us, 99);
        row["p99.9_us"] = percentile(half_us, 99.9);
        row["max_us"] = half_us.back();
    }
    if (partial) {
        row["partial"] = true;
    }
    return row;
}

void run_size(Session& session, const PingpongOptions& options, size_t size, Report& report,
              bool show_progress) {
    session.send({{"type", "run"}, {"size", size}, {"count", options.warmup + options.iterations}});
    session.expect("ready");
    Side side(session, size);
    std::vector<double> half_us;
    half_us.reserve(options.iterations);
    const double half_us_per_cycle = 0.5e6 / static_cast<double>(rte_get_tsc_hz());
    try {
        Progress progress("pingpong " + format_size(size), options.iterations,
                          Progress::Unit::kCount, show_progress);
        for (uint64_t i = 0; i < options.warmup; ++i) {
            round_trip(side, i);
        }
        for (uint64_t i = 0; i < options.iterations; ++i) {
            const uint64_t start = rte_rdtsc();
            round_trip(side, options.warmup + i);
            half_us.push_back(static_cast<double>(rte_rdtsc() - start) * half_us_per_cycle);
            progress.update(i);
        }
        side.finish();
    } catch (const Failure&) {
        report.add_row(to_row(size, half_us, true));
        throw;
    }
    report.add_row(to_row(size, half_us, false));
}

}  // namespace

Json to_parameters(const PingpongOptions& options) {
    return {
        {"sizes", options.sizes}, {"iterations", options.iterations}, {"warmup", options.warmup}};
}

void run_pingpong_client(Session& session, const PingpongOptions& options, Report& report,
                         bool progress) {
    report.say("latency: half of a round trip, in microseconds");
    report.begin_table({{"size", "bytes", 10},
                        {"iterations", "iterations", 12},
                        {"min_us", "min", 10},
                        {"p50_us", "p50", 10},
                        {"p90_us", "p90", 10},
                        {"p99_us", "p99", 10},
                        {"p99.9_us", "p99.9", 10},
                        {"max_us", "max", 10}});
    for (const uint64_t size : options.sizes) {
        run_size(session, options, size, report, progress);
    }
}

void run_pingpong_server(Session& session, const Json& parameters) {
    const size_t sizes = parameters.at("sizes").size();
    for (size_t i = 0; i < sizes; ++i) {
        const Json run = session.expect("run");
        const auto size = run.at("size").get<size_t>();
        const auto count = run.at("count").get<uint64_t>();
        if (size > TW_MAX_MESSAGE_SIZE) {
            throw Failure(fmt::format("the client asks for messages of {} bytes", size));
        }
        Side side(session, size);
        side.post_receive(TagKind::kPing, 0);
        session.send({{"type", "ready"}});
        for (uint64_t sequence = 0; sequence < count; ++sequence) {
            side.wait_receive();
            if (sequence + 1 < count) {
                side.post_receive(TagKind::kPing, sequence + 1);
            }
            side.send(TagKind::kPong, sequence);
        }
        side.finish();
    }
}

}  // namespace tagwire::perf
