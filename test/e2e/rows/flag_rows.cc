// SPDX-License-Identifier: BSD-3-Clause
// When operations complete, and keys: T11, T14, T15, T20.
#include "test/e2e/rows/rows.h"

namespace tagwire::rows {

namespace {

constexpr std::chrono::milliseconds kAWhile{30};

// The context of each completion is the tag.
void send(Side& side, Endpoint& ep, int to, uint64_t tag, size_t length, uint64_t flags) {
    std::string& bytes = side.keep(pattern(tag, length));
    const iovec iov{bytes.data(), bytes.size()};
    const tw_msg_tagged message{&iov, 1, side.peer(ep, to), tag, 0, reinterpret_cast<void*>(tag),
                                0};
    CALL(tw_tsendmsg(ep.ep, &message, flags));
}

uint64_t tag_of(const tw_cq_entry& entry) {
    return reinterpret_cast<uint64_t>(entry.context);
}

bool is_there(Endpoint& ep, uint64_t tag) {
    const tw_msg_tagged message{nullptr, 0, TW_ADDR_UNSPEC, tag, 0, nullptr, 0};
    CALL(tw_trecvmsg(ep.ep, &message, TW_PEEK));
    return ep.received().error == 0;
}

void wait_for(Side& side, Endpoint& ep, uint64_t tag) {
    side.until("a message that can be seen", [&] { return is_there(ep, tag); });
}

void take(Side& side, Endpoint& ep, uint64_t tag, size_t length) {
    std::string& buffer = side.buffer(length);
    CALL(tw_trecv(ep.ep, buffer.data(), length, TW_ADDR_UNSPEC, tag, 0, nullptr));
    EXPECT_IS(ep.received_well().length, length);
    EXPECT(buffer == pattern(tag, length));
}

}  // namespace

void selective_completion(Side& side) {
    Endpoint& ep = side.open(0, {.cq_flags = TW_SELECTIVE_COMPLETION});
    if (!side.server()) {
        side.meet();
        send(side, ep, 0, 1, 8, 0);
        send(side, ep, 0, 2, 8, TW_COMPLETION);
        send(side, ep, 0, 3, 8, 0);
        const tw_addr nobody = side.peer(ep, 7);  // no such endpoint there
        EXPECT_IS(tag_of(ep.sent_well()), 2u);
        side.until("three sends", [&] { return tw_cntr_read(ep.sends) == 3; });
        CALL(tw_tsend(ep.ep, "x", 1, nobody, 4, reinterpret_cast<void*>(4)));
        const Done done = ep.sent();
        EXPECT_IS(tag_of(done.entry), 4u);
        EXPECT_IS(done.error, ECONNREFUSED);
        EXPECT_IS(tw_cntr_readerr(ep.sends), 1u);
        EXPECT(ep.is_quiet());
        side.saw("1 of 3 sends and 1 of 2 receives, the flagged ones, and both errors");
        return;
    }
    std::string& buffer = side.buffer(20);
    for (uint64_t tag = 1; tag <= 3; ++tag) {
        const size_t room = tag == 3 ? 4 : 8;  // the third is truncated
        const iovec iov{buffer.data(), room};
        const tw_msg_tagged message{&iov, 1, TW_ADDR_UNSPEC, tag, 0, reinterpret_cast<void*>(tag),
                                    0};
        CALL(tw_trecvmsg(ep.ep, &message, tag == 2 ? TW_COMPLETION : 0));
    }
    side.meet();
    EXPECT_IS(tag_of(ep.received_well()), 2u);
    const Done done = ep.received();
    EXPECT_IS(tag_of(done.entry), 3u);
    EXPECT_IS(done.error, TW_ETRUNC);
    EXPECT_IS(tw_cntr_read(ep.receives), 2u);
    EXPECT(ep.is_quiet());
}

// Tags: 1 inject, 2 transmit, 3 delivery, 4 match and received, 5 match and discarded.
void completion_levels(Side& side) {
    Endpoint& ep = side.open();
    constexpr size_t kLength = 100;
    if (side.server()) {
        wait_for(side, ep, 9);
        take(side, ep, 9, 1);
        side.meet();
        side.meet_standing_still();  // 1: nobody answers
        side.meet();                 // 2: the worker runs, no receive is there
        take(side, ep, 4, kLength);
        side.meet();  // 3: one was matched
        const tw_msg_tagged message{nullptr, 0, TW_ADDR_UNSPEC, 5, 0, nullptr, 0};
        CALL(tw_trecvmsg(ep.ep, &message, TW_PEEK | TW_DISCARD));
        EXPECT_IS(ep.received_well().tag, 5u);
        side.meet();  // 4: one was discarded
        for (uint64_t tag = 1; tag <= 3; ++tag) {
            take(side, ep, tag, kLength);
        }
        return;
    }
    send(side, ep, 0, 9, 1, TW_TRANSMIT_COMPLETE);  // sets the session up
    ep.sent_well();
    side.meet();
    send(side, ep, 0, 1, kLength, TW_INJECT | TW_INJECT_COMPLETE);
    send(side, ep, 0, 2, kLength, TW_TRANSMIT_COMPLETE);
    send(side, ep, 0, 3, kLength, TW_DELIVERY_COMPLETE);
    send(side, ep, 0, 4, kLength, TW_MATCH_COMPLETE);
    send(side, ep, 0, 5, kLength, TW_MATCH_COMPLETE);
    EXPECT_IS(tag_of(ep.sent_well()), 1u);
    side.turn_for(kAWhile);
    EXPECT(ep.is_quiet());
    side.meet();  // 1
    const uint64_t second = tag_of(ep.sent_well());
    const uint64_t third = tag_of(ep.sent_well());
    EXPECT_IS(second + third, 5u);
    EXPECT(second == 2 || second == 3);
    side.turn_for(kAWhile);
    EXPECT(ep.is_quiet());
    side.meet();  // 2
    EXPECT_IS(tag_of(ep.sent_well()), 4u);
    side.turn_for(kAWhile);
    EXPECT(ep.is_quiet());
    side.meet();  // 3
    EXPECT_IS(tag_of(ep.sent_well()), 5u);
    side.meet();  // 4
    side.saw(
        "with the receiver at a stop INJECT only, then TRANSMIT and DELIVERY, MATCH at the "
        "receive and at the discard");
}

void fences(Side& side) {
    Endpoint& ep = side.open(0);
    Endpoint* other = side.server() ? &side.open(1) : nullptr;
    constexpr size_t kLarge = 1 << 20;
    if (!side.server()) {
        side.meet();
        send(side, ep, 0, 1, kLarge, 0);    // waits for its receive
        send(side, ep, 0, 2, 8, TW_FENCE);  // waits for it
        send(side, ep, 0, 3, 8, 0);         // and so does this
        send(side, ep, 1, 4, 8, 0);         // another peer
        EXPECT_IS(tag_of(ep.sent_well()), 4u);
        side.meet();
        EXPECT(ep.is_quiet());
        side.meet();
        for (uint64_t tag = 1; tag <= 3; ++tag) {
            EXPECT_IS(tag_of(ep.sent_well()), tag);
        }
        return;
    }
    side.meet();
    wait_for(side, *other, 4);
    wait_for(side, ep, 1);
    side.meet();
    side.turn_for(kAWhile);
    EXPECT(!is_there(ep, 2));
    EXPECT(!is_there(ep, 3));
    side.meet();
    take(side, ep, 1, kLarge);
    wait_for(side, ep, 2);
    wait_for(side, ep, 3);
    take(side, *other, 4, 8);
    take(side, ep, 2, 8);
    take(side, ep, 3, 8);
    side.saw(
        "behind an unmatched 1 MiB neither the fenced message nor the next one came; another "
        "peer's did");
}

void authorization_keys(Side& side) {
    Endpoint& ep = side.open(0, {.key = "red"});
    std::string& buffer = side.buffer(16);
    if (!side.server()) {
        Endpoint& wrong = side.open(1, {.key = "guess"});
        Endpoint& none = side.open(2);
        Endpoint& blue = side.open(3, {.key = "blue"});
        side.meet();
        for (Endpoint* refused : {&wrong, &none}) {
            send(side, *refused, 0, 1, 8, 0);
            const Done done = refused->sent();
            EXPECT_IS(done.error, EKEYREJECTED);
            side.saw("refused: " + done.text);
        }
        side.meet();
        send(side, ep, 0, 2, 8, 0);
        send(side, blue, 0, 3, 8, 0);
        ep.sent_well();
        blue.sent_well();
        return;
    }
    // Two keys: the endpoint's own, and one of the address vector's.
    tw_addr blue = 0;
    CALL(tw_av_insert_auth_key(ep.av, "blue", 4, &blue));
    const uint64_t refused = side.stat("drop_refused_key");
    const uint64_t messages = side.stat("rx_messages");
    const iovec iov{buffer.data(), 8};
    const tw_msg_tagged by_key{&iov, 1, blue, 0, ~0ull, &blue, 0};
    CALL(tw_trecvmsg(ep.ep, &by_key, TW_AUTH_KEY));
    CALL(tw_trecv(ep.ep, buffer.data() + 8, 8, TW_ADDR_UNSPEC, 0, ~0ull, nullptr));
    side.meet();
    side.meet();
    // A lost answer makes a peer ask again.
    EXPECT(side.stat("drop_refused_key") - refused >= 2);
    EXPECT_IS(side.stat("rx_messages"), messages);
    EXPECT(buffer == std::string(16, '.'));
    for (int i = 0; i < 2; ++i) {
        const tw_cq_entry entry = ep.received_well();
        EXPECT_IS(entry.context == &blue, entry.tag == 3);
    }
    EXPECT(buffer == pattern(3, 8) + pattern(2, 8));
    side.saw("the right keys got through, a receive by key took that key's message");
}

}  // namespace tagwire::rows
