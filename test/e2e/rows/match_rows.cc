// SPDX-License-Identifier: BSD-3-Clause
// Which message meets which receive: T1, T5, T6, T7, T8.
#include <algorithm>
#include <array>
#include <random>

#include "test/e2e/rows/rows.h"

namespace tagwire::rows {

namespace {

void send(Side& side, Endpoint& from, int to, uint64_t tag, size_t length) {
    const std::string& bytes = side.keep(pattern(tag, length));
    CALL(tw_tsend(from.ep, bytes.data(), length, side.peer(from, to), tag, nullptr));
}

std::string& post(Side& side, Endpoint& ep, size_t length, tw_addr source, uint64_t tag,
                  uint64_t ignore) {
    std::string& buffer = side.buffer(length);
    CALL(tw_trecv(ep.ep, buffer.data(), length, source, tag, ignore, &buffer));
    return buffer;
}

}  // namespace

void receives_with_tag_mask_and_source(Side& side) {
    Endpoint& ep = side.open();
    constexpr size_t kLength = 10'000;
    const std::array<size_t, 5> cuts{3, 1500, 0, 7000, 1497};
    if (!side.server()) {
        side.meet();
        send(side, ep, 0, 0x11, 100);
        send(side, ep, 0, 0x22, kLength);
        send(side, ep, 0, 0xab03, kLength);
        for (int i = 0; i < 3; ++i) {
            ep.sent_well();
        }
        return;
    }
    const auto scattered = [&](std::array<iovec, 5>& iov) -> std::string& {
        std::string& buffer = side.buffer(kLength + 64);
        size_t at = 0;
        for (size_t i = 0; i < cuts.size(); ++i) {
            iov[i] = {buffer.data() + at, cuts[i]};
            at += cuts[i];
        }
        return buffer;
    };
    const tw_addr from = side.peer(ep);
    const std::string& whole = post(side, ep, 200, TW_ADDR_UNSPEC, 0x11, 0);
    std::array<iovec, 5> iov{};
    const std::string& by_vector = scattered(iov);
    CALL(tw_trecvv(ep.ep, iov.data(), iov.size(), from, 0x22, 0, nullptr));
    const std::string& by_message = scattered(iov);
    iov[4].iov_len += 64;  // more room than the message needs
    const tw_msg_tagged message{iov.data(), iov.size(), from, 0x03, 0xff00, &iov, 0};
    CALL(tw_trecvmsg(ep.ep, &message, 0));
    iov.fill({});  // the array is the caller's again
    side.meet();
    EXPECT_IS(ep.received_well().tag, 0x11);
    EXPECT(whole.compare(0, 100, pattern(0x11, 100)) == 0);
    const tw_cq_entry vector = ep.received_well();
    EXPECT_IS(vector.source, from);
    EXPECT(by_vector.compare(0, kLength, pattern(0x22, kLength)) == 0);
    const tw_cq_entry masked = ep.received_well();
    EXPECT_IS(masked.tag, 0xab03u);
    EXPECT(masked.context == &iov);
    EXPECT(by_message == pattern(0xab03, kLength) + std::string(64, '.'));
    side.saw("trecv, trecvv over 5 uneven parts, trecvmsg with mask and source");
}

void the_match_rule(Side& side) {
    Endpoint& ep = side.open();
    std::mt19937_64 random(5);
    uint32_t matched = 0;
    constexpr uint32_t kRounds = 150;
    for (uint32_t round = 0; round < kRounds; ++round) {
        // Tags close to each other, so that both answers are common.
        const uint64_t tag = random();
        const uint64_t masks[] = {0, ~0ull, random(), random() & random(), 1ull << (round % 64)};
        const uint64_t ignore = masks[round % 5];
        const uint64_t sent = random() % 3 == 0   ? random()
                              : random() % 2 == 0 ? tag ^ (random() & ignore)
                                                  : tag ^ (1ull << random() % 64);
        const bool meets = (sent & ~ignore) == (tag & ~ignore);
        matched += meets ? 1 : 0;
        if (!side.server()) {
            side.meet();
            CALL(tw_tinject(ep.ep, "x", 1, side.peer(ep), sent));
            continue;
        }
        std::string& first = post(side, ep, 1, TW_ADDR_UNSPEC, tag, ignore);
        std::string& any = post(side, ep, 1, TW_ADDR_UNSPEC, 0, ~0ull);
        side.meet();
        const tw_cq_entry entry = ep.received_well();
        EXPECT_IS(entry.tag, sent);
        if (entry.context != (meets ? &first : &any)) {
            throw Failure(
                fmt::format("tag {:#x} and receive {:#x} ignoring {:#x}: the rule says {}", sent,
                            tag, ignore, meets));
        }
        CALL(tw_cancel(ep.ep, meets ? &any : &first));
        EXPECT_IS(ep.received().error, ECANCELED);
    }
    if (side.server()) {
        side.saw(fmt::format("{} random masks, all ones and zero among them: {} matched, {} not",
                             kRounds, matched, kRounds - matched));
    }
}

void the_order_of_receives_and_messages(Side& side) {
    Endpoint& ep = side.open();
    constexpr size_t kLarge = 300'000;
    const std::array<size_t, 6> sizes{kLarge, 8, kLarge, 0, 2000, 8};
    for (const bool expected : {true, false}) {
        if (!side.server()) {
            if (expected) {
                side.meet();
            }
            for (uint64_t i = 0; i < sizes.size(); ++i) {
                send(side, ep, 0, i, sizes[i]);
            }
            if (!expected) {
                send(side, ep, 0, 99, 1);
                side.meet();
            }
            for (size_t i = 0; i < sizes.size() + (expected ? 0 : 1); ++i) {
                ep.sent_well();
            }
            continue;
        }
        if (!expected) {
            side.meet();
            // The last one is here when it can be seen; so are all before it.
            const tw_msg_tagged look{nullptr, 0, TW_ADDR_UNSPEC, 99, 0, nullptr, 0};
            side.until("the last message", [&] {
                CALL(tw_trecvmsg(ep.ep, &look, TW_PEEK));
                return ep.received().error == 0;
            });
        }
        std::vector<std::string*> posted;
        for (size_t i = 0; i < sizes.size(); ++i) {
            posted.push_back(&post(side, ep, kLarge, TW_ADDR_UNSPEC, 0, ~0ull));
        }
        if (expected) {
            side.meet();
        }
        std::vector<tw_cq_entry> entries;
        for (size_t i = 0; i < sizes.size(); ++i) {
            entries.push_back(ep.received_well());
        }
        // The i-th receive got the i-th message, whichever was whole first.
        for (const tw_cq_entry& entry : entries) {
            EXPECT(entry.tag < sizes.size());
            EXPECT(entry.context == posted[entry.tag]);
            EXPECT_IS(entry.length, sizes[entry.tag]);
            EXPECT(posted[entry.tag]->compare(0, entry.length, pattern(entry.tag, entry.length)) ==
                   0);
        }
        if (!expected) {
            post(side, ep, 1, TW_ADDR_UNSPEC, 99, 0);
            EXPECT_IS(ep.received_well().tag, 99u);
            side.saw(
                "6 messages of 0 B to 300 kB met 6 equal receives in order, posted before "
                "and after they came");
        }
    }
}

void directed_receives(Side& side) {
    Endpoint& ep = side.open(0);
    if (!side.server()) {
        Endpoint& second = side.open(1);
        side.meet();
        send(side, ep, 0, 7, 10);
        ep.sent_well();
        side.meet();
        send(side, second, 0, 7, 20);
        second.sent_well();
        return;
    }
    const tw_addr first = side.peer(ep, 0);
    const tw_addr other = side.peer(ep, 1);
    EXPECT(first != other);
    const std::string& for_other = post(side, ep, 100, other, 7, 0);
    const std::string& for_any = post(side, ep, 100, TW_ADDR_UNSPEC, 7, 0);
    side.meet();
    tw_cq_entry entry = ep.received_well();
    EXPECT(entry.context == &for_any);
    EXPECT_IS(entry.source, first);
    EXPECT_IS(entry.length, 10u);
    EXPECT(ep.is_quiet());
    side.meet();
    entry = ep.received_well();
    EXPECT(entry.context == &for_other);
    EXPECT_IS(entry.source, other);
    EXPECT_IS(entry.length, 20u);
    side.saw("a message of another peer passed the directed receive and met UNSPEC");
}

void unexpected_messages_under_a_budget(Side& side) {
    Endpoint& ep = side.open();
    constexpr uint64_t kCount = 2000;
    constexpr size_t kLength = 4000;
    if (!side.server()) {
        for (uint64_t tag = 0; tag < kCount; ++tag) {
            send(side, ep, 0, tag, kLength);
        }
        side.turn_for(std::chrono::milliseconds(100));
        const uint64_t held_back = side.stat("sends_outstanding");
        EXPECT(held_back > kCount / 2);
        side.meet();
        for (uint64_t i = 0; i < kCount; ++i) {
            ep.sent_well();
        }
        side.saw(fmt::format("{} of {} messages ({} MB against a budget of 1 MiB) were held back",
                             held_back, kCount, kCount * kLength / 1'000'000));
        return;
    }
    side.meet();
    const uint64_t peak = side.stat("unexpected_messages_peak");
    const uint64_t units = side.stat("held_units_peak");
    EXPECT(peak > 0);
    EXPECT(units <= (1 << 20) / 1500);
    for (uint64_t i = 0; i < kCount; ++i) {
        const uint64_t tag = kCount - 1 - i;  // from the end: the others are in the way
        post(side, ep, kLength, TW_ADDR_UNSPEC, tag, 0);
    }
    std::vector<bool> seen(kCount);
    for (uint64_t i = 0; i < kCount; ++i) {
        const tw_cq_entry entry = ep.received_well();
        EXPECT(entry.tag < kCount && !seen[entry.tag]);
        seen[entry.tag] = true;
        EXPECT(*static_cast<std::string*>(entry.context) == pattern(entry.tag, kLength));
    }
    EXPECT_IS(side.stat("drop_over_budget"), 0u);
    side.saw(fmt::format("high-water mark {} messages, {} packets; all arrived right", peak,
                         side.stat("held_units_peak")));
}

}  // namespace tagwire::rows
