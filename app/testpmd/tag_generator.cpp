// SPDX-License-Identifier: BSD-3-Clause
// taggen: sends numbered messages to each peer, and verifies what tagecho sends back.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "app/perf/failure.h"
#include "tag_content.h"
#include "tag_control.h"
#include "tag_role.h"

namespace tagwire::testpmd {
namespace {

constexpr uint64_t kAtOnce = 32;    // messages to one peer in a turn
constexpr double kCallAgain = 0.2;  // seconds after a call that failed
constexpr uint32_t kControls = 8;

enum class State { kCalling, kRunning, kEnding, kDone, kFailed };

const char* name_of(State state) {
    switch (state) {
        case State::kCalling:
            return "calling";
        case State::kRunning:
            return "running";
        case State::kEnding:
            return "ending";
        case State::kDone:
            return "done";
        case State::kFailed:
            return "failed";
    }
    return "unknown";
}

struct Peer {
    tw_address address{};
    tw_addr index = TW_ADDR_UNSPEC;
    State state = State::kCalling;
    TagMode mode = TagMode::kNone;  // echo or sink, as it says
    double deadline = 0;
    double call_at = 0;
    bool calling = false;
    uint64_t limit = UINT64_MAX;  // messages to send
    uint64_t next = 0;            // number of the next one
    uint64_t sends_under_way = 0;
    uint64_t echoes_under_way = 0;
    uint64_t sent_bytes = 0;
    uint64_t digest = 0;
    uint64_t received = 0;
    uint64_t received_bytes = 0;
    uint64_t received_digest = 0;
    uint64_t mismatches = 0;
    uint64_t errors = 0;
    std::string trouble;
    Slot* control = nullptr;
    std::vector<Slot*> sends;     // free
    std::vector<Slot*> receives;  // free
};

class Generator final : public TagRole {
  public:
    Generator(TagEndpoint& endpoint, const TagOptions& options,
              const std::vector<tw_address>& addresses);

    void completed(Slot& slot, const tw_cq_entry& entry) override;
    void failed(Slot& slot, const tw_cq_error& error) override;
    void turn(double now) override;
    bool finish(double now) override;
    bool is_done() const override;
    void report(TagReport* report) const override;

  private:
    void call(Peer& peer);
    void send_messages(Peer& peer);
    bool send_one(Peer& peer);
    void end(Peer& peer);
    void send_control(Peer& peer, const Control& control);
    void take_control(const Slot& slot, const tw_cq_entry& entry);
    void welcome(Peer& peer, const Control& control);
    void compare(Peer& peer, const Control& control);
    void take_echo(Peer& peer, const Slot& slot, const tw_cq_entry& entry);
    void fail(Peer& peer, const std::string& why);
    void alive(Peer& peer) { peer.deadline = now_ + options_.timeout_s; }

    uint32_t size_of(uint64_t number) const {
        return static_cast<uint32_t>(options_.sizes[number % options_.sizes.size()]);
    }
    MessageName name_of_message(uint64_t number) const {
        return {run_, options_.first_tag + number % options_.tags, number};
    }
    static uint64_t under_way(const Peer& peer) {
        return std::max(peer.sends_under_way, peer.echoes_under_way);
    }

    TagEndpoint& endpoint_;
    TagOptions options_;
    uint64_t run_;
    double now_ = 0;
    std::vector<Peer> peers_;
};

Generator::Generator(TagEndpoint& endpoint, const TagOptions& options,
                     const std::vector<tw_address>& addresses)
    : endpoint_(endpoint), options_(options) {
    std::random_device random;
    run_ = uint64_t{random()} << 32 | random();
    const auto largest =
        static_cast<uint32_t>(*std::max_element(options_.sizes.begin(), options_.sizes.end()));
    for (const tw_address& address : addresses) {
        Peer peer;
        peer.address = address;
        if (endpoint_.insert(address, &peer.index) != 0) {
            throw perf::Failure(
                fmt::format("the peer {} is refused: {}", address_text(address), tw_last_error()));
        }
        if (options_.count != 0) {
            peer.limit = options_.count;
        }
        const auto owner = static_cast<uint32_t>(peers_.size());
        peer.control = endpoint_.make_slots(Slot::Kind::kControlSend, 1, kControlSize).front();
        peer.sends = endpoint_.make_slots(Slot::Kind::kSend, options_.window, largest);
        peer.receives = endpoint_.make_slots(Slot::Kind::kReceive, options_.window, largest);
        peer.control->owner = owner;
        for (const auto& list : {peer.sends, peer.receives}) {
            for (Slot* slot : list) {
                slot->owner = owner;
                slot->peer = peer.index;
            }
        }
        peers_.push_back(std::move(peer));
    }
    for (Slot* slot : endpoint_.make_slots(Slot::Kind::kControlReceive, kControls, kControlSize)) {
        endpoint_.post(*slot);
    }
}

void Generator::turn(double now) {
    now_ = now;
    for (Peer& peer : peers_) {
        if (peer.state == State::kDone || peer.state == State::kFailed) {
            continue;
        }
        if (peer.deadline == 0) {
            alive(peer);
        }
        if (now > peer.deadline) {
            fail(peer, peer.state == State::kCalling
                           ? fmt::format("no answer in {} s", options_.timeout_s)
                           : fmt::format("nothing came back for {} s", options_.timeout_s));
            continue;
        }
        if (peer.state == State::kCalling) {
            call(peer);
        } else if (peer.state == State::kRunning) {
            send_messages(peer);
        }
    }
}

void Generator::call(Peer& peer) {
    if (peer.calling || now_ < peer.call_at) {
        return;
    }
    Control hello;
    hello.kind = ControlKind::kHello;
    hello.sender = endpoint_.address();
    hello.largest = *std::max_element(options_.sizes.begin(), options_.sizes.end());
    peer.calling = true;
    send_control(peer, hello);
}

void Generator::send_control(Peer& peer, const Control& control) {
    Control message = control;
    message.mode = TagMode::kGenerate;
    message.run = run_;
    peer.control->peer = peer.index;
    peer.control->length = kControlSize;
    encode_control(message, peer.control->buffer);
    if (const int error = endpoint_.post(*peer.control); error != 0) {
        fail(peer, tw_last_error());
    }
}

void Generator::send_messages(Peer& peer) {
    for (uint64_t i = 0; i < kAtOnce && peer.next < peer.limit &&
                         under_way(peer) < options_.window && send_one(peer);
         ++i) {
    }
    if (peer.next >= peer.limit && under_way(peer) == 0 && peer.state == State::kRunning) {
        end(peer);
    }
}

bool Generator::send_one(Peer& peer) {
    const bool echo = peer.mode == TagMode::kEcho;
    if (peer.sends.empty() || (echo && peer.receives.empty())) {
        return false;
    }
    const MessageName name = name_of_message(peer.next);
    const uint32_t size = size_of(peer.next);
    if (echo) {
        Slot& receive = *peer.receives.back();
        peer.receives.pop_back();
        receive.tag = name.tag | kEchoTag;
        ++peer.echoes_under_way;
        if (endpoint_.post(receive) != 0) {
            fail(peer, tw_last_error());
            return false;
        }
    }
    Slot& send = *peer.sends.back();
    peer.sends.pop_back();
    send.length = size;
    send.tag = name.tag;
    send.sequence = peer.next;
    fill_content(name, send.buffer, size);
    if (endpoint_.post(send) != 0) {
        fail(peer, tw_last_error());
        return false;
    }
    ++peer.sends_under_way;
    ++peer.next;
    peer.sent_bytes += size;
    peer.digest += message_digest(name, size);
    return true;
}

void Generator::end(Peer& peer) {
    peer.state = State::kEnding;
    alive(peer);
    Control bye;
    bye.kind = ControlKind::kBye;
    bye.messages = peer.next;
    bye.bytes = peer.sent_bytes;
    bye.digest = peer.digest;
    send_control(peer, bye);
}

void Generator::completed(Slot& slot, const tw_cq_entry& entry) {
    switch (slot.kind) {
        case Slot::Kind::kControlReceive:
            take_control(slot, entry);
            endpoint_.post(slot);
            break;
        case Slot::Kind::kControlSend:
            break;
        case Slot::Kind::kSend: {
            Peer& peer = peers_[slot.owner];
            --peer.sends_under_way;
            peer.sends.push_back(&slot);
            alive(peer);
            break;
        }
        case Slot::Kind::kReceive: {
            Peer& peer = peers_[slot.owner];
            take_echo(peer, slot, entry);
            --peer.echoes_under_way;
            peer.receives.push_back(&slot);
            alive(peer);
            break;
        }
    }
}

void Generator::take_control(const Slot& slot, const tw_cq_entry& entry) {
    Control control;
    if (!decode_control(slot.buffer, entry.length, &control) || control.run != run_) {
        return;
    }
    for (Peer& peer : peers_) {
        if (peer.index != entry.source) {
            continue;
        }
        if (control.kind == ControlKind::kWelcome && peer.state == State::kCalling) {
            welcome(peer, control);
        } else if (control.kind == ControlKind::kReport && peer.state == State::kEnding) {
            compare(peer, control);
        } else if (control.kind == ControlKind::kReport) {
            fail(peer,
                 fmt::format("it stopped after {} of {} messages", control.messages, peer.next));
        }
    }
}

void Generator::welcome(Peer& peer, const Control& control) {
    const uint64_t largest = *std::max_element(options_.sizes.begin(), options_.sizes.end());
    peer.mode = control.mode;
    alive(peer);
    if (control.mode != TagMode::kEcho && control.mode != TagMode::kSink) {
        fail(peer, "it is a generator, too: one side is taggen, the other tagecho or tagsink");
    } else if (largest > control.largest) {
        fail(peer, fmt::format("it takes messages of {} B at most, --tag-size goes up to {}: start "
                               "it with --tag-max-size={}",
                               control.largest, largest, largest));
    } else {
        peer.state = State::kRunning;
    }
}

// What the peer counted must be what was sent; so must what came back.
void Generator::compare(Peer& peer, const Control& control) {
    peer.mismatches += control.mismatches;
    if (control.messages != peer.next || control.bytes != peer.sent_bytes) {
        fail(peer, fmt::format("it received {} of {} messages, {} of {} B", control.messages,
                               peer.next, control.bytes, peer.sent_bytes));
    } else if (control.digest != peer.digest) {
        fail(peer, "it received other messages than were sent, or one twice");
    } else if (peer.mode == TagMode::kEcho &&
               (peer.received != peer.next || peer.received_digest != peer.digest)) {
        fail(peer,
             fmt::format("{} of {} messages came back as they were", peer.received, peer.next));
    } else if (peer.mismatches != 0) {
        fail(peer, "contents differ");
    } else {
        peer.state = State::kDone;
    }
}

void Generator::take_echo(Peer& peer, const Slot& slot, const tw_cq_entry& entry) {
    const uint64_t number = entry.data;
    const bool known = (entry.flags & TW_REMOTE_CQ_DATA) != 0 && number < peer.next;
    const MessageName name = name_of_message(number);
    if (!known || entry.tag != (name.tag | kEchoTag) || entry.length != size_of(number) ||
        !content_is_right(name, slot.buffer, entry.length)) {
        ++peer.mismatches;
        return;
    }
    ++peer.received;
    peer.received_bytes += entry.length;
    peer.received_digest += message_digest(name, entry.length);
}

void Generator::failed(Slot& slot, const tw_cq_error& error) {
    if (slot.kind == Slot::Kind::kControlReceive) {
        endpoint_.post(slot);
        return;
    }
    Peer& peer = peers_[slot.owner];
    if (slot.kind == Slot::Kind::kControlSend && peer.state == State::kCalling) {
        // It may start later than we.
        peer.calling = false;
        peer.call_at = now_ + kCallAgain;
        peer.trouble = error.text;
        return;
    }
    ++peer.errors;
    fail(peer, error.text);
}

void Generator::fail(Peer& peer, const std::string& why) {
    if (peer.state == State::kFailed || peer.state == State::kDone) {
        return;
    }
    const std::string before =
        peer.trouble.empty() || peer.state != State::kCalling ? "" : " (" + peer.trouble + ")";
    peer.state = State::kFailed;
    peer.trouble = why + before;
    fmt::print(stderr, "testpmd: {}: {}: {}\n", endpoint_.name(), address_text(peer.address),
               peer.trouble);
}

bool Generator::finish(double now) {
    now_ = now;
    for (Peer& peer : peers_) {
        if (peer.state == State::kCalling) {
            fail(peer, "stopped before it answered");
        }
        peer.limit = std::min(peer.limit, peer.next);
    }
    return is_done();
}

bool Generator::is_done() const {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
        return peer.state == State::kDone || peer.state == State::kFailed;
    });
}

void Generator::report(TagReport* report) const {
    for (const Peer& peer : peers_) {
        report->peers.push_back(
            {address_text(peer.address),
             peer.state == State::kFailed
                 ? fmt::format("failed: {}", peer.trouble)
                 : fmt::format("{} {}", testpmd::name_of(peer.mode), name_of(peer.state)),
             peer.next, peer.sent_bytes, peer.received, peer.received_bytes, peer.mismatches,
             peer.errors});
        report->right = report->right && peer.state != State::kFailed && peer.mismatches == 0;
    }
}

}  // namespace

std::unique_ptr<TagRole> make_generator(TagEndpoint& endpoint, const TagOptions& options,
                                        const std::vector<tw_address>& peers) {
    return std::make_unique<Generator>(endpoint, options, peers);
}

}  // namespace tagwire::testpmd
