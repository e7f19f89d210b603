// SPDX-License-Identifier: BSD-3-Clause
// Errors, enabling, completion queues: T22, T23, T24.
#include "test/e2e/rows/rows.h"

namespace tagwire::rows {

void errors_without_effect(Side& side) {
    constexpr uint32_t kEntries = 8;
    Endpoint& ep = side.open(0, {.cq_entries = kEntries});
    constexpr uint64_t kMessages = 100;
    if (side.server()) {
        std::string& buffer = side.buffer(kMessages * 8);
        uint64_t posted = 0, refused = 0, arrived = 0;
        side.meet();
        side.until("all messages", [&] {
            while (posted < kMessages) {
                const int result = tw_trecv(ep.ep, buffer.data() + 8 * posted, 8, TW_ADDR_UNSPEC,
                                            posted, 0, nullptr);
                if (result == -EAGAIN) {
                    ++refused;
                    break;
                }
                CALL(result);
                ++posted;
            }
            EXPECT(posted - arrived <= kEntries);
            tw_cq_entry entry{};
            if (posted == kMessages || refused % 3 == 0) {
                const ssize_t count = tw_cq_read(ep.rx, &entry, 1);
                EXPECT(count == 1 || count == -EAGAIN);
                arrived += count == 1 ? 1 : 0;
            }
            return arrived == kMessages;
        });
        for (uint64_t tag = 0; tag < kMessages; ++tag) {
            EXPECT(buffer.compare(8 * tag, 8, pattern(tag, 8)) == 0);
        }
        EXPECT(refused > 0);
        side.saw(
            fmt::format("a queue of {} entries: EAGAIN, and {} messages none of which was "
                        "lost",
                        kEntries, kMessages));
        return;
    }
    const tw_addr to = side.peer(ep);
    side.meet();
    uint64_t posted = 0, completed = 0, refused = 0;
    side.until("all sends", [&] {
        while (posted < kMessages) {
            const std::string& bytes = side.keep(pattern(posted, 8));
            const int result = tw_tsend(ep.ep, bytes.data(), 8, to, posted, nullptr);
            if (result == -EAGAIN) {
                ++refused;
                break;
            }
            CALL(result);
            ++posted;
        }
        tw_cq_entry entry{};
        completed += tw_cq_read(ep.tx, &entry, 1) == 1 ? 1 : 0;
        return completed == kMessages;
    });
    EXPECT(refused > 0);
    EXPECT_IS(tw_cntr_read(ep.sends), kMessages);
    // Bad arguments change nothing.
    const uint64_t sends = side.stat("sends_outstanding");
    const uint64_t receives = side.stat("receives_outstanding");
    char byte = 'x';
    iovec iov[TW_IOV_LIMIT + 1] = {};
    tw_msg_tagged message{iov, 1, to, 0, 0, nullptr, 0};
    EXPECT_IS(tw_tsend(nullptr, &byte, 1, to, 0, nullptr), -EINVAL);
    EXPECT_IS(tw_tsend(ep.ep, nullptr, 1, to, 0, nullptr), -EINVAL);
    EXPECT_IS(tw_tsend(ep.ep, &byte, 1, 12345, 0, nullptr), -EINVAL);
    EXPECT_IS(tw_tsend(ep.ep, &byte, 1, TW_ADDR_UNSPEC, 0, nullptr), -EINVAL);
    EXPECT_IS(tw_tsendv(ep.ep, iov, TW_IOV_LIMIT + 1, to, 0, nullptr), -EINVAL);
    EXPECT_IS(tw_tsendmsg(ep.ep, nullptr, 0), -EINVAL);
    EXPECT_IS(tw_tsendmsg(ep.ep, &message, TW_PEEK), -EINVAL);
    EXPECT_IS(tw_tsendmsg(ep.ep, &message, TW_MATCH_COMPLETE | TW_DELIVERY_COMPLETE), -EINVAL);
    EXPECT_IS(tw_trecv(ep.ep, nullptr, 1, TW_ADDR_UNSPEC, 0, 0, nullptr), -EINVAL);
    EXPECT_IS(tw_trecv(ep.ep, &byte, 1, 12345, 0, 0, nullptr), -EINVAL);
    EXPECT_IS(tw_trecvv(ep.ep, iov, TW_IOV_LIMIT + 1, TW_ADDR_UNSPEC, 0, 0, nullptr), -EINVAL);
    EXPECT_IS(tw_trecvmsg(ep.ep, nullptr, 0), -EINVAL);
    EXPECT_IS(tw_trecvmsg(ep.ep, &message, TW_FENCE), -EINVAL);
    EXPECT(tw_last_error()[0] != '\0');
    EXPECT_IS(side.stat("sends_outstanding"), sends);
    EXPECT_IS(side.stat("receives_outstanding"), receives);
    EXPECT(ep.is_quiet());
    side.saw(fmt::format("{} sends refused with EAGAIN, then taken; 13 bad calls EINVAL", refused));
}

void nothing_before_enable(Side& side) {
    Endpoint& ep = side.open(0, {.enable = side.server()});
    if (side.server()) {
        std::string& buffer = side.buffer(8);
        CALL(tw_trecv(ep.ep, buffer.data(), 8, TW_ADDR_UNSPEC, 0, ~0ull, nullptr));
        side.meet();
        EXPECT_IS(ep.received_well().tag, 2u);
        side.turn_for(std::chrono::milliseconds(5));
        const tw_msg_tagged any{nullptr, 0, TW_ADDR_UNSPEC, 0, ~0ull, nullptr, 0};
        CALL(tw_trecvmsg(ep.ep, &any, TW_PEEK));
        EXPECT_IS(ep.received().error, ENOMSG);
        return;
    }
    const tw_addr to = side.peer(ep);
    char byte = 'x';
    iovec iov{&byte, 1};
    const tw_msg_tagged message{&iov, 1, to, 1, 0, nullptr, 0};
    EXPECT_IS(tw_tsend(ep.ep, &byte, 1, to, 1, nullptr), -TW_EOPBADSTATE);
    EXPECT_IS(tw_tsendv(ep.ep, &iov, 1, to, 1, nullptr), -TW_EOPBADSTATE);
    EXPECT_IS(tw_tsendmsg(ep.ep, &message, 0), -TW_EOPBADSTATE);
    EXPECT_IS(tw_tsenddata(ep.ep, &byte, 1, 1, to, 1, nullptr), -TW_EOPBADSTATE);
    EXPECT_IS(tw_tinject(ep.ep, &byte, 1, to, 1), -TW_EOPBADSTATE);
    EXPECT_IS(tw_tinjectdata(ep.ep, &byte, 1, 1, to, 1), -TW_EOPBADSTATE);
    EXPECT_IS(tw_trecv(ep.ep, &byte, 1, to, 1, 0, nullptr), -TW_EOPBADSTATE);
    EXPECT_IS(tw_trecvv(ep.ep, &iov, 1, to, 1, 0, nullptr), -TW_EOPBADSTATE);
    EXPECT_IS(tw_trecvmsg(ep.ep, &message, 0), -TW_EOPBADSTATE);
    EXPECT_IS(tw_trecvmsg(ep.ep, &message, TW_PEEK), -TW_EOPBADSTATE);
    EXPECT(ep.is_quiet());
    side.meet();
    ep.enable();
    CALL(tw_tsend(ep.ep, &byte, 1, to, 2, nullptr));
    ep.sent_well();
    side.saw("10 calls EOPBADSTATE, none with an effect; after enable the same call worked");
}

void completion_queues(Side& side) {
    constexpr uint32_t kEntries = 16;
    Endpoint& ep = side.open(0, {.cq_entries = kEntries});
    constexpr uint64_t kData = 0xd0d1d2d3d4d5d6d7;
    if (!side.server()) {
        int marker = 0;
        side.meet();
        const std::string& bytes = side.keep(pattern(5, 100));
        CALL(tw_tsenddata(ep.ep, bytes.data(), 100, kData, side.peer(ep), 5, &marker));
        const tw_cq_entry entry = ep.sent_well();
        EXPECT(entry.context == &marker);
        EXPECT_IS(entry.flags, TW_SEND | TW_TAGGED);
        CALL(tw_tsend(ep.ep, bytes.data(), 100, side.peer(ep), 6, &marker));
        ep.sent_well();
        // Nobody is there: an error with the transport's status and a text.
        CALL(tw_tsend(ep.ep, bytes.data(), 100, side.peer(ep, 7), 7, &marker));
        const Done done = ep.sent();
        EXPECT_IS(done.error, ECONNREFUSED);
        EXPECT(done.provider_error != 0);
        EXPECT(!done.text.empty());
        EXPECT_IS(tw_cntr_read(ep.sends), 2u);
        EXPECT_IS(tw_cntr_readerr(ep.sends), 1u);
        side.meet();
        side.turn_for(std::chrono::milliseconds(20));  // the other side sleeps by then
        CALL(tw_tsend(ep.ep, bytes.data(), 100, side.peer(ep), 8, &marker));
        ep.sent_well();
        side.saw(fmt::format("readerr: prov_errno {}, \"{}\"", done.provider_error, done.text));
        return;
    }
    int marker = 0;
    std::string& buffer = side.buffer(100);
    CALL(tw_trecv(ep.ep, buffer.data(), 100, TW_ADDR_UNSPEC, 5, 0, &marker));
    CALL(tw_trecv(ep.ep, buffer.data(), 60, TW_ADDR_UNSPEC, 6, 0, &marker));
    side.meet();
    const tw_cq_entry entry = ep.received_well();
    EXPECT(entry.context == &marker);
    EXPECT_IS(entry.flags, TW_RECV | TW_TAGGED | TW_REMOTE_CQ_DATA);
    EXPECT_IS(entry.length, 100u);
    EXPECT(entry.buffer == buffer.data());
    EXPECT_IS(entry.data, kData);
    EXPECT_IS(entry.tag, 5u);
    side.until("an error", [&] { return tw_cntr_readerr(ep.receives) == 1; });
    // The error blocks the queue until it is read, and is read once.
    tw_cq_entry none{};
    EXPECT_IS(tw_cq_read(ep.rx, &none, 1), -TW_EAVAIL);
    EXPECT_IS(tw_cq_read(ep.rx, &none, 1), -TW_EAVAIL);
    tw_cq_error error{};
    EXPECT_IS(tw_cq_readerr(ep.rx, &error), 1);
    EXPECT_IS(error.error, TW_ETRUNC);
    EXPECT_IS(error.overflow, 40u);
    EXPECT_IS(tw_cq_readerr(ep.rx, &error), -EAGAIN);
    EXPECT_IS(tw_cntr_read(ep.receives), 1u);
    CALL(tw_trecv(ep.ep, buffer.data(), 100, TW_ADDR_UNSPEC, 8, 0, &marker));
    EXPECT_IS(tw_cq_sread(ep.rx, &none, 1, 20), -EAGAIN);
    side.meet();
    EXPECT_IS(tw_cq_sread(ep.rx, &none, 1, 20000), 1);
    EXPECT_IS(none.tag, 8u);
    side.saw(
        "context, flags, length, buffer, data, tag; errors once, by readerr; counters of both; "
        "sread "
        "ended at its timeout, and with a message");
}

}  // namespace tagwire::rows
