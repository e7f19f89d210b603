// SPDX-License-Identifier: BSD-3-Clause
// Regions open and close, also while operations on them are under way.
#include <algorithm>

#include "test/rma/rma_fixture.h"

namespace tagwire::test {
namespace {

class Close : public RmaPair {
  protected:
    // Frames of a node from the n-th on are lost.
    void cut_after(sim::Node& node, int frames) {
        simulator.filter = [&node, frames, seen = 0](sim::Node& from, sim::Frame&) mutable {
            return &from != &node || ++seen <= frames;
        };
    }
    void warm_up(const Memory& memory) {
        write("x", memory, 0);
        ASSERT_TRUE(finish());
        a.sent.clear();
    }
    sim::Node& node_a() { return simulator.node(0); }
    sim::Node& node_b() { return simulator.node(1); }
};

TEST_F(Close, keys_are_random_or_as_requested) {
    Memory one(b, 8), two(b, 8);
    EXPECT_NE(one.key(), two.key());
    EXPECT_GT(one.key() | two.key(), uint64_t{1} << 32);
    char byte;
    const iovec iov{&byte, 1};
    tw_mr_attr attr{sizeof(attr), &iov, 1, TW_REMOTE_READ, TW_MR_REQUESTED_KEY, 7, &byte};
    tw_mr* mr = nullptr;
    tw_mr* again = nullptr;
    ASSERT_EQ(tw_mr_open(b.worker, &attr, &mr), 0);
    EXPECT_EQ(tw_mr_key(mr), 7u);
    EXPECT_EQ(tw_mr_context(mr), &byte);
    EXPECT_EQ(tw_mr_open(b.worker, &attr, &again), -ENOKEY);
    ASSERT_EQ(tw_mr_close(mr), 0);
    ASSERT_EQ(tw_mr_open(b.worker, &attr, &mr), 0) << "a key is free after close";
    ASSERT_EQ(tw_mr_close(mr), 0);
}

TEST_F(Close, many_regions_come_and_go) {
    std::vector<std::pair<uint64_t, tw_mr*>> open;
    static char bytes[8];
    const iovec iov{bytes, sizeof(bytes)};
    for (int i = 0; i < 20'000; ++i) {
        if (open.size() < 10 || simulator.below(5) < 3) {
            tw_mr_attr attr{
                sizeof(attr), &iov, 1, TW_REMOTE_READ, TW_MR_REQUESTED_KEY, simulator.below(50'000),
                nullptr};
            tw_mr* mr = nullptr;
            const bool taken = std::any_of(open.begin(), open.end(), [&](const auto& entry) {
                return entry.first == attr.requested_key;
            });
            ASSERT_EQ(tw_mr_open(b.worker, &attr, &mr), taken ? -ENOKEY : 0);
            if (!taken) {
                open.emplace_back(attr.requested_key, mr);
            }
        } else {
            std::swap(open[simulator.below(open.size())], open.back());
            ASSERT_EQ(tw_mr_close(open.back().second), 0);
            open.pop_back();
        }
        ASSERT_EQ(b.stat("rma_regions"), open.size());
        if (open.size() > 500) {
            while (open.size() > 20) {
                ASSERT_EQ(tw_mr_close(open.back().second), 0);
                open.pop_back();
            }
        }
    }
    for (const auto& [key, mr] : open) {
        ASSERT_EQ(tw_mr_key(mr), key);
        ASSERT_EQ(tw_mr_close(mr), 0);
    }
}

TEST_F(Close, closed_region_is_unknown) {
    Memory memory(b, 100);
    warm_up(memory);
    const uint64_t key = memory.key();
    memory.close();
    const std::string payload = "12345678";
    a.posted(tw_write(a.ep, payload.data(), 8, a.address_of(b), memory.address(), key, nullptr));
    expect_refused(ENOKEY, "rma_refused_key");
    EXPECT_EQ(memory.bytes[1], '\0');
}

TEST_F(Close, put_under_way_ends_in_an_error_and_touches_nothing_more) {
    Memory memory(b, 3'000'000);
    warm_up(memory);
    const std::string payload(3'000'000, 'p');
    write(payload, memory, 0);
    ASSERT_TRUE(run([&] { return memory.bytes[1000] == 'p' && memory.bytes[200'000] == 'p'; }));
    ASSERT_TRUE(a.sent.empty());
    memory.close();
    memory.bytes.assign(3'000'000, 'm');
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }));
    EXPECT_EQ(a.errors[0].error, ENOKEY);
    EXPECT_EQ(b.stat("rma_refused_closed"), 1u);
    settle();
    EXPECT_TRUE(memory.bytes == std::string(3'000'000, 'm'));
    EXPECT_EQ(a.stat("rma_outstanding"), 0u);
    Memory next(b, 100);  // the session is as good as new
    write("after", next, 0);
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    EXPECT_EQ(next.bytes.substr(0, 5), "after");
}

TEST_F(Close, put_that_lost_its_tail) {
    Memory memory(b, 60'000);
    warm_up(memory);
    cut_after(node_a(), 10);
    const std::string payload(60'000, 'p');
    write(payload, memory, 0);
    ASSERT_TRUE(run([&] { return memory.bytes[5000] == 'p'; }));
    settle();
    memory.close();
    memory.bytes.assign(60'000, 'm');
    simulator.filter = nullptr;
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }));
    EXPECT_EQ(a.errors[0].error, ENOKEY);
    EXPECT_TRUE(memory.bytes == std::string(60'000, 'm'));
}

TEST_F(Close, get_under_way_brings_what_was_there) {
    Memory memory(b, 2'000'000);
    warm_up(memory);
    const std::string there = pattern(3, 2'000'000);
    there.copy(memory.bytes.data(), there.size());
    simulator.faults.loss = 0.05;
    std::string buffer(2'000'000, '.');
    read(buffer, memory, 0);
    ASSERT_TRUE(run(
        [&] { return buffer[100'000] == there[100'000] && buffer[100'001] == there[100'001]; }));
    ASSERT_TRUE(a.sent.empty());
    memory.close();
    memory.bytes.assign(2'000'000, 'm');
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }, 60 * kSecond));
    EXPECT_TRUE(buffer == there);
}

TEST_F(Close, worker_stays_while_it_has_regions) {
    Memory memory(b, 8);
    EXPECT_EQ(tw_worker_close(b.worker), -EBUSY);
}

TEST_F(Close, what_waits_for_a_closing_endpoint_is_refused) {
    Memory memory(b, 500'000);
    warm_up(memory);
    const std::string large(60'000, 'l');
    std::string buffer(8, '.');
    int frames = 0;  // the put stays incomplete, and the get waits behind it
    simulator.filter = [&](sim::Node& from, sim::Frame& frame) {
        return &from != &node_a() || frame.size() < 500 || ++frames < 5;
    };
    write(large, memory, 0);
    read(buffer, memory, 0);
    ASSERT_TRUE(run([&] { return b.stat("rma_waited") == 1; }));
    EXPECT_EQ(tw_ep_close(b.ep), -EBUSY) << "a put is under way";
    simulator.filter = nullptr;
    b.wake();
    ASSERT_TRUE(finish());
    ASSERT_EQ(a.sent.size(), 1u);
    EXPECT_NE(a.sent[0].flags & TW_WRITE, 0u);
    ASSERT_EQ(a.errors.size(), 1u);
    EXPECT_NE(a.errors[0].entry.flags & TW_READ, 0u);
    EXPECT_EQ(a.errors[0].error, ECANCELED);
    EXPECT_EQ(buffer, "........");
}

}  // namespace
}  // namespace tagwire::test
