// SPDX-License-Identifier: BSD-3-Clause
#include "test/tagwire/traffic.h"

#include <algorithm>

namespace tagwire::test {

// Bits 0, 7, 50 and 63.
uint64_t Traffic::matched_bits() {
    const uint64_t random = random_();
    return (random & 1) | (random & 2) << 6 | (random & 4) << 48 | (random & 8) << 60;
}

void Traffic::send_one() {
    // Mostly small, some of several packets, a few beyond the eager window.
    const uint64_t kind = random_() % 100;
    const size_t length = kind < 60   ? random_() % 200
                          : kind < 95 ? random_() % 20'000
                                      : random_() % 200'000;
    const uint64_t tag = next_number_++ << 16 | matched_bits();
    Message& message = messages.emplace_back(Message{tag, pattern(tag, length)});
    ASSERT_EQ(
        tw_tsend(from_.ep, message.payload.data(), length, from_.address_of(to_), tag, &message), 0)
        << tw_last_error();
    from_.wake();
}

void Traffic::receive_one() {
    const uint64_t ignore = kNumberMask | (random_() % 3 == 0 ? 0 : matched_bits());
    Receive& receive =
        receives.emplace_back(Receive{matched_bits(), ignore, std::string(200'000, 'x')});
    const tw_addr source = random_() % 2 == 0 ? TW_ADDR_UNSPEC : to_.address_of(from_);
    ASSERT_EQ(tw_trecv(to_.ep, receive.buffer.data(), receive.buffer.size(), source, receive.tag,
                       ignore, &receive),
              0)
        << tw_last_error();
    to_.wake();
}

void Traffic::receive_any() {
    Receive& receive = receives.emplace_back(Receive{0, UINT64_MAX, std::string(200'000, 'x')});
    ASSERT_EQ(tw_trecv(to_.ep, receive.buffer.data(), receive.buffer.size(), TW_ADDR_UNSPEC, 0,
                       UINT64_MAX, &receive),
              0)
        << tw_last_error();
    to_.wake();
}

namespace {

// Takes the entries whose context is one of `operations`.
template <typename Operations, typename Entries, typename Take>
void collect(Operations& operations, Entries& entries, Take take) {
    std::map<const void*, typename Operations::value_type*> by_context;
    for (auto& operation : operations) {
        by_context[&operation] = &operation;
    }
    std::erase_if(entries, [&](const auto& entry) {
        const tw_cq_entry* inner = nullptr;
        if constexpr (std::is_same_v<std::decay_t<decltype(entry)>, tw_cq_error>) {
            inner = &entry.entry;
        } else {
            inner = &entry;
        }
        const auto found = by_context.find(inner->context);
        if (found == by_context.end()) {
            return false;
        }
        take(*found->second, entry);
        return true;
    });
}

}  // namespace

void Traffic::collect_sends() {
    collect(messages, from_.sent, [](Message& message, const tw_cq_entry&) { ++message.ended; });
    collect(messages, from_.errors, [](Message& message, const tw_cq_error& error) {
        ++message.ended;
        message.error = error.error;
    });
}

void Traffic::collect_receives() {
    collect(receives, to_.received, [](Receive& receive, const tw_cq_entry& entry) {
        ++receive.ended;
        receive.took = entry.tag;
        receive.buffer.resize(entry.length);
    });
    collect(receives, to_.errors, [](Receive& receive, const tw_cq_error& error) {
        ++receive.ended;
        receive.error = error.error;
        receive.took = error.entry.tag;
    });
}

size_t Traffic::sends_pending() const {
    return static_cast<size_t>(std::count_if(messages.begin(), messages.end(),
                                             [](const Message& m) { return m.ended == 0; }));
}

size_t Traffic::received() const {
    return static_cast<size_t>(
        std::count_if(receives.begin(), receives.end(),
                      [](const Receive& r) { return r.ended != 0 && r.error == 0; }));
}

const Message* Traffic::find(uint64_t tag) const {
    const uint64_t number = (tag & kNumberMask) >> 16;
    const uint64_t first = messages.empty() ? 0 : messages.front().number();
    return number < first || number - first >= messages.size() ? nullptr
                                                               : &messages[number - first];
}

void Traffic::expect_contents() const {
    std::map<uint64_t, int> taken;
    for (const Receive& receive : receives) {
        ASSERT_LE(receive.ended, 1) << "a receive ended twice";
        if (receive.ended == 0) {
            continue;
        }
        ASSERT_TRUE(receive.matches(receive.took)) << "a receive took what it does not match";
        ASSERT_EQ(++taken[receive.took], 1) << "a message was received twice";
        const Message* message = find(receive.took);
        ASSERT_NE(message, nullptr)
            << "a message that nobody sent: tag " << receive.took << " error " << receive.error;
        if (receive.error == 0) {
            ASSERT_TRUE(receive.buffer == message->payload) << "wrong contents";
        }
    }
    for (const Message& message : messages) {
        ASSERT_LE(message.ended, 1) << "a send ended twice";
    }
}

void Traffic::expect_order() const {
    // By position among the receives; deque elements have no order of their own.
    std::map<uint64_t, size_t> taker;  // message number to receive
    for (size_t i = 0; i < receives.size(); ++i) {
        if (receives[i].ended != 0) {
            taker[(receives[i].took & kNumberMask) >> 16] = i;
        }
    }
    for (const auto& [later, receive] : taker) {
        for (const auto& [earlier, other] : taker) {
            if (earlier >= later) {
                break;
            }
            if (receives[receive].matches(find(earlier << 16)->tag)) {
                ASSERT_LT(other, receive) << "message " << later << " overtook " << earlier;
            }
        }
    }
}

void Traffic::expect_oracle() const {
    std::vector<bool> gone(messages.size(), false);
    for (const Receive& receive : receives) {
        const Message* expected = nullptr;
        for (size_t i = 0; i < messages.size() && expected == nullptr; ++i) {
            if (!gone[i] && receive.matches(messages[i].tag)) {
                gone[i] = true;
                expected = &messages[i];
            }
        }
        ASSERT_EQ(receive.ended != 0, expected != nullptr);
        if (expected != nullptr) {
            ASSERT_EQ(receive.took, expected->tag);
        }
    }
}

}  // namespace tagwire::test
