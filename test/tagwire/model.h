// SPDX-License-Identifier: BSD-3-Clause
// What fi_tagged(3) allows, as a checker of what happened.
//
// Receives prefer earlier messages of a sender, messages prefer earlier receives. So at
// rest no receive and no message may be left, or be with another, that would both have
// preferred each other. With one sender that fixes the result; between senders the
// network decides who came first, and either is allowed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tagwire::test {

struct ModelMessage {
    enum class State { kWaits, kMatched, kClaimed, kGone };
    size_t sender;
    uint64_t order;  // of sending, within the sender
    uint64_t tag;
    uint64_t length;
    bool needs_match;  // its send completes only when it was matched
    bool fence;
    bool silent;   // its send has no completion
    size_t taker;  // kMatched: the receive
    State state;
    uint32_t completions;
};

struct ModelReceive {
    uint64_t tag;
    uint64_t ignore;
    size_t sender;  // kAny
    uint64_t capacity;
    uint64_t least;  // of a multi-receive
    bool multi;
    bool open;       // takes another message
    bool cancelled;  // its end is an error
    uint64_t used;
    std::vector<size_t> messages;  // that it took
    uint32_t ends;                 // completions of a plain one, releases of a multi-receive
};

class Model {
  public:
    static constexpr size_t kAny = SIZE_MAX;
    static constexpr size_t kNone = SIZE_MAX;
    static constexpr uint64_t kOnePacket = 1400;

    explicit Model(uint64_t eager_window) : eager_window_(eager_window) {}

    size_t send(const ModelMessage& message) {
        messages.push_back(message);
        messages.back().order = messages.size();
        messages.back().state = ModelMessage::State::kWaits;
        return messages.size() - 1;
    }
    size_t post(const ModelReceive& receive) {
        receives.push_back(receive);
        receives.back().open = true;
        return receives.size() - 1;
    }

    bool matches(const ModelReceive& r, const ModelMessage& m) const {
        return ((m.tag ^ r.tag) & ~r.ignore) == 0 && (r.sender == kAny || r.sender == m.sender);
    }

    // A completion says that receive `r` got message `m`; how much of it was placed.
    std::string took(size_t r, size_t m, uint64_t placed, bool truncated) {
        ModelReceive& receive = receives.at(r);
        ModelMessage& message = messages.at(m);
        if (message.state != ModelMessage::State::kWaits) {
            return say("message taken twice", r, m);
        }
        if (!receive.open) {
            return say("receive had ended", r, m);
        }
        if (!matches(receive, message)) {
            return say("does not match", r, m);
        }
        message.state = ModelMessage::State::kMatched;
        message.taker = r;
        receive.messages.push_back(m);
        if (!receive.multi) {
            receive.open = false;
            ++receive.ends;
            const bool fits = message.length <= receive.capacity;
            const uint64_t wanted = fits ? message.length : receive.capacity;
            return placed != wanted || truncated == fits ? say("wrong length", r, m) : "";
        }
        // Completions of a multi-receive come as messages end; space was given as they came.
        const bool fits = placed == message.length;
        receive.used += placed;
        if (receive.used > receive.capacity || fits == truncated) {
            return say("wrong length in a multi-receive", r, m);
        }
        return "";
    }

    std::string released(size_t r) {
        ModelReceive& receive = receives.at(r);
        ++receive.ends;
        receive.open = false;
        if (!receive.cancelled && receive.capacity - receive.used >= receive.least) {
            return say("released with space left", r, kNone);
        }
        return receive.ends == 1 ? "" : say("released twice", r, kNone);
    }

    // Messages that can have arrived: those in front of a fence that still holds.
    bool arrived(size_t m) const {
        const ModelMessage& message = messages[m];
        bool done = true;
        for (size_t i = 0; i <= m; ++i) {
            if (messages[i].sender != message.sender) {
                continue;
            }
            if (messages[i].fence && !done) {
                return false;
            }
            done = done && send_is_done(i);
        }
        return true;
    }

    // At rest: whether the sender has the completion (or would, were it not silent).
    bool send_is_done(size_t m) const {
        const ModelMessage& message = messages[m];
        if (message.state == ModelMessage::State::kMatched ||
            message.state == ModelMessage::State::kGone) {
            return true;
        }
        if (message.needs_match || message.length > eager_window_) {
            return false;
        }
        // The receiver's budget may be nearly used up: then the rest of it waits for a match.
        return message.length <= kOnePacket || message.completions != 0;
    }

    // The first message of each sender that a search may find; kNone when there is none.
    std::map<size_t, size_t> findable(const ModelReceive& receive) const {
        std::map<size_t, size_t> first;
        for (size_t m = 0; m < messages.size(); ++m) {
            if (messages[m].state == ModelMessage::State::kWaits && matches(receive, messages[m]) &&
                arrived(m)) {
                first.try_emplace(messages[m].sender, m);
            }
        }
        return first;
    }

    // Everything that can happen has happened: is it what was allowed? "" or what is wrong.
    std::string check() {
        for (size_t m = 0; m < messages.size(); ++m) {
            for (size_t r = 0; r < receives.size(); ++r) {
                if (std::string wrong = check(r, m); !wrong.empty()) {
                    return wrong;
                }
            }
        }
        for (size_t m = 0; m < messages.size(); ++m) {
            const ModelMessage& message = messages[m];
            const uint32_t expected = !message.silent && send_is_done(m) && arrived(m) ? 1 : 0;
            if (message.completions != expected) {
                return say(message.completions > expected ? "send completed too early"
                                                          : "send did not complete",
                           kNone, m);
            }
        }
        return "";
    }

    std::vector<ModelMessage> messages;
    std::vector<ModelReceive> receives;

  private:
    // Would this receive and this message both have preferred each other?
    std::string check(size_t r, size_t m) const {
        const ModelReceive& receive = receives[r];
        const ModelMessage& message = messages[m];
        using State = ModelMessage::State;
        if (!matches(receive, message) || receive.cancelled || !arrived(m)) {
            return "";
        }
        if (message.state != State::kWaits && message.state != State::kMatched) {
            return "";  // a peek took it, when no receive was there for it
        }
        const bool message_wants =
            message.state == State::kWaits || (message.taker != r && message.taker > r);
        if (!message_wants) {
            return "";
        }
        if (receive.open) {
            return say("is open, and the message went elsewhere", r, m);
        }
        for (const size_t other : receive.messages) {
            if (messages[other].sender == message.sender && other > m) {
                return say("took a later message of the same sender", r, m);
            }
        }
        return "";
    }

    std::string say(const char* what, size_t r, size_t m) const {
        std::string text = what;
        if (r != kNone) {
            const ModelReceive& receive = receives[r];
            text += "; receive " + std::to_string(r) + ": tag " + std::to_string(receive.tag) +
                    ", ignore " + std::to_string(receive.ignore) + ", capacity " +
                    std::to_string(receive.capacity) + (receive.multi ? ", multi" : "");
        }
        if (m != kNone) {
            const ModelMessage& message = messages[m];
            text += "; message " + std::to_string(m) + ": tag " + std::to_string(message.tag) +
                    ", length " + std::to_string(message.length) +
                    (message.needs_match ? ", match complete" : "") +
                    (message.fence ? ", fence" : "") + (message.silent ? ", injected" : "") +
                    ", state " + std::to_string(static_cast<int>(message.state));
        }
        return text;
    }

    uint64_t eager_window_;
};

}  // namespace tagwire::test
