// SPDX-License-Identifier: BSD-3-Clause
// What flags, counters and flush promise, from outside.
#include "test/rma/rma_fixture.h"

namespace tagwire::test {
namespace {

class RmaFlags : public RmaPair {
  protected:
    void SetUp() override {  // a session, so that a cut line is all that holds things up
        write("x", memory, 0);
        ASSERT_TRUE(finish());
        a.sent.clear();
    }
    int put(const std::string& bytes, size_t offset, uint64_t flags, uint64_t data = 0) {
        const std::string& payload = payloads.emplace_back(bytes);
        const iovec iov{const_cast<char*>(payload.data()), payload.size()};
        const tw_rma_iov remote{memory.address(offset), payload.size(), memory.key()};
        const tw_msg_rma message{&iov, 1, a.address_of(b), &remote, 1, &context, data};
        const int result = tw_writemsg(a.ep, &message, flags);
        a.wake();
        return result;
    }
    // Nothing of b's reaches a.
    void cut_answers() {
        simulator.filter = [this](sim::Node& from, sim::Frame&) {
            return &from != &simulator.node(1);
        };
    }
    void restore() { simulator.filter = nullptr; }
    bool placed(size_t offset, const std::string& payload) {
        return run([&] { return memory.bytes.compare(offset, payload.size(), payload) == 0; });
    }

    Memory memory{b, 500'000};
    int context = 0;
    const std::string payload = pattern(1, 100);
};

TEST_F(RmaFlags, inject_frees_the_buffer_and_completes_nothing) {
    std::string buffer = pattern(1, TW_INJECT_SIZE);
    const std::string sent = buffer;
    a.posted(tw_inject_write(a.ep, buffer.data(), buffer.size(), a.address_of(b), memory.address(8),
                             memory.key()));
    buffer.assign(buffer.size(), 'x');
    EXPECT_EQ(tw_inject_write(a.ep, payload.data(), TW_INJECT_SIZE + 1, a.address_of(b),
                              memory.address(8), memory.key()),
              -EINVAL);
    ASSERT_TRUE(finish());
    EXPECT_EQ(memory.bytes.substr(8, sent.size()), sent);
    EXPECT_TRUE(a.sent.empty());
}

TEST_F(RmaFlags, inject_that_fails_completes_with_its_error) {
    a.posted(tw_inject_write(a.ep, "x", 1, a.address_of(b), memory.address(), memory.key() + 1));
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }));
    EXPECT_EQ(a.errors[0].error, ENOKEY);
    EXPECT_EQ(a.errors[0].entry.context, nullptr);
}

TEST_F(RmaFlags, inject_completes_at_once_where_asked) {
    cut_answers();
    ASSERT_EQ(put("hello", 0, TW_INJECT | TW_INJECT_COMPLETE | TW_COMPLETION), 0);
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    EXPECT_EQ(a.sent[0].context, &context);
    restore();
    ASSERT_TRUE(finish());
    EXPECT_EQ(a.sent.size(), 1u);
}

TEST_F(RmaFlags, put_completes_when_the_target_says_that_it_is_placed) {
    for (const uint64_t level : {0ull, TW_TRANSMIT_COMPLETE, TW_DELIVERY_COMPLETE}) {
        cut_answers();
        a.sent.clear();
        const std::string bytes = pattern(level, 100);
        ASSERT_EQ(put(bytes, 100, level), 0);
        ASSERT_TRUE(placed(100, bytes));
        settle();
        EXPECT_TRUE(a.sent.empty());
        restore();
        ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    }
    EXPECT_EQ(put(payload, 0, TW_TRANSMIT_COMPLETE | TW_DELIVERY_COMPLETE), -EINVAL);
    EXPECT_EQ(put(payload, 0, TW_PEEK), -EINVAL);
}

TEST_F(RmaFlags, data_is_reported_at_the_target) {
    const std::string large = pattern(2, 300'000);
    const tw_addr source = b.address_of(a);
    a.posted(tw_writedata(a.ep, payload.data(), payload.size(), 0x1122334455667788, a.address_of(b),
                          memory.address(), memory.key(), &context));
    a.posted(tw_writedata(a.ep, large.data(), large.size(), 2, a.address_of(b),
                          memory.address(1000), memory.key(), &context));
    a.posted(tw_writedata(a.ep, nullptr, 0, 3, a.address_of(b), 0, 0, &context));
    a.posted(tw_inject_writedata(a.ep, "four", 4, 4, a.address_of(b), memory.address(200),
                                 memory.key()));
    ASSERT_EQ(put("five", 210, TW_REMOTE_CQ_DATA, 5), 0);
    ASSERT_TRUE(run([&] { return b.received.size() == 5; }));
    const uint64_t data[] = {0x1122334455667788, 2, 3, 4, 5};
    const size_t lengths[] = {100, 300'000, 0, 4, 4};
    for (size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(b.received[i].flags, TW_RMA | TW_REMOTE_WRITE | TW_REMOTE_CQ_DATA);
        EXPECT_EQ(b.received[i].data, data[i]);
        EXPECT_EQ(b.received[i].length, lengths[i]);
        EXPECT_EQ(b.received[i].source, source);
    }
    EXPECT_EQ(memory.bytes.substr(0, 100), payload);
    EXPECT_TRUE(memory.bytes.compare(1000, large.size(), large) == 0);
    EXPECT_EQ(memory.bytes.substr(200, 4), "four");
    ASSERT_TRUE(run([&] { return a.sent.size() == 4; }));
}

TEST_F(RmaFlags, put_has_a_limit) {
    static char byte;
    EXPECT_EQ(tw_writedata(a.ep, &byte, TW_MAX_MESSAGE_SIZE + 1, 1, a.address_of(b), 0, 0, nullptr),
              -EMSGSIZE);
}

TEST_F(RmaFlags, fence_waits_for_gets_and_puts_before_it) {
    std::string buffer(8, '.');
    cut_answers();
    read(buffer, memory, 0);
    ASSERT_EQ(put("plain", 100, 0), 0);
    ASSERT_EQ(put("fenced", 200, TW_FENCE), 0);
    ASSERT_EQ(put("later", 300, 0), 0);
    ASSERT_TRUE(placed(100, "plain"));
    settle();
    EXPECT_EQ(memory.bytes[200], '\0');
    EXPECT_EQ(memory.bytes[300], '\0') << "later ones wait behind the fence";
    restore();
    ASSERT_TRUE(placed(200, "fenced"));
    ASSERT_TRUE(placed(300, "later"));
    ASSERT_TRUE(run([&] { return a.sent.size() == 4; }));
}

TEST_F(RmaFlags, message_with_a_fence_waits_for_an_atomic) {
    cut_answers();
    const uint64_t one = 1;
    a.posted(tw_atomic(a.ep, &one, 1, a.address_of(b), memory.address(8), memory.key(), TW_UINT64,
                       TW_SUM, nullptr));
    const iovec iov{const_cast<char*>(payload.data()), payload.size()};
    const tw_msg_tagged message{&iov, 1, a.address_of(b), 5, 0, nullptr, 0};
    a.posted(tw_tsendmsg(a.ep, &message, TW_FENCE));
    ASSERT_TRUE(run([&] { return memory.at<uint64_t>(8) == 1; }));
    settle();
    EXPECT_EQ(b.stat("unexpected_messages"), 0u);
    restore();
    ASSERT_TRUE(run([&] { return b.stat("unexpected_messages") == 1; }));
}

TEST_F(RmaFlags, flush_ends_after_what_was_begun_before_it) {
    const std::string large = pattern(3, 400'000);
    std::string buffer(100'000, '.');
    write(large, memory, 0);
    read(buffer, memory, 0);
    a.posted(tw_ep_flush(a.ep, a.address_of(b), &context));
    ASSERT_TRUE(run([&] { return a.sent.size() == 3; }));
    EXPECT_EQ(a.sent[2].flags, TW_FLUSH);
    EXPECT_EQ(a.sent[2].context, &context);
    EXPECT_TRUE(memory.bytes.compare(0, large.size(), large) == 0);
}

TEST_F(RmaFlags, flush_does_not_wait_for_later_operations) {
    ASSERT_EQ(put("first", 0, 0), 0);
    a.posted(tw_ep_flush(a.ep, a.address_of(b), &context));
    const std::string large = pattern(3, 400'000);
    write(large, memory, 100);
    ASSERT_TRUE(run([&] { return a.sent.size() == 2; }));
    EXPECT_EQ(a.sent[1].flags, TW_FLUSH);
    ASSERT_TRUE(finish());
}

TEST_F(RmaFlags, flush_with_nothing_to_wait_for_and_to_all_peers) {
    a.posted(tw_ep_flush(a.ep, a.address_of(b), &context));
    ASSERT_EQ(tw_ep_flush(a.ep, TW_ADDR_UNSPEC, &context), 0);
    ASSERT_TRUE(run([&] { return a.sent.size() == 2; }));
    SimPeer c{simulator.add_node()};
    Memory other(c, 100);
    a.posted(tw_write(a.ep, "c", 1, a.address_of(c), other.address(), other.key(), nullptr));
    ASSERT_EQ(put("b", 0, 0), 0);
    a.posted(tw_ep_flush(a.ep, TW_ADDR_UNSPEC, &context));
    ASSERT_TRUE(run([&] { return a.sent.size() == 5; }));
    EXPECT_EQ(a.sent[4].flags, TW_FLUSH);
    EXPECT_EQ(other.bytes[0], 'c');
    other.close();
}

TEST_F(RmaFlags, flush_ends_with_the_session) {
    cut_answers();
    ASSERT_EQ(put("first", 0, 0), 0);
    a.posted(tw_ep_flush(a.ep, a.address_of(b), &context));
    ASSERT_TRUE(run([&] { return a.errors.size() == 2; }, 30 * kSecond));
    EXPECT_EQ(a.errors[0].error, ETIMEDOUT);
    EXPECT_EQ(a.errors[1].entry.flags, TW_FLUSH);
    EXPECT_EQ(a.stat("rma_outstanding"), 0u);
}

TEST_F(RmaFlags, flush_takes_messages_along) {
    std::string buffer(400'000, '.');
    const std::string large = pattern(3, 400'000);
    a.send(b, 1, large);
    a.posted(tw_ep_flush(a.ep, a.address_of(b), &context));
    settle();
    EXPECT_TRUE(a.sent.empty()) << "the message waits for its receive";
    b.receive(buffer, 1);
    ASSERT_TRUE(run([&] { return a.sent.size() == 2; }));
    EXPECT_EQ(a.sent[1].flags, TW_FLUSH);
}

TEST_F(RmaFlags, records_go_on_behind_a_flush) {
    for (uint64_t i = 0; i < 200; ++i) {
        a.send(b, i, pattern(i, 8));
        a.posted(tw_ep_flush(a.ep, a.address_of(b), &context));
    }
    ASSERT_TRUE(run([&] { return a.sent.size() == 400; }));
    for (size_t i = 0; i < 400; ++i) {
        ASSERT_EQ(a.sent[i].flags, i % 2 == 0 ? TW_SEND | TW_TAGGED : TW_FLUSH) << i;
    }
}

TEST_F(RmaFlags, a_dead_target_ends_each_operation_once) {
    std::string buffer(8, '.');
    const uint64_t one = 1;
    cut_answers();
    ASSERT_EQ(put("first", 0, 0), 0);
    read(buffer, memory, 0);
    a.posted(tw_atomic(a.ep, &one, 1, a.address_of(b), memory.address(8), memory.key(), TW_UINT64,
                       TW_SUM, nullptr));
    ASSERT_TRUE(run([&] { return a.errors.size() == 3; }, 30 * kSecond));
    restore();
    settle();
    EXPECT_EQ(a.errors.size(), 3u);
    EXPECT_TRUE(a.sent.empty());
    for (const tw_cq_error& error : a.errors) {
        EXPECT_EQ(error.error, ETIMEDOUT);
    }
    EXPECT_EQ(a.stat("rma_outstanding"), 0u);
}

class RmaCounters : public testing::Test {
  protected:
    struct Bound {
        Bound(SimPeer& peer, tw_ep* ep, uint64_t flags) {
            EXPECT_EQ(tw_cntr_open(peer.worker, &cntr), 0);
            EXPECT_EQ(tw_ep_bind_cntr(ep, cntr, flags), 0) << tw_last_error();
        }
        uint64_t value() const { return tw_cntr_read(cntr); }
        tw_cntr* cntr = nullptr;
    };
    // A second endpoint of the peer, not enabled.
    static tw_ep* endpoint(SimPeer& peer) {
        tw_ep* ep = nullptr;
        EXPECT_EQ(tw_ep_open(peer.worker, nullptr, &ep), 0);
        EXPECT_EQ(tw_ep_bind_av(ep, peer.av), 0);
        EXPECT_EQ(tw_ep_bind_cq(ep, peer.cq, TW_SEND | TW_RECV), 0);
        return ep;
    }
    bool run(const std::function<bool()>& done) { return simulator.run_until(done, 10 * kSecond); }

    sim::Simulator simulator{sim::seed() + 1};
    SimPeer a{simulator.add_node()};
    SimPeer b{simulator.add_node()};
};

TEST_F(RmaCounters, count_at_both_ends) {
    tw_ep* from = endpoint(a);
    tw_ep* to = endpoint(b);
    const Bound writes(a, from, TW_WRITE), reads(a, from, TW_READ);
    const Bound written(b, to, TW_REMOTE_WRITE), was_read(b, to, TW_REMOTE_READ);
    EXPECT_EQ(tw_ep_bind_cntr(from, writes.cntr, TW_WRITE), -EBUSY);
    EXPECT_EQ(tw_ep_bind_cntr(from, writes.cntr, TW_TAGGED), -EINVAL);
    ASSERT_EQ(tw_ep_enable(from), 0);
    ASSERT_EQ(tw_ep_enable(to), 0);
    Memory memory(b, 64, TW_REMOTE_READ | TW_REMOTE_WRITE, TW_RMA_EVENT);
    Memory silent(b, 64);
    tw_cntr *region_written = nullptr, *region_read = nullptr;
    ASSERT_EQ(tw_cntr_open(b.worker, &region_written), 0);
    ASSERT_EQ(tw_cntr_open(b.worker, &region_read), 0);
    EXPECT_EQ(tw_mr_bind_cntr(silent.mr, region_written, TW_REMOTE_WRITE), -EINVAL);
    EXPECT_EQ(tw_mr_bind_cntr(memory.mr, region_written, TW_SEND), -EINVAL);
    ASSERT_EQ(tw_mr_bind_cntr(memory.mr, region_written, TW_REMOTE_WRITE), 0);
    ASSERT_EQ(tw_mr_bind_cntr(memory.mr, region_read, TW_REMOTE_READ), 0);
    EXPECT_EQ(tw_mr_bind_cntr(memory.mr, region_read, TW_REMOTE_READ), -EBUSY);
    EXPECT_EQ(tw_cntr_close(region_read), -EBUSY);

    tw_address name;
    ASSERT_EQ(tw_ep_name(to, &name), 0);
    tw_addr dest = 0;
    ASSERT_EQ(tw_av_insert(a.av, &name, &dest), 0);
    uint64_t word = 1;
    const uint64_t address = memory.address(), key = memory.key();
    a.posted(tw_write(from, &word, 8, dest, address, key, nullptr));
    a.posted(tw_inject_write(from, &word, 8, dest, address, key));
    a.posted(tw_atomic(from, &word, 1, dest, address, key, TW_UINT64, TW_SUM, nullptr));
    a.posted(tw_read(from, &word, 8, dest, address, key, nullptr));
    uint64_t result = 0;
    a.posted(
        tw_fetch_atomic(from, &word, 1, &result, dest, address, key, TW_UINT64, TW_SUM, nullptr));
    a.posted(tw_write(from, &word, 8, dest, silent.address(), silent.key(), nullptr));
    a.posted(tw_write(from, &word, 8, dest, address, key + 1, nullptr));
    a.posted(tw_ep_flush(from, dest, nullptr));
    ASSERT_TRUE(run([&] { return a.ended() == 7; }));
    EXPECT_EQ(writes.value(), 4u);
    EXPECT_EQ(tw_cntr_readerr(writes.cntr), 1u);
    EXPECT_EQ(reads.value(), 2u);
    EXPECT_EQ(written.value(), 4u);
    EXPECT_EQ(was_read.value(), 2u);
    EXPECT_EQ(tw_cntr_read(region_written), 3u);
    EXPECT_EQ(tw_cntr_read(region_read), 2u);
    memory.close();
    silent.close();
    EXPECT_EQ(tw_cntr_close(region_read), 0);
    EXPECT_EQ(tw_cntr_close(region_written), 0);
    ASSERT_TRUE(run([&] {
        a.wake();
        return tw_ep_close(from) == 0;
    }));
    ASSERT_TRUE(run([&] {
        b.wake();
        return tw_ep_close(to) == 0;
    }));
    for (const Bound* bound : {&writes, &reads, &written, &was_read}) {
        EXPECT_EQ(tw_cntr_close(bound->cntr), 0);
    }
}

TEST(RmaSelective, only_flagged_operations_and_errors_complete) {
    sim::Simulator simulator{sim::seed() + 1};
    PeerOptions options;
    options.cq_flags = TW_SELECTIVE_COMPLETION;
    SimPeer a{simulator.add_node(), options};
    SimPeer b{simulator.add_node()};
    Memory memory(b, 64);
    int silent = 0, flagged = 0;
    std::string word(8, '.');
    const tw_addr to = a.address_of(b);
    a.posted(tw_write(a.ep, word.data(), 8, to, memory.address(), memory.key(), &silent));
    a.posted(tw_read(a.ep, word.data(), 8, to, memory.address(), memory.key(), &silent));
    const iovec iov{word.data(), 8};
    const tw_rma_iov remote{memory.address(), 8, memory.key()};
    const tw_msg_rma message{&iov, 1, to, &remote, 1, &flagged, 0};
    a.posted(tw_readmsg(a.ep, &message, TW_COMPLETION));
    a.posted(tw_write(a.ep, word.data(), 8, to, memory.address(), memory.key() + 1, &silent));
    a.posted(tw_ep_flush(a.ep, to, &flagged));
    ASSERT_TRUE(simulator.run_until([&] { return a.ended() == 3; }, kSecond));
    simulator.run_for(kSecond / 100);
    EXPECT_EQ(a.ended(), 3u);
    EXPECT_EQ(a.errors.size(), 1u);
    EXPECT_EQ(a.sent[0].context, &flagged);
    EXPECT_EQ(a.sent[1].flags, TW_FLUSH);
    memory.close();
}

// The target's completion queue is full: puts with data wait, and nothing is lost.
TEST(RmaStalled, data_waits_for_room_in_the_completion_queue) {
    sim::Simulator simulator{sim::seed() + 1};
    PeerOptions options;
    options.cq_entries = 4;
    SimPeer a{simulator.add_node()};
    SimPeer b{simulator.add_node(), options};
    Memory memory(b, 64);
    b.read_completions = false;
    uint64_t words[20];
    for (uint64_t i = 0; i < 20; ++i) {
        words[i] = i;
        a.posted(tw_writedata(a.ep, &words[i], 8, i, a.address_of(b), memory.address(),
                              memory.key(), nullptr));
    }
    const auto run = [&](auto done) { return simulator.run_until(done, 10 * kSecond); };
    ASSERT_TRUE(run([&] { return a.sent.size() == 4; }));
    simulator.run_for(kSecond / 100);
    EXPECT_EQ(a.sent.size(), 4u);
    EXPECT_EQ(memory.at<uint64_t>(0), 3u) << "one was placed that could not be reported";
    EXPECT_GT(b.stat("rma_stalled"), 0u);
    b.read_completions = true;
    b.wake();
    ASSERT_TRUE(run([&] {
        b.wake();
        return a.sent.size() == 20 && b.received.size() == 20;
    }));
    for (uint64_t i = 0; i < 20; ++i) {
        EXPECT_EQ(b.received[i].data, i);
    }
    memory.close();
}

// More requests than the pool of replies holds: the rest waits its turn.
TEST(RmaStalled, requests_wait_for_replies) {
    sim::Simulator simulator{sim::seed() + 1};
    PeerOptions few;
    few.max_operations = 64;
    SimPeer a{simulator.add_node()};
    SimPeer b{simulator.add_node(), few};
    Memory memory(b, 64);
    const uint64_t one = 1;
    for (int i = 0; i < 1000; ++i) {
        a.posted(tw_atomic(a.ep, &one, 1, a.address_of(b), memory.address(), memory.key(),
                           TW_UINT64, TW_SUM, nullptr));
    }
    ASSERT_TRUE(simulator.run_until([&] { return a.sent.size() == 1000; }, 10 * kSecond));
    EXPECT_EQ(memory.at<uint64_t>(0), 1000u);
    memory.close();
}

}  // namespace
}  // namespace tagwire::test
