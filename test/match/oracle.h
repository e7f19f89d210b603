// SPDX-License-Identifier: BSD-3-Clause
// What tag matching means, as plainly as it can be said: lists, searched from the front.
#pragma once

#include <cstdint>
#include <list>

#include "lib/match/types.h"

namespace tagwire::match::test {

class Oracle {
  public:
    struct Receive {
        Slot slot;
        uint64_t tag;
        uint64_t ignore;
        uint32_t source;
        bool stays = false;
    };
    struct Message {
        Slot slot;
        uint64_t tag;
        uint32_t source;
        uint32_t key = kNoKey;
    };

    void post(const Receive& receive) { receives_.push_back(receive); }
    void append(const Message& message) { messages_.push_back(message); }

    const Receive* find_receive(const Message& message) const {
        for (const Receive& receive : receives_) {
            if (matches(receive, message)) {
                return &receive;
            }
        }
        return nullptr;
    }

    Slot find_message(const Receive& receive) const {
        for (const Message& message : messages_) {
            if (matches(receive, message)) {
                return message.slot;
            }
        }
        return kNone;
    }

    void remove_receive(Slot slot) {
        receives_.remove_if([slot](const Receive& receive) { return receive.slot == slot; });
    }
    void remove_message(Slot slot) {
        messages_.remove_if([slot](const Message& message) { return message.slot == slot; });
    }

    void claim(Slot slot) {
        remove_message(slot);
        claimed_.push_back(slot);
    }
    void redeem(Slot slot) { claimed_.remove(slot); }

    const std::list<Receive>& receives() const { return receives_; }
    const std::list<Message>& messages() const { return messages_; }
    const std::list<Slot>& claimed() const { return claimed_; }

  private:
    static bool matches(const Receive& receive, const Message& message) {
        return (message.tag & ~receive.ignore) == (receive.tag & ~receive.ignore) &&
               (receive.source == kAnySource || receive.source == message.source ||
                receive.source == message.key);
    }

    std::list<Receive> receives_;
    std::list<Message> messages_;
    std::list<Slot> claimed_;
};

}  // namespace tagwire::match::test
