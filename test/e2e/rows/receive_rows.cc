// SPDX-License-Identifier: BSD-3-Clause
// How receives end, and messages without receives: T9, T10, T16 to T19.
#include "test/e2e/rows/rows.h"

namespace tagwire::rows {

namespace {

void send(Side& side, Endpoint& ep, uint64_t tag, size_t length, uint64_t data = 0) {
    const std::string& bytes = side.keep(pattern(tag, length));
    CALL(tw_tsenddata(ep.ep, bytes.data(), length, data, side.peer(ep), tag, nullptr));
}

int ask(Endpoint& ep, uint64_t tag, uint64_t ignore, uint64_t flags, void* context = nullptr) {
    const tw_msg_tagged message{nullptr, 0, TW_ADDR_UNSPEC, tag, ignore, context, 0};
    return tw_trecvmsg(ep.ep, &message, flags);
}

// Peeks until the message is here.
tw_cq_entry find(Side& side, Endpoint& ep, uint64_t tag, uint64_t flags, void* context = nullptr) {
    Done done;
    side.until("a message that can be seen", [&] {
        CALL(ask(ep, tag, 0, TW_PEEK | flags, context));
        done = ep.received();
        return done.error == 0;
    });
    return done.entry;
}

bool is_there(Endpoint& ep, uint64_t tag, uint64_t ignore = 0) {
    CALL(ask(ep, tag, ignore, TW_PEEK));
    const Done done = ep.received();
    EXPECT(done.error == 0 || done.error == ENOMSG);
    return done.error == 0;
}

void take(Side& side, Endpoint& ep, uint64_t tag, size_t length) {
    std::string& buffer = side.buffer(length);
    CALL(tw_trecv(ep.ep, buffer.data(), length, TW_ADDR_UNSPEC, tag, 0, nullptr));
    EXPECT_IS(ep.received_well().length, length);
    EXPECT(buffer == pattern(tag, length));
}

}  // namespace

void truncation(Side& side) {
    Endpoint& ep = side.open();
    const std::vector<size_t> sizes{100, 5000, 1'000'000};
    if (!side.server()) {
        side.meet();
        for (const size_t size : sizes) {
            send(side, ep, size, size);
            send(side, ep, size + 1, 50);
        }
        for (size_t i = 0; i < 2 * sizes.size(); ++i) {
            ep.sent_well();
        }
        return;
    }
    constexpr size_t kRoom = 60;
    std::vector<std::string*> buffers;
    for (const size_t size : sizes) {
        for (const size_t length : {kRoom, kRoom}) {
            buffers.push_back(&side.buffer(length + 40));
            CALL(tw_trecv(ep.ep, buffers.back()->data(), length, TW_ADDR_UNSPEC, size, 1, nullptr));
        }
    }
    side.meet();
    size_t truncated = 0;
    for (size_t i = 0; i < 2 * sizes.size(); ++i) {
        const Done done = ep.received();
        const size_t size = done.entry.tag & ~size_t{1};
        const bool next = (done.entry.tag & 1) != 0;
        const size_t place = 2 * (size == 100 ? 0 : size == 5000 ? 1 : 2) + (next ? 1 : 0);
        EXPECT_IS(done.error, next ? 0 : TW_ETRUNC);
        EXPECT_IS(done.entry.length, next ? 50 : kRoom);
        const std::string whole = pattern(done.entry.tag, next ? 50 : size);
        EXPECT(buffers[place]->compare(0, done.entry.length, whole, 0, done.entry.length) == 0);
        EXPECT(buffers[place]->substr(kRoom) == std::string(40, '.'));
        if (!next) {
            EXPECT_IS(done.overflow, size - kRoom);
            EXPECT_IS(done.message_length, size);
            ++truncated;
        }
    }
    EXPECT_IS(truncated, sizes.size());
    side.saw("100 B, 5 kB, 1 MB into 60 B: ETRUNC with the length; the next messages unharmed");
}

void cancellation(Side& side) {
    Endpoint& ep = side.open();
    constexpr size_t kLarge = 32 << 20;
    if (!side.server()) {
        side.meet();
        send(side, ep, 1, kLarge);
        send(side, ep, 2, 8);
        ep.sent_well();
        ep.sent_well();
        return;
    }
    std::string& cancelled = side.buffer(8);
    std::string& large = side.buffer(kLarge);
    CALL(tw_trecv(ep.ep, cancelled.data(), 8, TW_ADDR_UNSPEC, 2, 0, &cancelled));
    CALL(tw_trecv(ep.ep, large.data(), kLarge, TW_ADDR_UNSPEC, 1, 0, &large));
    CALL(tw_cancel(ep.ep, &cancelled));
    EXPECT_IS(tw_cancel(ep.ep, &cancelled), -ENOENT);
    const Done done = ep.received();
    EXPECT_IS(done.error, ECANCELED);
    EXPECT(done.entry.context == &cancelled);
    const uint64_t before = side.stat("matched_posted");
    side.meet();
    side.until("a match", [&] { return side.stat("matched_posted") != before; });
    EXPECT_IS(tw_cancel(ep.ep, &large), -ENOENT);
    const tw_cq_entry entry = ep.received_well();
    EXPECT(entry.context == &large);
    EXPECT(large == pattern(1, kLarge));
    EXPECT_IS(tw_cancel(ep.ep, &large), -ENOENT);
    // What the cancelled receive would have taken is still to be had.
    take(side, ep, 2, 8);
    EXPECT(cancelled == std::string(8, '.'));
    EXPECT(ep.is_quiet());
    side.saw("ECANCELED once; a matched receive of 32 MiB went on to its end");
}

void multi_receive(Side& side) {
    Endpoint& ep = side.open(0, {.cq_flags = TW_SELECTIVE_COMPLETION});
    constexpr size_t kSpace = 1000, kLeft = 100;
    const std::vector<size_t> sizes{100, 1, 0, 299, 500, 40};  // 900 after the fifth
    if (!side.server()) {
        side.meet();
        for (size_t i = 0; i < sizes.size(); ++i) {
            send(side, ep, i, sizes[i]);
        }
        side.until("sends", [&] { return tw_cntr_read(ep.sends) == sizes.size(); });
        side.meet();
        send(side, ep, 10, 30);
        side.until("a send", [&] { return tw_cntr_read(ep.sends) == sizes.size() + 1; });
        side.meet();
        send(side, ep, 11, 950);
        side.until("a send", [&] { return tw_cntr_read(ep.sends) == sizes.size() + 2; });
        return;
    }
    const size_t least = kLeft + 1;  // 100 bytes that are left are too few
    CALL(tw_ep_setopt(ep.ep, TW_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
    std::string& first = side.buffer(kSpace);
    std::string& second = side.buffer(kSpace);
    std::string& third = side.buffer(kSpace);
    const auto post = [&](std::string& buffer, uint64_t flags) {
        const iovec iov{buffer.data(), buffer.size()};
        const tw_msg_tagged message{&iov, 1, TW_ADDR_UNSPEC, 0, ~0ull, &buffer, 0};
        CALL(tw_trecvmsg(ep.ep, &message, TW_MULTI_RECV | flags));
    };
    post(first, TW_COMPLETION);
    post(second, TW_COMPLETION);
    side.meet();
    size_t at = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
        const tw_cq_entry entry = ep.received_well();
        const bool last = i == 4;
        std::string& buffer = i <= 4 ? first : second;
        EXPECT(entry.context == &buffer);
        EXPECT(entry.buffer == buffer.data() + (i <= 4 ? at : 0));
        EXPECT_IS(entry.length, sizes[i]);
        EXPECT(buffer.compare(i <= 4 ? at : 0, sizes[i], pattern(i, sizes[i])) == 0);
        EXPECT_IS((entry.flags & TW_MULTI_RECV) != 0, last);
        at += sizes[i];
    }
    CALL(tw_cancel(ep.ep, &second));
    const Done done = ep.received();
    EXPECT_IS(done.error, ECANCELED);
    EXPECT((done.entry.flags & TW_MULTI_RECV) != 0);
    // Completions suppressed: the release is told all the same.
    post(third, 0);
    side.meet();
    side.until("a message", [&] { return tw_cntr_read(ep.receives) == sizes.size() + 1; });
    EXPECT(ep.is_quiet());
    side.meet();
    tw_cq_entry release{};
    const Done over = ep.received();
    release = over.entry;
    EXPECT(release.context == &third);
    EXPECT((release.flags & TW_MULTI_RECV) != 0);
    EXPECT_IS(tw_cancel(ep.ep, &third), -ENOENT);
    side.saw(
        "6 messages packed into two buffers; released once below 101 B, at the cancel, and "
        "though completions were suppressed");
}

void peek(Side& side) {
    Endpoint& ep = side.open();
    constexpr size_t kLength = 5000;
    if (!side.server()) {
        side.meet();
        send(side, ep, 17, kLength, 0xdada);
        ep.sent_well();
        return;
    }
    const tw_addr from = side.peer(ep);
    CALL(ask(ep, 17, 0, TW_PEEK));
    const Done none = ep.received();
    EXPECT_IS(none.error, ENOMSG);
    side.meet();
    find(side, ep, 17, 0);
    std::string& untouched = side.buffer(kLength);
    const iovec iov{untouched.data(), untouched.size()};
    const tw_msg_tagged message{&iov, 1, from, 17, 0, &untouched, 0};
    CALL(tw_trecvmsg(ep.ep, &message, TW_PEEK));
    const tw_cq_entry entry = ep.received_well();
    EXPECT(entry.context == &untouched);
    EXPECT_IS(entry.length, kLength);
    EXPECT_IS(entry.tag, 17u);
    EXPECT_IS(entry.data, 0xdadau);
    EXPECT_IS(entry.source, from);
    EXPECT_IS(entry.flags, TW_RECV | TW_TAGGED | TW_REMOTE_CQ_DATA);
    EXPECT(untouched == std::string(kLength, '.'));
    EXPECT(!is_there(ep, 18));
    EXPECT(is_there(ep, 17));
    take(side, ep, 17, kLength);
    EXPECT(!is_there(ep, 17));
    EXPECT_IS(tw_cntr_read(ep.receives), 1u);
    EXPECT_IS(side.stat("receives_outstanding"), 0u);
    side.saw("ENOMSG; then length, tag, data, source and flags; the message stayed, no peek did");
}

void claim(Side& side) {
    Endpoint& ep = side.open();
    if (!side.server()) {
        side.meet();
        send(side, ep, 1, 3000);
        send(side, ep, 2, 10);
        ep.sent_well();
        ep.sent_well();
        return;
    }
    tw_context mine{}, another{};
    side.meet();
    EXPECT_IS(find(side, ep, 1, TW_CLAIM, &mine).length, 3000u);
    find(side, ep, 2, 0);
    EXPECT(!is_there(ep, 1));
    // A receive for everything takes the next message, not the claimed one.
    std::string& any = side.buffer(3000);
    CALL(tw_trecv(ep.ep, any.data(), any.size(), TW_ADDR_UNSPEC, 0, ~0ull, nullptr));
    EXPECT_IS(ep.received_well().tag, 2u);
    std::string& buffer = side.buffer(3000);
    const iovec iov{buffer.data(), buffer.size()};
    tw_msg_tagged message{&iov, 1, TW_ADDR_UNSPEC, 0, 0, &another, 0};
    EXPECT_IS(tw_trecvmsg(ep.ep, &message, TW_CLAIM), -EINVAL);
    message.context = &mine;
    CALL(tw_trecvmsg(ep.ep, &message, TW_CLAIM));
    const tw_cq_entry entry = ep.received_well();
    EXPECT(entry.context == &mine);
    EXPECT_IS(entry.tag, 1u);
    EXPECT(buffer == pattern(1, 3000));
    EXPECT_IS(tw_trecvmsg(ep.ep, &message, TW_CLAIM), -EINVAL);
    side.saw("a claimed message passed a receive for all, and came for its context only, once");
}

void discard(Side& side) {
    Endpoint& ep = side.open();
    constexpr uint64_t kCount = 3000;
    constexpr size_t kLength = 4000;
    if (!side.server()) {
        side.meet();
        for (uint64_t tag = 0; tag < kCount; ++tag) {
            send(side, ep, tag, kLength);
        }
        for (uint64_t i = 0; i < kCount; ++i) {
            ep.sent_well();
        }
        return;
    }
    const uint64_t discarded = side.stat("messages_discarded");
    side.meet();
    for (uint64_t tag = 0; tag < kCount; ++tag) {
        tw_context context{};
        const bool claims = tag % 2 == 1;
        const tw_cq_entry entry = find(side, ep, tag, claims ? TW_CLAIM : TW_DISCARD, &context);
        EXPECT_IS(entry.length, kLength);
        if (claims) {
            CALL(ask(ep, 0, 0, TW_CLAIM | TW_DISCARD, &context));
            EXPECT(ep.received_well().context == &context);
        }
        EXPECT(!is_there(ep, tag));
    }
    EXPECT_IS(side.stat("messages_discarded") - discarded, kCount);
    EXPECT_IS(side.stat("unexpected_messages"), 0u);
    side.saw(
        fmt::format("{} messages ({} MB against a budget of 1 MiB) dropped, and their sender "
                    "got through",
                    kCount, kCount * kLength / 1'000'000));
}

}  // namespace tagwire::rows
