// SPDX-License-Identifier: BSD-3-Clause
// tagecho and tagsink: verify every message; tagecho sends it back.
#include <fmt/format.h>

#include <cerrno>
#include <unordered_map>

#include "tag_content.h"
#include "tag_control.h"
#include "tag_role.h"

namespace tagwire::testpmd {
namespace {

constexpr uint32_t kControls = 32;

struct Peer {
    tw_address address{};
    uint64_t run = 0;
    uint64_t received = 0;
    uint64_t received_bytes = 0;
    uint64_t digest = 0;
    uint64_t mismatches = 0;
    uint64_t sent = 0;
    uint64_t sent_bytes = 0;
    uint64_t errors = 0;
    bool ending = false;  // it said bye, and waits for our report
    bool ended = false;
    bool unfinished = false;  // we stopped before its bye
    bool wrong = false;
    double deadline = 0;
    Control bye;
};

class Responder final : public TagRole {
  public:
    Responder(TagEndpoint& endpoint, const TagOptions& options, TagMode mode);

    void completed(Slot& slot, const tw_cq_entry& entry) override;
    void failed(Slot& slot, const tw_cq_error& error) override;
    void turn(double now) override;
    bool finish(double now) override;
    bool is_done() const override { return false; }  // peers may come at any time
    void report(TagReport* report) const override;

  private:
    void take_control(const Slot& slot, const tw_cq_entry& entry);
    void answer(tw_addr to, const Control& control);
    void take_message(Slot& slot, const tw_cq_entry& entry);
    void send_back(Slot& slot, const tw_cq_entry& entry);
    void receive_again(Slot& slot);
    void close_account(tw_addr index, Peer& peer);
    void send_report(tw_addr index, const Peer& peer);

    TagEndpoint& endpoint_;
    TagMode mode_;
    uint64_t largest_;
    double timeout_s_;
    double now_ = 0;
    uint64_t strangers_ = 0;
    uint32_t ending_ = 0;  // peers with `ending`
    std::unordered_map<tw_addr, Peer> peers_;
    std::vector<Slot*> controls_;  // free ones to send
};

Responder::Responder(TagEndpoint& endpoint, const TagOptions& options, TagMode mode)
    : endpoint_(endpoint), mode_(mode), largest_(options.largest), timeout_s_(options.timeout_s) {
    controls_ = endpoint_.make_slots(Slot::Kind::kControlSend, kControls, kControlSize);
    for (Slot* slot : endpoint_.make_slots(Slot::Kind::kControlReceive, kControls, kControlSize)) {
        endpoint_.post(*slot);
    }
    for (Slot* slot : endpoint_.make_slots(Slot::Kind::kReceive, options.window,
                                           static_cast<uint32_t>(largest_))) {
        receive_again(*slot);
    }
}

void Responder::receive_again(Slot& slot) {
    slot.kind = Slot::Kind::kReceive;
    slot.peer = TW_ADDR_UNSPEC;
    slot.tag = 0;
    slot.ignore = ~uint64_t{0};
    endpoint_.post(slot);
}

void Responder::completed(Slot& slot, const tw_cq_entry& entry) {
    switch (slot.kind) {
        case Slot::Kind::kControlReceive:
            take_control(slot, entry);
            endpoint_.post(slot);
            break;
        case Slot::Kind::kControlSend:
            controls_.push_back(&slot);
            break;
        case Slot::Kind::kReceive:
            take_message(slot, entry);
            break;
        case Slot::Kind::kSend:
            receive_again(slot);
            break;
    }
}

void Responder::take_control(const Slot& slot, const tw_cq_entry& entry) {
    Control control;
    if (!decode_control(slot.buffer, entry.length, &control)) {
        ++strangers_;
        return;
    }
    if (control.kind == ControlKind::kHello) {
        tw_addr index = TW_ADDR_UNSPEC;
        if (endpoint_.insert(control.sender, &index) != 0) {
            ++strangers_;
            return;
        }
        Peer& peer = peers_[index];
        if (peer.run != control.run) {
            ending_ -= peer.ending ? 1 : 0;
            const bool wrong = peer.wrong || peer.mismatches != 0;
            peer = {};
            peer.address = control.sender;
            peer.run = control.run;
            peer.wrong = wrong;  // of a former run: it still counts at the end
        }
        Control welcome;
        welcome.kind = ControlKind::kWelcome;
        welcome.run = control.run;
        welcome.largest = largest_;
        answer(index, welcome);
        return;
    }
    const auto found = peers_.find(entry.source);
    if (control.kind != ControlKind::kBye || found == peers_.end() ||
        found->second.run != control.run) {
        ++strangers_;
        return;
    }
    Peer& peer = found->second;
    if (!peer.ending && !peer.ended) {
        peer.ending = true;
        ++ending_;
        peer.bye = control;
        peer.deadline = now_ + timeout_s_ / 2;
    }
}

void Responder::answer(tw_addr to, const Control& control) {
    if (controls_.empty()) {
        return;  // all are under way to peers that do not take them; this one will call again
    }
    Slot& slot = *controls_.back();
    controls_.pop_back();
    Control message = control;
    message.mode = mode_;
    message.sender = endpoint_.address();
    slot.peer = to;
    slot.length = kControlSize;
    encode_control(message, slot.buffer);
    if (endpoint_.post(slot) != 0) {
        controls_.push_back(&slot);
    }
}

void Responder::take_message(Slot& slot, const tw_cq_entry& entry) {
    const auto found = peers_.find(entry.source);
    if (found == peers_.end()) {
        ++strangers_;
        receive_again(slot);
        return;
    }
    Peer& peer = found->second;
    const MessageName name{peer.run, entry.tag, entry.data};
    if ((entry.flags & TW_REMOTE_CQ_DATA) == 0 ||
        !content_is_right(name, slot.buffer, entry.length)) {
        ++peer.mismatches;
    }
    ++peer.received;
    peer.received_bytes += entry.length;
    peer.digest += message_digest(name, entry.length);
    if (mode_ == TagMode::kEcho) {
        send_back(slot, entry);
    } else {
        receive_again(slot);
    }
}

// As it is, wrong contents too: the generator sees them as well.
void Responder::send_back(Slot& slot, const tw_cq_entry& entry) {
    Peer& peer = peers_[entry.source];
    slot.kind = Slot::Kind::kSend;
    slot.peer = entry.source;
    slot.tag = entry.tag | kEchoTag;
    slot.sequence = entry.data;
    slot.length = static_cast<uint32_t>(entry.length);
    if (endpoint_.post(slot) != 0) {
        ++peer.errors;
        receive_again(slot);
        return;
    }
    ++peer.sent;
    peer.sent_bytes += entry.length;
}

void Responder::failed(Slot& slot, const tw_cq_error& error) {
    if (error.error == ECANCELED) {
        return;  // the endpoint is being closed
    }
    const tw_addr peer_index =
        slot.kind == Slot::Kind::kSend || slot.kind == Slot::Kind::kControlSend
            ? slot.peer
            : error.entry.source;
    const auto found = peers_.find(peer_index);
    if (found != peers_.end()) {
        ++found->second.errors;
        // A message longer than was agreed on is a wrong one.
        found->second.mismatches += error.error == TW_ETRUNC ? 1 : 0;
    } else {
        ++strangers_;
    }
    switch (slot.kind) {
        case Slot::Kind::kControlReceive:
            endpoint_.post(slot);
            break;
        case Slot::Kind::kControlSend:
            controls_.push_back(&slot);
            break;
        case Slot::Kind::kReceive:
        case Slot::Kind::kSend:
            receive_again(slot);
            break;
    }
}

void Responder::turn(double now) {
    now_ = now;
    if (ending_ == 0) [[likely]] {
        return;
    }
    for (auto& [index, peer] : peers_) {
        // Long messages may end after the bye that was sent behind them.
        if (peer.ending && (peer.received >= peer.bye.messages || now > peer.deadline)) {
            close_account(index, peer);
        }
    }
}

void Responder::close_account(tw_addr index, Peer& peer) {
    peer.ending = false;
    peer.ended = true;
    --ending_;
    peer.wrong = peer.wrong || peer.received != peer.bye.messages ||
                 peer.received_bytes != peer.bye.bytes || peer.digest != peer.bye.digest;
    send_report(index, peer);
}

void Responder::send_report(tw_addr index, const Peer& peer) {
    Control report;
    report.kind = ControlKind::kReport;
    report.run = peer.run;
    report.messages = peer.received;
    report.bytes = peer.received_bytes;
    report.digest = peer.digest;
    report.mismatches = peer.mismatches;
    answer(index, report);
}

// A generator that goes on learns that nobody listens any more.
bool Responder::finish(double now) {
    turn(now);
    if (ending_ != 0) {
        return false;
    }
    for (auto& [index, peer] : peers_) {
        if (!peer.ended) {
            peer.ended = true;
            peer.unfinished = true;
            send_report(index, peer);
        }
    }
    return true;
}

void Responder::report(TagReport* report) const {
    for (const auto& [index, peer] : peers_) {
        const bool wrong = peer.wrong || peer.mismatches != 0;
        const char* state = wrong             ? "wrong"
                            : peer.unfinished ? "unfinished"
                            : peer.ended      ? "done"
                            : peer.ending     ? "ending"
                                              : "running";
        report->peers.push_back({address_text(peer.address), fmt::format("taggen {}", state),
                                 peer.sent, peer.sent_bytes, peer.received, peer.received_bytes,
                                 peer.mismatches, peer.errors});
        report->right = report->right && !wrong;
    }
    report->strangers = strangers_;
}

}  // namespace

std::unique_ptr<TagRole> make_responder(TagEndpoint& endpoint, const TagOptions& options,
                                        TagMode mode) {
    return std::make_unique<Responder>(endpoint, options, mode);
}

}  // namespace tagwire::testpmd
