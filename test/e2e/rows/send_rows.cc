// SPDX-License-Identifier: BSD-3-Clause
// How messages are sent: T2, T3, T4, T12, T13.
#include <algorithm>
#include <array>

#include "test/e2e/rows/rows.h"

namespace tagwire::rows {

namespace {

// Lengths around each border of the way: inject, packet, several packets, 64 KiB.
std::vector<size_t> lengths(bool slow) {
    std::vector<size_t> list{0,
                             1,
                             8,
                             255,
                             256,
                             257,
                             1400,
                             1500,
                             2900,
                             65535,
                             65536,
                             65537,
                             100'000,
                             size_t{1} << 20,
                             size_t{16} << 20};
    if (slow) {
        list.push_back(size_t{1} << 30);
    }
    return list;
}

void receive_all(Side& side, Endpoint& ep, const std::vector<size_t>& sizes) {
    for (size_t i = 0; i < sizes.size(); ++i) {
        std::string& buffer = side.buffer(sizes[i] + 8);
        CALL(tw_trecv(ep.ep, buffer.data(), buffer.size(), TW_ADDR_UNSPEC, i, 0, &buffer));
    }
}

void expect_message(const tw_cq_entry& entry, uint64_t tag, size_t length) {
    const auto& buffer = *static_cast<std::string*>(entry.context);
    EXPECT_IS(entry.tag, tag);
    EXPECT_IS(entry.length, length);
    EXPECT(buffer.compare(0, length, pattern(tag, length)) == 0);
    EXPECT(buffer.compare(length, std::string::npos, std::string(buffer.size() - length, '.')) ==
           0);
}

}  // namespace

void sends_of_every_length(Side& side) {
    Endpoint& ep = side.open();
    const std::vector<size_t> sizes = lengths(side.slow());
    const uint64_t gathered = sizes.size(), empty = gathered + 1;
    if (side.server()) {
        receive_all(side, ep, sizes);
        std::string& parts = side.buffer(8000);
        CALL(tw_trecv(ep.ep, parts.data(), parts.size(), TW_ADDR_UNSPEC, gathered, 0, &parts));
        for (int i = 0; i < 4; ++i) {
            CALL(tw_trecv(ep.ep, nullptr, 0, TW_ADDR_UNSPEC, empty, 0, nullptr));
        }
        side.meet();
        std::vector<uint32_t> seen(sizes.size() + 2);  // in the order in which they end
        for (size_t i = 0; i < sizes.size() + 5; ++i) {
            const tw_cq_entry entry = ep.received_well();
            EXPECT(entry.tag <= empty);
            ++seen[entry.tag];
            if (entry.tag == empty) {
                EXPECT_IS(entry.length, 0u);
            } else {
                expect_message(entry, entry.tag, entry.tag == gathered ? 6000 : sizes[entry.tag]);
            }
        }
        EXPECT_IS(seen[empty], 4u);
        EXPECT(std::count(seen.begin(), seen.end(), 1u) == static_cast<ssize_t>(empty));
        side.saw(fmt::format("{} lengths from 0 to {} B, 6 gathered parts, 4 empty messages",
                             sizes.size(), sizes.back()));
        return;
    }
    const tw_addr to = side.peer(ep);
    side.meet();
    for (size_t i = 0; i < sizes.size(); ++i) {
        const std::string& bytes = side.keep(pattern(i, sizes[i]));
        CALL(tw_tsend(ep.ep, bytes.data(), bytes.size(), to, i, nullptr));
    }
    std::string& bytes = side.keep(pattern(gathered, 6000));
    const std::array<size_t, 6> cuts{1, 7, 0, 2992, 1500, 1500};
    std::array<iovec, 6> iov{};
    size_t at = 0;
    for (size_t i = 0; i < cuts.size(); ++i) {
        iov[i] = {bytes.data() + at, cuts[i]};
        at += cuts[i];
    }
    CALL(tw_tsendv(ep.ep, iov.data(), iov.size(), to, gathered, nullptr));
    iov.fill({});  // the array is the caller's again
    CALL(tw_tsend(ep.ep, nullptr, 0, to, empty, nullptr));
    CALL(tw_tsendv(ep.ep, nullptr, 0, to, empty, nullptr));
    const iovec nothing{nullptr, 0};
    CALL(tw_tsendv(ep.ep, &nothing, 1, to, empty, nullptr));
    const tw_msg_tagged message{nullptr, 0, to, empty, 0, nullptr, 0};
    CALL(tw_tsendmsg(ep.ep, &message, 0));
    for (size_t i = 0; i < sizes.size() + 5; ++i) {
        ep.sent_well();
    }
    size_t limit = 0, size = sizeof(limit);
    CALL(tw_ep_getopt(ep.ep, TW_OPT_MAX_MESSAGE_SIZE, &limit, &size));
    EXPECT(limit >= size_t{1} << 30);
    EXPECT_IS(tw_tsend(ep.ep, bytes.data(), limit + 1, to, 0, nullptr), -EMSGSIZE);
}

void injected_buffers_are_free_at_once(Side& side) {
    Endpoint& ep = side.open();
    const std::vector<size_t> sizes{0, 1, 128, TW_INJECT_SIZE};
    if (side.server()) {
        receive_all(side, ep, sizes);
        std::string& last = side.buffer(20);
        CALL(tw_trecv(ep.ep, last.data(), last.size(), TW_ADDR_UNSPEC, 9, 0, &last));
        side.meet();
        for (size_t i = 0; i < sizes.size(); ++i) {
            expect_message(ep.received_well(), i, sizes[i]);
        }
        const tw_cq_entry entry = ep.received_well();
        expect_message(entry, 9, 10);
        EXPECT((entry.flags & TW_REMOTE_CQ_DATA) != 0);
        EXPECT_IS(entry.data, 0x1234567890abcdefu);
        return;
    }
    const tw_addr to = side.peer(ep);
    size_t limit = 0, size = sizeof(limit);
    CALL(tw_ep_getopt(ep.ep, TW_OPT_INJECT_SIZE, &limit, &size));
    EXPECT(limit >= 128);
    side.meet();
    for (size_t i = 0; i < sizes.size(); ++i) {
        std::string bytes = pattern(i, sizes[i]);
        CALL(tw_tinject(ep.ep, bytes.data(), bytes.size(), to, i));
        bytes.assign(bytes.size(), '#');
    }
    std::string bytes = pattern(9, 10);
    CALL(tw_tinjectdata(ep.ep, bytes.data(), 10, 0x1234567890abcdefu, to, 9));
    bytes.assign(limit + 1, '#');
    EXPECT_IS(tw_tinject(ep.ep, bytes.data(), limit + 1, to, 0), -EINVAL);
    EXPECT_IS(tw_tinjectdata(ep.ep, bytes.data(), limit + 1, 0, to, 0), -EINVAL);
    side.until("the counter of sends", [&] { return tw_cntr_read(ep.sends) == sizes.size() + 1; });
    EXPECT(ep.is_quiet());
    side.saw(
        fmt::format("inject_size {}, 5 messages overwritten after the call arrived whole, "
                    "counted, without an entry; {} B refused",
                    limit, limit + 1));
}

void remote_data_arrives(Side& side) {
    Endpoint& ep = side.open();
    constexpr uint64_t kData = 0xfedcba9876543210;
    constexpr size_t kLarge = 200'000;
    if (side.server()) {
        for (int i = 0; i < 5; ++i) {
            std::string& buffer = side.buffer(kLarge);
            CALL(tw_trecv(ep.ep, buffer.data(), kLarge, TW_ADDR_UNSPEC, 0, ~0ull, nullptr));
        }
        side.meet();
        uint64_t seen = 0;
        for (int i = 0; i < 5; ++i) {
            const tw_cq_entry entry = ep.received_well();
            seen |= 1u << entry.tag;
            EXPECT_IS((entry.flags & TW_REMOTE_CQ_DATA) != 0, entry.tag < 4);
            EXPECT_IS(entry.data, entry.tag < 4 ? kData + entry.tag : 0);
        }
        EXPECT_IS(seen, 0x1fu);
        side.saw("64 bits with small, large, flagged and empty messages, none without");
        return;
    }
    const tw_addr to = side.peer(ep);
    const std::string& bytes = side.keep(pattern(1, kLarge));
    side.meet();
    CALL(tw_tsenddata(ep.ep, bytes.data(), 8, kData, to, 0, nullptr));
    CALL(tw_tsenddata(ep.ep, bytes.data(), kLarge, kData + 1, to, 1, nullptr));
    const iovec iov{const_cast<char*>(bytes.data()), 8};
    const tw_msg_tagged message{&iov, 1, to, 2, 0, nullptr, kData + 2};
    CALL(tw_tsendmsg(ep.ep, &message, TW_REMOTE_CQ_DATA));
    CALL(tw_tsenddata(ep.ep, nullptr, 0, kData + 3, to, 3, nullptr));
    const tw_msg_tagged without{&iov, 1, to, 4, 0, nullptr, kData + 4};
    CALL(tw_tsendmsg(ep.ep, &without, 0));
    for (int i = 0; i < 5; ++i) {
        ep.sent_well();
    }
}

void more_leaves_together(Side& side) {
    Endpoint& ep = side.open();
    constexpr uint64_t kTogether = 64, kUnflushed = 8;
    if (side.server()) {
        std::string& buffer = side.buffer(8 * (kTogether + kUnflushed + 1));
        for (uint64_t i = 0; i < kTogether + kUnflushed + 1; ++i) {
            CALL(tw_trecv(ep.ep, buffer.data() + 8 * i, 8, TW_ADDR_UNSPEC, i, 0, nullptr));
        }
        for (uint64_t i = 0; i < kTogether + kUnflushed + 1; ++i) {
            EXPECT_IS(ep.received_well().tag, i);
            EXPECT(buffer.compare(8 * i, 8, pattern(i, 8)) == 0);
        }
        side.meet();
        return;
    }
    const auto send = [&](uint64_t tag, uint64_t flags) {
        std::string& bytes = side.keep(pattern(tag, 8));
        const iovec iov{bytes.data(), bytes.size()};
        const tw_msg_tagged message{&iov, 1, side.peer(ep), tag, 0, nullptr, 0};
        CALL(tw_tsendmsg(ep.ep, &message, flags));
    };
    send(0, 0);  // sets the session up
    ep.sent_well();
    const uint64_t before = side.frames_sent();
    for (uint64_t i = 1; i < kTogether; ++i) {
        send(i, TW_MORE);
    }
    send(kTogether, 0);
    for (uint64_t i = 0; i < kTogether; ++i) {
        ep.sent_well();
    }
    const uint64_t frames = side.frames_sent() - before;
    EXPECT(frames < kTogether / 4);
    for (uint64_t i = 1; i <= kUnflushed; ++i) {
        send(kTogether + i, TW_MORE);
    }
    for (uint64_t i = 0; i < kUnflushed; ++i) {
        ep.sent_well();
    }
    side.meet();
    side.saw(fmt::format("{} messages in {} frames; {} without a flush left by themselves",
                         kTogether, frames, kUnflushed));
}

void the_inject_flag(Side& side) {
    Endpoint& ep = side.open();
    if (side.server()) {
        receive_all(side, ep, {0, 100, TW_INJECT_SIZE});
        side.meet();
        expect_message(ep.received_well(), 0, 0);
        expect_message(ep.received_well(), 1, 100);
        expect_message(ep.received_well(), 2, TW_INJECT_SIZE);
        return;
    }
    side.meet();
    uint64_t tag = 0;
    for (const size_t size : {size_t{0}, size_t{100}, size_t{TW_INJECT_SIZE}}) {
        std::string bytes = pattern(tag, size);
        const iovec iov[2] = {{bytes.data(), size / 3}, {bytes.data() + size / 3, size - size / 3}};
        const tw_msg_tagged message{iov, 2, side.peer(ep), tag++, 0, &ep, 0};
        CALL(tw_tsendmsg(ep.ep, &message, TW_INJECT));
        bytes.assign(size, '#');
    }
    for (int i = 0; i < 3; ++i) {
        EXPECT(ep.sent_well().context == &ep);
    }
    std::string bytes(TW_INJECT_SIZE + 1, '#');
    const iovec iov{bytes.data(), bytes.size()};
    const tw_msg_tagged message{&iov, 1, side.peer(ep), 3, 0, nullptr, 0};
    EXPECT_IS(tw_tsendmsg(ep.ep, &message, TW_INJECT), -EINVAL);
    side.turn_for(std::chrono::milliseconds(5));
    EXPECT(ep.is_quiet());
    side.saw("3 messages overwritten after the call arrived whole, with their completions");
}

}  // namespace tagwire::rows
