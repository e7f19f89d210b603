// SPDX-License-Identifier: BSD-3-Clause
// Payload arrived, in any order. Messages come together here and are announced
// in their sender's order.
#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/transport/engine.h"
#include "lib/transport/frame_parts.h"
#include "lib/transport/psn.h"
#include "lib/transport/records.h"
#include "lib/transport/scatter.h"

namespace tagwire::transport {
namespace {

bool has_credit(const Session& s, uint32_t units) noexcept {
    return static_cast<int32_t>(s.eager_received + units - s.eager_allowed) <= 0;
}

// The header of a record for remote memory; returns where its payload begins.
const uint8_t* read_operation(const uint8_t* at, MessageHeader& header) noexcept {
    const auto& record = *reinterpret_cast<const wire::OperationHeader*>(at);
    const uint16_t bits = record.bits;
    header.kind = static_cast<MessageKind>(bits >> wire::kOperationKindShift);
    header.flags =
        static_cast<uint8_t>(((bits & wire::kOperationHasData) != 0 ? kHasData : 0) |
                             (header.kind == MessageKind::kPut ? kWantsDeliveryNote : 0));
    header.tag = record.tag;
    header.data = record.data;
    header.length = bits & wire::kOperationLengthMask;
    return at + sizeof(record);
}

MessageHeader header_of(const wire::FirstHeader& first) noexcept {
    const uint16_t flags = first.flags;
    MessageHeader header;
    header.tag = first.tag;
    header.data = first.data;
    header.length = first.length;
    header.kind = static_cast<MessageKind>(flags & wire::kFirstKindMask);
    header.flags = static_cast<uint8_t>(
        ((flags & wire::kFirstHasData) != 0 ? kHasData : 0) |
        ((flags & wire::kFirstWantsMatchNote) != 0 ? kWantsMatchNote : 0) |
        ((flags & wire::kFirstWantsDeliveryNote) != 0 ? kWantsDeliveryNote : 0));
    return header;
}

void copy_small(uint8_t* to, const uint8_t* from, uint32_t length) noexcept {
    if (length == 8) [[likely]] {
        std::memcpy(to, from, 8);
    } else {
        std::memcpy(to, from, length);
    }
}

}  // namespace

Counter Engine::receive_content(Session& s, rte_mbuf* packet,
                                const wire::FrameView& view) noexcept {
    switch (view.base->type()) {
        case wire::PacketType::kMessages:
            return receive_messages(s, packet, view);
        case wire::PacketType::kOperations:
            return receive_operations(s, packet, view);
        case wire::PacketType::kFirst:
            return receive_first(s, packet, view);
        case wire::PacketType::kFragment:
            return receive_fragment(s, packet, view);
        default:
            receive_grant(s, *reinterpret_cast<const wire::GrantHeader*>(view.payload));
            return Counter::rx_grants;
    }
}

Counter Engine::receive_messages(Session& s, rte_mbuf* packet,
                                 const wire::FrameView& view) noexcept {
    const uint32_t id =
        reinterpret_cast<const wire::MessagesHeader*>(view.payload)->first_message_id;
    const uint32_t records = view.records;
    if (!has_credit(s, records) || messages_.available() < pending_records_ + records ||
        fragments_.available() < pending_records_ + records) [[unlikely]] {
        return before(id, s.announce_next) ? Counter::drop_inconsistent : Counter::drop_over_budget;
    }
    if (id != s.announce_next || s.unannounced != nullptr || !config_.groups_records) [[unlikely]] {
        return line_up_records<false>(s, packet, view);
    }
    take_units(s, records);
    s.announce_next = id + records;
    counters_[Counter::rx_messages] += records;
    pending_records_ += records;
    frame_retained_ = true;
    Event& event = events_.add();
    event.type = EventType::kRecords;
    event.peer = s.id;
    event.count = records;
    event.records = {view.payload + sizeof(wire::MessagesHeader), packet, id};
    return Counter::rx_data;
}

Counter Engine::receive_operations(Session& s, rte_mbuf* packet,
                                   const wire::FrameView& view) noexcept {
    if (!has_credit(s, view.records) || messages_.available() < pending_records_ + view.records ||
        fragments_.available() < pending_records_ + view.records) [[unlikely]] {
        return Counter::drop_over_budget;
    }
    return line_up_records<true>(s, packet, view);
}

// One by one: they came early, or the core wants them so.
template <bool kOperations>
Counter Engine::line_up_records(Session& s, rte_mbuf* packet,
                                const wire::FrameView& view) noexcept {
    const uint32_t first =
        reinterpret_cast<const wire::MessagesHeader*>(view.payload)->first_message_id;
    uint32_t id = first;
    const uint8_t* at = view.payload + sizeof(wire::MessagesHeader);
    const uint8_t* const end = view.payload + view.payload_length;
    if (before(id, s.announce_next)) {
        return Counter::drop_inconsistent;
    }
    take_units(s, view.records);
    for (; at < end; ++id) {
        MessageHeader header;
        const uint8_t* payload = kOperations ? read_operation(at, header) : read_record(at, header);
        at = payload + header.length;
        IncomingMessage* message = new_record(s, id, header, payload, packet);
        if (id == s.announce_next && s.unannounced == nullptr) {
            announce(s, message);
        } else if (!line_up(s, message)) {
            drop_held(*message);
            free_message(message);
            release_units(s, view.records - (id + 1 - first));
            return Counter::drop_inconsistent;
        }
    }
    announce_waiting(s);
    return Counter::rx_data;
}

// Its unit is taken already.
IncomingMessage* Engine::new_record(Session& s, uint32_t id, const MessageHeader& header,
                                    const uint8_t* payload, rte_mbuf* packet) noexcept {
    IncomingMessage* message = new_message(s, id);
    const auto length = static_cast<uint32_t>(header.length);
    message->header = header;
    message->limit = length;
    message->units = 1;
    message->session = static_cast<uint32_t>(s.generation);
    if (length <= kInlinePayload) {
        copy_small(message->inline_payload, payload, length);
        message->received = length;
        message->state = kHeaderKnown | kInline;
    } else {
        message->state = kHeaderKnown;
        hold(*message, packet, payload, 0, length);
    }
    return message;
}

IncomingMessage& Engine::hold_record(const Event& event, uint32_t index,
                                     const MessageHeader& header, const uint8_t* payload) noexcept {
    IncomingMessage* message = new_record(sessions_[event.peer], event.records.first_id + index,
                                          header, payload, event.records.packet);
    message->set(kAnnounced);
    return *message;
}

void Engine::records_done(const Event& event, uint32_t held) noexcept {
    pending_records_ -= event.count;
    if (held != event.count) {
        release_units(sessions_[event.peer], event.count - held);
    }
    free_frame(event.records.packet);  // what holds payload took a reference
}

void Engine::records_taken(Event& event, uint32_t taken, uint32_t held,
                           const uint8_t* next) noexcept {
    pending_records_ -= taken;
    if (held != taken) {
        release_units(sessions_[event.peer], taken - held);
    }
    event.count -= taken;
    event.records.first = next;
    event.records.first_id += taken;
}

Counter Engine::receive_first(Session& s, rte_mbuf* packet, const wire::FrameView& view) noexcept {
    const auto& first = *reinterpret_cast<const wire::FirstHeader*>(view.payload);
    const uint32_t id = first.message_id;
    const uint32_t length = first.length;
    const auto here = static_cast<uint32_t>(view.payload_length - sizeof(wire::FirstHeader));
    if (before(id, s.announce_next)) {
        return Counter::drop_inconsistent;
    }
    IncomingMessage* message = find_assembling(s, id);
    if (message != nullptr &&
        (message->is(kHeaderKnown) || uint64_t{message->received} + here > length)) {
        return Counter::drop_inconsistent;
    }
    if (!has_credit(s, 1) || messages_.available() == 0 || fragments_.available() == 0) {
        return Counter::drop_over_budget;
    }
    take_units(s, 1);
    const bool early_fragments = message != nullptr;
    if (!early_fragments) {
        message = new_message(s, id);
        message->state = 0;
        message->units = 0;
    }
    ++message->units;
    message->header = header_of(first);
    message->limit = length;
    message->session = static_cast<uint32_t>(s.generation);
    message->set(kHeaderKnown);
    if ((first.flags & wire::kFirstAnnounces) != 0) {
        message->set(kAnnouncesOnly);
    }
    if (here > 0) {
        hold(*message, packet, view.payload + sizeof(wire::FirstHeader), 0, here);
    }
    if (!early_fragments) {
        index_.insert(message);
        if (!line_up(s, message)) {
            index_.erase(message);
            drop_held(*message);
            free_message(message);
            return Counter::drop_inconsistent;
        }
    }
    s.assembling = message;
    if (message->complete()) {
        assembled(s, *message);
    }
    announce_waiting(s);
    return Counter::rx_data;
}

Counter Engine::receive_fragment(Session& s, rte_mbuf* packet,
                                 const wire::FrameView& view) noexcept {
    const auto& fragment = *reinterpret_cast<const wire::FragmentHeader*>(view.payload);
    const uint8_t* data = view.payload + sizeof(wire::FragmentHeader);
    const auto length = static_cast<uint32_t>(view.payload_length - sizeof(wire::FragmentHeader));
    const uint32_t id = fragment.message_id;
    const uint32_t offset = fragment.offset;
    IncomingMessage* message = find_assembling(s, id);
    const bool granted = message != nullptr && message->is(kAnnouncesOnly);
    const bool eager = offset < s.eager_window && !granted;
    if (eager && !has_credit(s, 1)) [[unlikely]] {
        return Counter::drop_over_budget;
    }
    if (message == nullptr && before(id, s.announce_next)) {
        if (eager) {
            take_units(s, 1);
            release_units(s, 1);
        }
        return Counter::rx_discarded;
    }
    const bool accepted = message != nullptr && message->is(kAccepted);
    const bool fits = message == nullptr || !message->is(kHeaderKnown) ||
                      uint64_t{offset} + length <= message->header.length;
    if (!fits || (!eager && !accepted)) [[unlikely]] {
        return Counter::drop_inconsistent;
    }
    if (!accepted && (messages_.available() == 0 || fragments_.available() == 0)) [[unlikely]] {
        return Counter::drop_over_budget;
    }
    if (message == nullptr) {
        message = expect_message(s, id);
        if (message == nullptr) {
            return Counter::drop_inconsistent;
        }
    }
    s.assembling = message;
    if (eager) {
        take_units(s, 1);
    }
    if (!accepted) {
        ++message->units;
        hold(*message, packet, data, offset, length);
    } else {
        if (eager) {
            release_units(s, 1);
        }
        deliver(*message, data, offset, length);
    }
    if (message->complete()) {
        assembled(s, *message);
    }
    return Counter::rx_data;
}

void Engine::take_units(Session& s, uint32_t units) noexcept {
    s.eager_received += units;
    s.held_peak = std::max(s.held_peak, s.held());
    held_units_ += units;
    uint64_t& peak = counters_[Counter::held_units_peak];
    peak = std::max<uint64_t>(peak, held_units_);
}

// The caller sets header, limit, units and state.
IncomingMessage* Engine::new_message(Session& s, uint32_t id) noexcept {
    IncomingMessage* message = messages_.take();
    message->user = nullptr;
    message->peer = s.id;
    message->id = id;
    message->received = 0;
    message->fragments = nullptr;
    return message;
}

// A fragment came before the first one: a place for it, with the header unknown.
IncomingMessage* Engine::expect_message(Session& s, uint32_t id) noexcept {
    IncomingMessage* message = new_message(s, id);
    message->header = MessageHeader{};
    message->limit = UINT32_MAX;
    message->units = 0;
    message->state = 0;
    if (!line_up(s, message)) {
        messages_.give(message);
        return nullptr;
    }
    index_.insert(message);
    return message;
}

IncomingMessage* Engine::find_assembling(Session& s, uint32_t id) noexcept {
    if (s.assembling != nullptr && s.assembling->id == id) [[likely]] {
        return s.assembling;
    }
    return index_.find(s.id, id);
}

void Engine::hold(IncomingMessage& message, rte_mbuf* packet, const uint8_t* data, uint32_t offset,
                  uint32_t length) noexcept {
    Fragment* fragment = fragments_.take();
    rte_mbuf_refcnt_update(packet, 1);
    fragment->packet = packet;
    fragment->data = data;
    fragment->offset = offset;
    fragment->length = length;
    fragment->next = message.fragments;
    message.fragments = fragment;
    message.received += length;
}

// Into the user's buffer, as far as it reaches.
void Engine::deliver(IncomingMessage& message, const uint8_t* data, uint32_t offset,
                     uint32_t length) noexcept {
    if (offset < message.limit) {
        const uint32_t wanted = std::min(length, message.limit - offset);
        scatter(message.receive->iov, offset, data, wanted);
        message.received += wanted;
    }
}

// Into the list of messages that wait for earlier ones; false if it is there already.
bool Engine::line_up(Session& s, IncomingMessage* message) noexcept {
    IncomingMessage* after = s.unannounced_last;
    while (after != nullptr && before(message->id, after->id)) {
        after = after->previous;
    }
    if (after != nullptr && after->id == message->id) {
        return false;
    }
    watch(s, s.busy());  // earlier ones are owed
    message->previous = after;
    message->next = after != nullptr ? after->next : s.unannounced;
    (after != nullptr ? after->next : s.unannounced) = message;
    (message->next != nullptr ? message->next->previous : s.unannounced_last) = message;
    return true;
}

void Engine::announce(Session& s, IncomingMessage* message) noexcept {
    message->set(kAnnounced);
    s.announce_next = message->id + 1;
    if (message->is(kIndexed)) {
        list_partial(s, *message);
    }
    count(Counter::rx_messages);
    Event event;
    event.type = EventType::kMessage;
    event.peer = s.id;
    event.message = message;
    events_.push(event);
}

void Engine::announce_waiting(Session& s) noexcept {
    while (s.unannounced != nullptr && s.unannounced->id == s.announce_next &&
           s.unannounced->is(kHeaderKnown)) {
        IncomingMessage* message = s.unannounced;
        s.unannounced = message->next;
        (s.unannounced != nullptr ? s.unannounced->previous : s.unannounced_last) = nullptr;
        announce(s, message);
    }
}

// Every wanted byte is here.
void Engine::assembled(Session& s, IncomingMessage& message) noexcept {
    stop_expecting(s, message);
    if (message.is(kAccepted)) {
        --s.receives;
        answer(s, message, 0, wire::kGrantDelivered);
        finish_receive(message, 0);
    } else if (message.is(kKept)) {
        answer(s, message, 0, wire::kGrantDelivered);
    }
}

}  // namespace tagwire::transport
