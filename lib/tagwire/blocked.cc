// SPDX-License-Identifier: BSD-3-Clause
// A multi-receive needs an entry in the completion queue for each message. When there
// is none, messages wait here unmatched, and all later ones behind them, so that no
// message overtakes another. Receives are refused meanwhile.
#include <cassert>

#include "lib/tagwire/endpoint.h"

namespace tagwire {

using transport::IncomingMessage;

void Endpoint::block(IncomingMessage& message, bool first) noexcept {
    UnexpectedMessage* entry = worker_.unexpected().acquire();
    assert(entry != nullptr);
    entry->endpoint = this;
    entry->message = &message;
    entry->state = UnexpectedMessage::State::kBlocked;
    transport::user_of(message) = entry;
    entry->previous = first ? nullptr : blocked_last_;
    entry->next = first ? blocked_ : nullptr;
    (entry->previous != nullptr ? entry->previous->next : blocked_) = entry;
    (entry->next != nullptr ? entry->next->previous : blocked_last_) = entry;
}

void Endpoint::unlink_blocked(UnexpectedMessage& entry) noexcept {
    (entry.previous != nullptr ? entry.previous->next : blocked_) = entry.next;
    (entry.next != nullptr ? entry.next->previous : blocked_last_) = entry.previous;
}

// Unexpected messages wait for this multi-receive.
void Endpoint::make_hungry(ReceiveRequest& multi, bool first) noexcept {
    ReceiveRequest** at = &hungry_;
    while (!first && *at != nullptr) {
        at = &(*at)->next_hungry;
    }
    multi.next_hungry = *at;
    *at = &multi;
    multi.hungry = true;
}

void Endpoint::unlink_hungry(ReceiveRequest& multi) noexcept {
    ReceiveRequest** at = &hungry_;
    while (*at != &multi) {
        at = &(*at)->next_hungry;
    }
    *at = multi.next_hungry;
    multi.hungry = false;
}

void Endpoint::resume() noexcept {
    while (hungry_ != nullptr) {
        ReceiveRequest& multi = *hungry_;
        unlink_hungry(multi);
        if (!fill_from_unexpected(multi)) {
            make_hungry(multi, true);
            return;
        }
    }
    while (blocked_ != nullptr) {
        UnexpectedMessage& entry = *blocked_;
        unlink_blocked(entry);
        IncomingMessage& message = take(entry);
        if (!match(message)) {
            block(message, true);
            return;
        }
    }
}

}  // namespace tagwire
