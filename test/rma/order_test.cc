// SPDX-License-Identifier: BSD-3-Clause
// The order of one peer's operations: against a model that executes them one by one.
#include <algorithm>
#include <deque>

#include "test/rma/rma_fixture.h"
#include "test/transport/frames.h"

namespace tagwire::test {
namespace {

// When the target's answers leave, told by its frames.
class Answers : public RmaPair {
  protected:
    void SetUp() override {
        write(pattern(1, 8), theirs, 0);  // the session stands
        ASSERT_TRUE(finish());
        settle();
        simulator.filter = [this](sim::Node& from, sim::Frame& frame) {
            if (from.index() == 1 && transport_test::is_sequenced(frame)) {
                left.push_back({transport_test::type_of(frame), turn});
            }
            return true;
        };
        b.each_turn = [this] {
            if (served == kNever && b.stat(counter) > before) {
                served = turn;
                if (reply) {
                    reply();
                }
            }
            ++turn;
        };
    }
    void expect_served(const char* what) {
        counter = what;
        before = b.stat(what);
    }

    static constexpr size_t kNever = SIZE_MAX;
    struct Left {
        wire::PacketType type;
        size_t turn;
    };
    Memory ours{a, 64};
    Memory theirs{b, 64};
    std::vector<Left> left;
    const char* counter = "rma_puts";
    uint64_t before = UINT64_MAX;
    size_t turn = 0, served = kNever;  // turns of b
    std::function<void()> reply;       // of b's program, in the turn that served
};

TEST_F(Answers, to_gets_and_atomics_leave_in_the_turn_that_served_them) {
    expect_served("rma_gets");
    std::string buffer(8, '.');
    read(buffer, theirs, 0);
    ASSERT_TRUE(finish());
    ASSERT_FALSE(left.empty());
    EXPECT_EQ(left[0].turn, served);

    left.clear();
    served = kNever;
    expect_served("rma_atomics");
    uint64_t operand = 1, result = 0;
    a.posted(tw_fetch_atomic(a.ep, &operand, 1, &result, a.address_of(b), theirs.address(8),
                             theirs.key(), TW_UINT64, TW_SUM, nullptr));
    ASSERT_TRUE(finish());
    ASSERT_FALSE(left.empty());
    EXPECT_EQ(left[0].turn, served);
}

TEST_F(Answers, of_a_program_leave_before_the_note_of_what_they_answer) {
    expect_served("rma_puts");
    const std::string back = pattern(2, 8);
    reply = [&] {
        b.posted(tw_write(b.ep, back.data(), back.size(), b.address_of(a), ours.address(),
                          ours.key(), nullptr));
    };
    write(pattern(3, 8), theirs, 16);
    ASSERT_TRUE(finish());
    settle();
    EXPECT_EQ(ours.bytes.substr(0, 8), back);
    ASSERT_GE(left.size(), 2u);
    EXPECT_EQ(left[0].type, wire::PacketType::kOperations);
    EXPECT_EQ(left[1].type, wire::PacketType::kGrant);
    EXPECT_EQ(left[0].turn, left[1].turn) << "in one burst";
}

class Order : public RmaPair {
  protected:
    static constexpr size_t kSize = 100'000;
    static constexpr size_t kLongestPut = 65'536;  // longer ones may overtake each other
    static constexpr size_t kLongestGet = 1'024;   // longer ones may see later puts

    struct Expected {
        std::string found;
        std::string expected;
    };

    uint64_t below(uint64_t bound) { return simulator.below(bound); }
    size_t some_length(size_t most) {
        return 1 + below(below(3) == 0 ? most : std::min<size_t>(most, 200));
    }

    void random_operation(Memory& memory) {
        const tw_addr to = a.address_of(b);
        switch (below(4)) {
            case 0: {
                const size_t length = some_length(kLongestPut), at = below(kSize - length);
                const std::string& payload = payloads.emplace_back(pattern(++count, length));
                shadow.replace(at, length, payload);
                a.posted(tw_write(a.ep, payload.data(), length, to, memory.address(at),
                                  memory.key(), nullptr));
                break;
            }
            case 1: {
                const size_t length = some_length(kLongestPut), at = below(kSize - length);
                const std::string& payload = payloads.emplace_back(pattern(++count, length));
                shadow.replace(at, length, payload);
                a.posted(tw_writedata(a.ep, payload.data(), length, data_sent++, to,
                                      memory.address(at), memory.key(), nullptr));
                break;
            }
            case 2: {
                const size_t length = some_length(kLongestGet), at = below(kSize - length);
                Expected& get = reads.emplace_back();
                get.found.assign(length, '.');
                get.expected = shadow.substr(at, length);
                a.posted(tw_read(a.ep, get.found.data(), length, to, memory.address(at),
                                 memory.key(), nullptr));
                break;
            }
            default: {
                const size_t at = 8 * below(kSize / 8);
                const uint64_t operand = below(1000);
                Expected& fetch = reads.emplace_back();
                fetch.found.assign(8, '.');
                fetch.expected = shadow.substr(at, 8);
                uint64_t value;
                std::memcpy(&value, shadow.data() + at, 8);
                value += operand;
                std::memcpy(shadow.data() + at, &value, 8);
                a.posted(tw_fetch_atomic(a.ep, &operand, 1, fetch.found.data(), to,
                                         memory.address(at), memory.key(), TW_UINT64, TW_SUM,
                                         nullptr));
            }
        }
    }

    std::string shadow = std::string(kSize, '\0');
    std::deque<Expected> reads;
    uint64_t data_sent = 0;
    uint64_t count = 0;
};

TEST_F(Order, random_operations_take_effect_one_after_the_other) {
    Memory memory(b, kSize);
    simulator.faults.loss = 0.01;
    simulator.faults.duplication = 0.01;
    simulator.faults.reordering = 0.02;
    for (int round = 0; round < 60; ++round) {
        for (int i = 0; i < 20; ++i) {
            random_operation(memory);
        }
        if (below(2) == 0) {
            ASSERT_TRUE(finish());
        } else {
            simulator.run_for(below(200'000));
        }
    }
    ASSERT_TRUE(finish());
    EXPECT_TRUE(a.errors.empty());
    EXPECT_TRUE(memory.bytes == shadow);
    for (const Expected& read : reads) {
        ASSERT_TRUE(read.found == read.expected);
    }
    ASSERT_EQ(b.received.size(), data_sent);
    for (size_t i = 0; i < data_sent; ++i) {
        ASSERT_EQ(b.received[i].data, i) << "data out of order";
    }
    EXPECT_GT(b.stat("rma_waited"), 0u) << "nothing had to wait: the test shows little";
}

TEST_F(Order, small_put_waits_for_the_large_one_before_it) {
    Memory memory(b, 1'000'000);
    const std::string large = pattern(1, 1'000'000), flag = "ready";
    bool early = false;
    write(large, memory, 0);
    write(flag, memory, 0);
    ASSERT_TRUE(run([&] {
        early = early || (memory.bytes.compare(0, 5, flag) == 0 &&
                          memory.bytes.compare(5, 999'995, large, 5, 999'995) != 0);
        return a.sent.size() == 2;
    }));
    EXPECT_FALSE(early);
    EXPECT_EQ(memory.bytes.substr(0, 5), flag);
}

TEST_F(Order, large_puts_do_not_wait_for_each_other) {
    Memory memory(b, 3'000'000);
    const std::string one = pattern(1, 1'000'000), two = pattern(2, 1'000'000);
    write(one, memory, 0);
    write(two, memory, 1'000'000);
    ASSERT_TRUE(finish());
    EXPECT_EQ(b.stat("rma_waited"), 0u);
    EXPECT_EQ(memory.bytes.substr(0, 2'000'000), one + two);
}

TEST_F(Order, answers_to_a_former_life_reach_nobody) {
    Memory memory(b, 200'000);
    memory.at<uint64_t>(0) = 11;
    memory.at<uint64_t>(8) = 22;
    write("", memory, 0);  // a session
    ASSERT_TRUE(finish());
    const auto fetch = [&](uint64_t& word, size_t offset) {
        a.posted(tw_read(a.ep, &word, 8, a.address_of(b), memory.address(offset), memory.key(),
                         nullptr));
    };
    const std::string large = pattern(1, 60'000);
    uint64_t old[8] = {}, words[8] = {};
    int frames = 0;  // the put stays incomplete, and the gets wait behind it
    simulator.filter = [&](sim::Node& from, sim::Frame& frame) {
        return &from != &simulator.node(0) || frame.size() < 500 || ++frames < 5;
    };
    write(large, memory, 1000);
    for (uint64_t& word : old) {
        fetch(word, 0);
    }
    ASSERT_TRUE(run([&] { return b.stat("rma_waited") == 8; }));
    a.die();
    a.start();
    simulator.filter = nullptr;
    for (uint64_t& word : words) {
        fetch(word, 8);
    }
    ASSERT_TRUE(run([&] { return a.ended() >= 8; }));
    settle();
    EXPECT_EQ(a.errors.size(), 0u);
    for (const uint64_t word : words) {
        EXPECT_EQ(word, 22u);
    }
    EXPECT_EQ(a.stat("rma_stale_replies"), 0u);
}

TEST_F(Order, a_reply_that_names_another_operation_is_dropped) {
    Memory memory(b, 64);
    memory.at<uint64_t>(0) = 11;
    write("", memory, 0);
    ASSERT_TRUE(finish());
    a.sent.clear();
    simulator.filter = [&](sim::Node& from, sim::Frame& frame) {
        if (&from == &simulator.node(1) &&
            transport_test::type_of(frame) == wire::PacketType::kOperations) {
            auto& record = *reinterpret_cast<wire::OperationHeader*>(
                frame.data() + sizeof(wire::FrameHeader) + sizeof(wire::MessagesHeader));
            record.tag = record.tag ^ uint64_t { 1 } << 40;
            transport_test::fix_checksums(frame);
        }
        return true;
    };
    std::string word(8, '.');
    read(word, memory, 0);
    ASSERT_TRUE(run([&] { return a.stat("rma_stale_replies") == 1; }));
    settle();
    EXPECT_EQ(word, "........");
    EXPECT_EQ(a.ended(), 0u);
    simulator.filter = nullptr;
    a.posted(tw_ep_reset_peer(a.ep, a.address_of(b)));
    ASSERT_TRUE(run([&] { return a.ended() == 1; }));
    ASSERT_EQ(a.errors.size(), 1u);
    EXPECT_EQ(a.errors[0].error, ECANCELED);
}

// A get, and one behind a fence. The answer to the peer's get comes behind that fence.
class FencedGets : public Order {
  protected:
    struct Side {
        SimPeer& from;
        SimPeer& to;
        Memory& memory;
        uint64_t in[2] = {};

        void post() {
            const tw_addr peer = from.address_of(to);
            ASSERT_EQ(tw_read(from.ep, &in[0], 8, peer, memory.address(), memory.key(), nullptr),
                      0);
            const iovec piece{&in[1], 8};
            const tw_rma_iov target{memory.address(8), 8, memory.key()};
            tw_msg_rma message{};
            message.iov = &piece;
            message.iov_count = 1;
            message.addr = peer;
            message.rma_iov = &target;
            message.rma_iov_count = 1;
            from.posted(tw_readmsg(from.ep, &message, TW_FENCE | TW_COMPLETION));
        }
    };
};

TEST_F(FencedGets, of_both_sides_do_not_wait_for_each_other) {
    Memory of_a(a, 64), of_b(b, 64);
    of_a.at<uint64_t>(0) = 1, of_a.at<uint64_t>(8) = 2;
    of_b.at<uint64_t>(0) = 3, of_b.at<uint64_t>(8) = 4;
    Side ahead{a, b, of_b};
    Side back{b, a, of_a};
    for (size_t round = 1; round <= 3; ++round) {
        for (int i = 0; i < 20; ++i) {
            ahead.post();
            back.post();
        }
        ASSERT_TRUE(run([&] { return a.sent.size() == 40 * round && b.sent.size() == 40 * round; }))
            << "round " << round;
    }
    EXPECT_EQ(ahead.in[0], 3u);
    EXPECT_EQ(ahead.in[1], 4u);
    EXPECT_EQ(back.in[0], 1u);
    EXPECT_EQ(back.in[1], 2u);
}

TEST_F(FencedGets, of_ones_own_memory_end) {
    Memory memory(a, 64);
    memory.at<uint64_t>(8) = 5;
    Side self{a, a, memory};
    for (int i = 0; i < 20; ++i) {
        self.post();
    }
    ASSERT_TRUE(run([&] { return a.sent.size() == 40; }));
    EXPECT_EQ(self.in[1], 5u);
}

TEST_F(Order, a_peer_that_dies_in_the_middle_leaves_the_rest_to_others) {
    Memory memory(b, 500'000);
    SimPeer c{simulator.add_node()};
    const std::string large = pattern(1, 400'000), small = "small";
    write(large, memory, 0);
    write(small, memory, 0);
    ASSERT_TRUE(run([&] { return b.stat("rma_waited") != 0; }));
    a.die();
    a.start();
    c.posted(tw_write(c.ep, small.data(), small.size(), c.address_of(b), memory.address(450'000),
                      memory.key(), nullptr));
    ASSERT_TRUE(run([&] { return c.sent.size() == 1; }));
    write(small, memory, 450'100);  // the restarted peer
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    EXPECT_EQ(memory.bytes.substr(450'000, 5), small);
    EXPECT_EQ(memory.bytes.substr(450'100, 5), small);
}

}  // namespace
}  // namespace tagwire::test
