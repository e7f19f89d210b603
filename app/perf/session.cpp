// SPDX-License-Identifier: BSD-3-Clause
#include "session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "failure.h"

namespace tagwire::perf {
namespace {

constexpr uint32_t kTurnsBetweenChecks = 1024;
// A large message may take long without a completion: the slowest rate worth waiting for.
constexpr double kSlowestBytesPerSecond = 4e6;
constexpr auto kHelloInterval = std::chrono::seconds(1);
constexpr auto kAbortTime = std::chrono::milliseconds(200);

const char* const kNotAnswering =
    "is a server running there and not busy with another client? Both sides need the same "
    "--udp-port and the same wire (softcx-run --wire switch:NAME), and different IP addresses";

Failure silent_peer(const std::string& peer, double seconds, const char* what) {
    return Failure(fmt::format("{} was silent for {:.3g} s while {}", peer, seconds, what),
                   "it ended or hangs, or the wire is cut; --timeout sets the patience");
}

Json parse_control(const std::byte* data, size_t length) {
    const auto* text = reinterpret_cast<const char*>(data);
    Json message = Json::parse(text, text + length, nullptr, false);
    if (!message.is_object() || !message.contains("type") || !message["type"].is_string()) {
        throw Failure("the peer sent a control message that is not tagwire-perf's",
                      "start the same version of tagwire-perf on both sides");
    }
    return message;
}

}  // namespace

Session Session::connect(Fabric& fabric, const std::string& server_text, const tw_address& server,
                         const std::string& test, Json parameters) {
    std::random_device random;
    const auto id = static_cast<uint16_t>(random());
    Session session(fabric, fabric.insert(server), server_text, id);
    const Json hello{{"type", "hello"},
                     {"program", "tagwire-perf"},
                     {"version", kProtocolVersion},
                     {"address", fabric.name()},
                     {"session", id},
                     {"test", test},
                     {"parameters", std::move(parameters)}};
    const std::string text = hello.dump();
    std::byte* data = fabric.buffer(text.size());
    std::memcpy(data, text.data(), text.size());

    // Said again and again: a server that is busy forgets what it did not expect, and one that
    // still holds a session with this address refuses the first attempt.
    const auto end = Clock::now() + std::chrono::duration<double>(fabric.timeout_s());
    auto next = Clock::now();
    Operation* op = fabric.operations(1);
    while (session.control_->pending) {
        if (Clock::now() >= end) {
            throw Failure(fmt::format("no answer from {} within {:g} s{}{}", server_text,
                                      fabric.timeout_s(), op->error != 0 ? ": " : "",
                                      op->error != 0 ? fabric.last_error_text() : ""),
                          kNotAnswering);
        }
        if (!op->pending && Clock::now() >= next) {
            session.send_data(*op, data, text.size(), make_tag(TagKind::kHello, 0));
            next = Clock::now() + kHelloInterval;
        }
        fabric.progress();
    }
    session.expect("welcome");
    return session;
}

Session::Session(Fabric& fabric, tw_addr peer, std::string peer_text, uint16_t id)
    : fabric_(&fabric),
      peer_(peer),
      peer_text_(std::move(peer_text)),
      id_(id),
      control_(fabric.operations(1)),
      control_buffer_(fabric.buffer(kControlBytes)),
      outgoing_(fabric.operations(1)),
      outgoing_buffer_(fabric.buffer(kControlBytes)) {
    post_control();
}

void Session::post_control() {
    receive_data(*control_, control_buffer_, kControlBytes, tag(TagKind::kControl));
}

void Session::send(const Json& message) {
    const std::string text = message.dump();
    if (text.size() > kControlBytes) {
        throw Failure(fmt::format("a control message of {} bytes is too long", text.size()),
                      "shorten the file names");
    }
    std::memcpy(outgoing_buffer_, text.data(), text.size());
    send_data(*outgoing_, outgoing_buffer_, text.size(), tag(TagKind::kControl));
    wait(*outgoing_, text.size(), "sending a control message");
    require_success(*outgoing_, "sending a control message");
}

Json Session::expect_any(std::initializer_list<std::string> types) {
    const std::string wanted = fmt::format("'{}'", fmt::join(types, "' or '"));
    const std::string what = "waiting for its " + wanted;
    Silence silence;
    while (control_->pending) {
        turn(silence, 0, what.c_str());
    }
    Json message = take_control();
    if (std::find(types.begin(), types.end(), message["type"].get<std::string>()) == types.end()) {
        throw Failure(fmt::format("{} sent '{}' instead of {}", peer_text_,
                                  message["type"].get<std::string>(), wanted),
                      "start the same version of tagwire-perf on both sides");
    }
    return message;
}

Json Session::take_control() {
    require_success(*control_, "receiving a control message");
    Json message = parse_control(control_buffer_, control_->length);
    post_control();
    if (message["type"] == "abort" || message["type"] == "refused") {
        throw PeerGaveUp(fmt::format("{} {}: {}", peer_text_,
                                     message["type"] == "abort" ? "gave up" : "refused",
                                     message.value("reason", "no reason given")));
    }
    return message;
}

void Session::abort(const std::string& reason) noexcept {
    try {
        const std::string text = Json{{"type", "abort"}, {"reason", reason}}.dump(
            -1, ' ', false, Json::error_handler_t::replace);
        const size_t length = std::min(text.size(), kControlBytes);
        Operation* op = fabric_->operations(1);
        std::byte* data = fabric_->buffer(length);
        std::memcpy(data, text.data(), length);
        const auto end = Clock::now() + kAbortTime;
        // Not through Fabric::send: after a signal that one throws again.
        fabric_->send_quietly(*op, data, length, peer_, tag(TagKind::kControl));
        while (op->pending && Clock::now() < end) {
            fabric_->progress_quietly();
        }
    } catch (const std::exception&) {
        // The peer then learns it from the silence.
    }
}

void Session::wait(Operation& op, size_t bytes, const char* what) {
    Silence silence;
    while (op.pending) {
        turn(silence, bytes, what);
    }
}

void Session::require_success(const Operation& op, const char* what) const {
    if (op.error == 0) {
        return;
    }
    const std::string& text = fabric_->last_error_text();
    throw Failure(fmt::format("{} with {} failed: {}{}{}", what, peer_text_, tw_strerror(op.error),
                              text.empty() ? "" : ": ", text),
                  op.error == TW_ETRUNC ? "the two sides disagree on sizes"
                                        : "the peer ended or is not reachable any more");
}

void Session::turn(Silence& silence, size_t bytes, const char* what) {
    fabric_->progress();
    if (++silence.turns % kTurnsBetweenChecks != 0) {
        return;
    }
    throw_if_aborted();
    const auto now = Clock::now();
    if (silence.completions != fabric_->completions()) {
        silence.completions = fabric_->completions();
        silence.last = now;
        return;
    }
    const double patience =
        fabric_->timeout_s() + static_cast<double>(bytes) / kSlowestBytesPerSecond;
    if (std::chrono::duration<double>(now - silence.last).count() > patience) {
        throw silent_peer(peer_text_, patience, what);
    }
}

void Session::throw_if_aborted() {
    if (control_->pending) {
        return;
    }
    require_success(*control_, "receiving a control message");
    const Json message = parse_control(control_buffer_, control_->length);
    if (message["type"] == "abort") {
        take_control();
    }
}

}  // namespace tagwire::perf
