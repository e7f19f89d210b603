// SPDX-License-Identifier: BSD-3-Clause
// What tag matching means, as plainly as it can be said: two lists, searched from the front.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "lib/match/types.h"

namespace tagwire::match::test {

class Oracle {
  public:
    struct Receive {
        Slot slot;
        uint64_t tag;
        uint64_t ignore;
        uint32_t source;
    };
    struct Message {
        Slot slot;
        uint64_t tag;
        uint32_t source;
    };

    void post(const Receive& receive) { receives_.push_back(receive); }
    void append(const Message& message) { messages_.push_back(message); }

    Slot find_receive(uint64_t tag, uint32_t source) const {
        for (const Receive& receive : receives_) {
            if (matches(receive, tag, source)) {
                return receive.slot;
            }
        }
        return kNone;
    }

    Slot find_message(uint64_t tag, uint64_t ignore, uint32_t source) const {
        for (const Message& message : messages_) {
            if (matches({kNone, tag, ignore, source}, message.tag, message.source)) {
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

    const std::list<Receive>& receives() const { return receives_; }
    const std::list<Message>& messages() const { return messages_; }

  private:
    static bool matches(const Receive& receive, uint64_t tag, uint32_t source) {
        return (tag & ~receive.ignore) == (receive.tag & ~receive.ignore) &&
               (receive.source == kAnySource || receive.source == source);
    }

    std::list<Receive> receives_;
    std::list<Message> messages_;
};

}  // namespace tagwire::match::test
