// SPDX-License-Identifier: BSD-3-Clause
// The core sent a message; what goes out next.
#include <algorithm>
#include <cerrno>

#include "lib/transport/engine.h"
#include "lib/transport/frame_parts.h"

namespace tagwire::transport {
namespace {

static_assert(kShortMessage + wire::record_header_size(wire::kRecordTagged) +
                  sizeof(wire::MessagesHeader) + wire::kHeadersInMtu <=
              wire::kMinMtu);

uint32_t record_size(const MessageHeader& header) noexcept {
    if (header.kind > MessageKind::kUntagged) {
        return static_cast<uint32_t>(header.length + sizeof(wire::OperationHeader));
    }
    return static_cast<uint32_t>(header.length) + 2 +
           (header.kind == MessageKind::kTagged ? 8 : 0) + ((header.flags & kHasData) != 0 ? 8 : 0);
}

// A record says no more of its message than these. One for remote memory has the notes of
// its kind without a word.
bool may_be_record(const MessageHeader& header) noexcept {
    if (header.kind <= MessageKind::kUntagged) [[likely]] {
        return (header.flags & ~kHasData) == 0;
    }
    const int needs = header.kind == MessageKind::kPut ? kWantsDeliveryNote : 0;
    return wire::is_remote_memory(header.kind) && header.length <= wire::kOperationLengthMask &&
           (header.flags & ~(kHasData | kWantsAnswer)) == needs;
}

uint8_t awaited_notes(const MessageHeader& header) noexcept {
    return static_cast<uint8_t>(
        ((header.flags & kWantsMatchNote) != 0 ? wire::kGrantMatched : 0) |
        ((header.flags & kWantsDeliveryNote) != 0 ? wire::kGrantDelivered : 0) |
        ((header.flags & kWantsAnswer) != 0 ? SendOperation::kAnswer : 0));
}

bool is_answer(MessageKind kind) noexcept {
    return kind == MessageKind::kGetReply || kind == MessageKind::kAtomicReply;
}

uint64_t total_of(const SendOperation& operation) noexcept {
    uint64_t total = 0;
    for (uint32_t i = 0; i < operation.iov_count; ++i) {
        total += operation.iov[i].iov_len;
    }
    return total;
}

}  // namespace

int Engine::send_short(PeerId peer, SendOperation& operation) noexcept {
    Session& s = sessions_[peer];
    if (s.state != SessionState::kEstablished) [[unlikely]] {
        return send(peer, operation);
    }
    auto& state = operation.state;
    state.record_size = static_cast<uint32_t>(operation.header.length) +
                        wire::record_header_size(wire::kRecordTagged);
    state.plain = true;
    state.indexed = state.transfers = state.marker = false;
    state.message_id = s.next_message_id++;
    count(Counter::tx_messages);
    if (s.oldest == nullptr) {
        watch_and_append(s, operation);
        return 0;
    }
    append_behind(s, operation);
    return 0;
}

void Engine::watch_and_append(Session& s, SendOperation& operation) noexcept {
    watch(s, s.busy());
    append(s, operation);
}

int Engine::send(PeerId peer, SendOperation& operation) noexcept {
    if (peer >= peers_) {
        return -EINVAL;
    }
    if (operation.iov_count > kMaxIov || total_of(operation) != operation.header.length) {
        return -EINVAL;
    }
    if (operation.header.length > kMaxMessageSize) {
        return -EMSGSIZE;
    }
    Session& s = sessions_[peer];
    if (s.state == SessionState::kClosing) {
        return -EAGAIN;
    }
    if (s.oldest == nullptr) {
        watch(s, s.busy());
    }
    if (s.state == SessionState::kClosed) {
        start_session(s);
    }
    prepare(operation);
    operation.state.message_id = s.next_message_id++;
    append(s, operation);
    count(Counter::tx_messages);
    return 0;
}

int Engine::mark(PeerId peer, SendOperation& operation) noexcept {
    Session& s = sessions_[peer];
    if (s.oldest == nullptr) {
        return 1;
    }
    operation.state = {};
    operation.state.marker = true;
    operation.state.record_size = UINT32_MAX;
    append(s, operation);
    return 0;
}

void Engine::prepare(SendOperation& operation) noexcept {
    const bool record = may_be_record(operation.header);
    operation.state = {};
    operation.state.peer = kNoPeer;
    operation.state.end = static_cast<uint32_t>(operation.header.length);
    operation.state.record_size = record && operation.header.length <= wire::kMaxRecordPayload
                                      ? record_size(operation.header)
                                      : UINT32_MAX;
    operation.state.awaited = awaited_notes(operation.header);
}

void Engine::transmit() noexcept {
    ready_.keep_if([this](PeerId id) {
        Session& s = sessions_[id];
        // It stays when the NIC or the pool stopped us.
        s.ready = s.state == SessionState::kEstablished && transmit_session(s);
        return s.ready;
    });
}

// True if there is more to send than the NIC or the pool takes now.
bool Engine::transmit_session(Session& s) noexcept {
    const uint64_t first = s.next_psn;
    Step step = Step::kSent;
    while (step == Step::kSent && s.has_to_send()) {
        step = has_tx_room() ? transmit_next(s) : Step::kNoBuffer;
    }
    if (s.next_psn != first && !s.tail_probed && s.backoff == 0) {
        arm_loss_timer(s);
    }
    return step == Step::kNoBuffer;
}

Engine::Step Engine::transmit_next(Session& s) noexcept {
    if (s.in_flight >= s.congestion.window()) {
        return Step::kNothing;
    }
    if (s.lost > 0) [[unlikely]] {
        return transmit_lost(s);
    }
    if (s.next_psn - s.una >= s.window) {
        return Step::kNothing;
    }
    if (s.grants == nullptr) [[likely]] {
        return transmit_new(s);
    }
    // An answer may be among what is new: it does not wait for the word that its question came.
    const Step step = s.grant_turn ? Step::kNothing : transmit_new(s);
    s.grant_turn = step == Step::kSent;
    return step == Step::kNothing ? transmit_grant(s) : step;
}

Engine::Step Engine::transmit_lost(Session& s) noexcept {
    for (uint64_t psn = s.una; psn < s.next_psn; ++psn) {
        TxSlot& slot = s.slot(psn);
        if (slot.state != SlotState::kLost) {
            continue;
        }
        if (!emit(s, slot, psn, 0)) {
            return Step::kNoBuffer;
        }
        slot.state = SlotState::kInFlight;
        slot.resent = true;
        --s.lost;
        ++s.in_flight;
        count(Counter::retransmits);
        return Step::kSent;
    }
    return Step::kNothing;
}

Engine::Step Engine::transmit_grant(Session& s) noexcept {
    IncomingMessage* message = s.grants;
    TxSlot packet{};
    packet.type = wire::PacketType::kGrant;
    packet.message_id = message->id;
    packet.offset = message->granted;
    packet.grant_flags = static_cast<uint8_t>(message->grant_flags);
    packet.length =
        (packet.grant_flags & wire::kGrantRefused) != 0 ? message->refusal : uint16_t{0};
    const uint32_t count = delivered_in_a_row(*message);
    if (count > 1) {
        packet.offset = count;
        packet.grant_flags |= wire::kGrantRange;
    }
    if (!emit_new(s, packet)) {
        return Step::kNoBuffer;
    }
    for (uint32_t left = count; left > 0; --left) {
        message = s.grants;
        s.grants = message->next_grant;
        message->clear(kGrantQueued);
        if (message->is(kFreeAfterGrant)) {
            free_message(message);
        }
    }
    return Step::kSent;
}

// Messages that one note says it for.
uint32_t Engine::delivered_in_a_row(const IncomingMessage& first) noexcept {
    const auto plain = [](const IncomingMessage& message) {
        return message.grant_flags == wire::kGrantDelivered && message.granted == 0;
    };
    uint32_t count = 1;
    if (plain(first)) {
        const IncomingMessage* next = first.next_grant;
        for (; next != nullptr && next->id == first.id + count && plain(*next) &&
               count < wire::kMaxGrantRange;
             next = next->next_grant) {
            ++count;
        }
    }
    return count;
}

// New messages and transfers take turns, so that neither waits for all of the other.
Engine::Step Engine::transmit_new(Session& s) noexcept {
    while (s.unsent != nullptr && s.unsent->state.marker)
        [[unlikely]] {
            s.unsent = s.unsent->state.next;
        }
    if (s.transfers != nullptr && (s.transfer_turn || s.unsent == nullptr)) [[unlikely]] {
        s.transfer_turn = false;
        return transmit_transfer(s);
    }
    if (s.unsent == nullptr) {
        return Step::kNothing;
    }
    s.transfer_turn = true;
    if (static_cast<int32_t>(s.eager_credit - s.eager_sent) <= 0) [[unlikely]] {
        held_back(s);
        return s.transfers != nullptr ? transmit_transfer(s) : Step::kNothing;
    }
    if (s.unsent->state.record_size <= s.record_room) [[likely]] {
        return s.unsent->header.kind <= MessageKind::kUntagged ? transmit_records(s)
                                                               : transmit_operations(s);
    }
    if ((s.unsent->header.flags & kFence) != 0 && s.unsent->state.previous != nullptr)
        [[unlikely]] {
        if (answer_before_fence(s)) {
            return transmit_new(s);
        }
        return s.transfers != nullptr ? transmit_transfer(s) : Step::kNothing;
    }
    return transmit_eager_part(s, *s.unsent);
}

// A fence holds back what begins here. An answer to the peer does not wait for it: the peer may
// wait for that with what the fence waits for. The first one behind the fence goes before it.
bool Engine::answer_before_fence(Session& s) noexcept {
    SendOperation* const fence = s.unsent;
    SendOperation* answer = fence->state.next;
    while (answer != nullptr && (answer->state.marker || !is_answer(answer->header.kind))) {
        answer = answer->state.next;
    }
    if (answer == nullptr) {
        return false;
    }
    // None of these has left: their ids still follow their places.
    SendOperation* const last = answer->state.previous;
    const uint32_t first_id = fence->state.message_id;
    unlink_send(s, *answer);
    answer->state.previous = fence->state.previous;
    answer->state.next = fence;
    fence->state.previous->state.next = answer;
    fence->state.previous = answer;
    s.unsent = answer;
    uint32_t id = first_id;
    for (SendOperation* each = answer;; each = each->state.next) {
        if (!each->state.marker) {
            each->state.message_id = id++;
        }
        if (each == last) {
            return true;
        }
    }
}

// As many small messages as the frame and the credit hold.
Engine::Step Engine::transmit_records(Session& s) noexcept {
    rte_mbuf* packet = new_frame();
    if (packet == nullptr) [[unlikely]] {
        return Step::kNoBuffer;
    }
    SendOperation* operation = s.unsent;
    const uint64_t psn = s.next_psn++;
    TxSlot& slot = s.slot(psn);
    slot.operation = operation;
    slot.sent_ns = now_;
    slot.message_id = operation->state.message_id;
    slot.type = wire::PacketType::kMessages;
    slot.state = SlotState::kInFlight;
    slot.resent = false;

    const uint32_t credit = s.eager_credit - s.eager_sent;
    uint8_t* at = begin_frame(s, packet, wire::PacketType::kMessages, psn, 0);
    *reinterpret_cast<wire::MessagesHeader*>(at) = {slot.message_id};
    at += sizeof(wire::MessagesHeader);
    uint32_t room = s.record_room;
    uint32_t messages = 0;
    do {
        room -= operation->state.record_size;
        ++messages;
        at = write_record(at, *operation);
        operation = operation->state.next;
    } while (operation != nullptr && operation->state.record_size <= room && messages < credit &&
             (operation->state.plain || operation->header.kind <= MessageKind::kUntagged));
    finish_frame(s, packet, at);
    push_frame(s, packet);

    slot.count = static_cast<uint16_t>(messages);
    ++s.in_flight;
    s.eager_sent += messages;
    s.unsent = operation;
    count(Counter::tx_data_frames);
    return Step::kSent;
}

// The same for remote memory. Each of these messages ends by itself, most with a note or an answer.
Engine::Step Engine::transmit_operations(Session& s) noexcept {
    const uint32_t credit = s.eager_credit - s.eager_sent;
    uint32_t room = s.record_room;
    SendOperation* operation = s.unsent;
    uint32_t messages = 0;
    while (operation != nullptr && messages < credit && operation->state.record_size <= room &&
           wire::is_remote_memory(operation->header.kind)) {
        room -= operation->state.record_size;
        ++messages;
        operation = operation->state.next;
    }
    TxSlot packet{};
    packet.type = wire::PacketType::kOperations;
    packet.operation = s.unsent;
    packet.message_id = s.unsent->state.message_id;
    packet.count = static_cast<uint16_t>(messages);
    if (!emit_new(s, packet)) {
        return Step::kNoBuffer;
    }
    for (SendOperation* sent = s.unsent; sent != operation; sent = sent->state.next) {
        sent->state.sent = sent->state.end;
        sent->state.unacked_packets = 1;
        if (sent->state.awaited != 0) {
            sent->state.peer = s.id;
            outgoing_.insert(sent);
        }
    }
    s.eager_sent += messages;
    s.unsent = operation;
    return Step::kSent;
}

// Its eager part would leave no credit for another like it, or not the quarter of the most credit
// that there was. That quarter is for the beginnings of later messages: a program may post no
// receive before the last of them is there, and then nothing that is held here gives credit back.
bool Engine::needs_announcement(Session& s, uint32_t end) noexcept {
    const uint32_t first = s.payload_room - static_cast<uint32_t>(sizeof(wire::FirstHeader));
    const uint32_t each = s.payload_room - static_cast<uint32_t>(sizeof(wire::FragmentHeader));
    const uint32_t fragments = end <= first ? 0 : (end - first + each - 1) / each;
    const uint32_t credit = s.eager_credit - s.eager_sent;
    s.most_credit = std::max(s.most_credit, credit);
    const uint32_t units = fragments + 1;
    return fragments != 0 && units + std::max(units, s.most_credit / 4) > credit;
}

// One packet of a message that is no record, of its part that may be sent before it is accepted.
Engine::Step Engine::transmit_eager_part(Session& s, SendOperation& operation) noexcept {
    auto& state = operation.state;
    const uint32_t end = std::min(state.end, s.eager_window);
    // Little credit: it is kept for the beginnings of later messages, which a receive may
    // wait for. This one's rest is fetched when it was matched.
    state.announces = state.announces || (state.sent == 0 && needs_announcement(s, end));
    if (config_.lender != nullptr && state.sent == 0) {
        borrow(s, operation);
    }
    if (!transmit_fragment(s, operation, end)) {
        return Step::kNoBuffer;
    }
    ++s.eager_sent;
    if (state.announces) {
        count(Counter::tx_announced);
    }
    if (!state.indexed && (state.end > s.eager_window || state.awaited != 0 || state.announces)) {
        state.peer = s.id;
        outgoing_.insert(&operation);
    }
    if (state.sent == end || state.announces) {
        s.unsent = state.next;
        if (state.sent < std::min(state.granted, state.end)) {
            begin_transfer(s, operation);
        }
    }
    return Step::kSent;
}

void Engine::begin_transfer(Session& s, SendOperation& operation) noexcept {
    operation.state.transfers = true;
    operation.state.next_transfer = nullptr;
    (s.transfers != nullptr ? s.transfers_last->state.next_transfer : s.transfers) = &operation;
    s.transfers_last = &operation;
}

Engine::Step Engine::transmit_transfer(Session& s) noexcept {
    SendOperation& operation = *s.transfers;
    const uint32_t end = std::min(operation.state.granted, operation.state.end);
    if (!transmit_fragment(s, operation, end)) {
        return Step::kNoBuffer;
    }
    if (operation.state.sent == end) {
        leave_transfers(s, operation);
    }
    return Step::kSent;
}

bool Engine::transmit_fragment(Session& s, SendOperation& operation, uint32_t end) noexcept {
    auto& state = operation.state;
    const bool first = state.sent == 0;
    const uint32_t room =
        s.payload_room -
        static_cast<uint32_t>(first ? sizeof(wire::FirstHeader) : sizeof(wire::FragmentHeader));
    TxSlot packet{};
    packet.type = first ? wire::PacketType::kFirst : wire::PacketType::kFragment;
    packet.operation = &operation;
    packet.message_id = state.message_id;
    packet.offset = state.sent;
    packet.length = static_cast<uint16_t>(std::min(room, end - state.sent));
    if (!emit_new(s, packet, state.loan != nullptr)) {
        return false;
    }
    state.sent += packet.length;
    ++state.unacked_packets;
    return true;
}

bool Engine::emit_new(Session& s, const TxSlot& packet, bool lent) noexcept {
    TxSlot& slot = s.slot(s.next_psn);
    slot = packet;
    slot.state = SlotState::kInFlight;
    if (!(lent ? emit_lent(s, slot, s.next_psn) : emit(s, slot, s.next_psn, 0))) {
        slot.state = SlotState::kFree;
        return false;
    }
    ++s.next_psn;
    ++s.in_flight;
    count(Counter::tx_data_frames);
    return true;
}

// The receiver has no room: it will say when it has, and we ask in case that is lost.
void Engine::held_back(Session& s) noexcept {
    count(Counter::credit_stalls);
    if (s.persist_deadline == kNever) {
        s.persist_interval = std::max(2 * s.rtt.smoothed(), config_.rto_min_ns);
        s.persist_deadline = now_ + s.persist_interval;
        wake(s, s.persist_deadline);
    }
}

// kSoon waits for data to ride on: a program that found what came in one turn, and looks in a
// second whether there is more, answers in the third.
void Engine::transmit_acks() noexcept {
    constexpr uint32_t kAckTurns = 2;
    acks_due_ = false;
    acks_.keep_if([this](PeerId id) {
        Session& s = sessions_[id];
        if (s.ack_need == AckNeed::kSoon && turn_ - s.ack_turn < kAckTurns) {
            return true;
        }
        const bool wanted = s.ack_need != AckNeed::kNone && s.state >= SessionState::kEstablished;
        s.ack_listed = wanted && !send_ack(s);
        s.ack_need = s.ack_listed ? AckNeed::kNow : AckNeed::kNone;
        return s.ack_listed;
    });
}

}  // namespace tagwire::transport
