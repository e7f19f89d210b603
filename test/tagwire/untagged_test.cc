// SPDX-License-Identifier: BSD-3-Clause
// Untagged messages, fi_msg(3), from outside.
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

class Untagged : public SimPair {
  protected:
    void receive(tw_addr source = TW_ADDR_UNSPEC, void* context = nullptr) {
        b.posted(tw_recv(b.ep, buffer.data(), buffer.size(), source, context));
    }
    std::string buffer = std::string(400'000, '.');
    int context = 0;
};

TEST_F(Untagged, arrive_in_order_in_receives_posted_before_and_after) {
    receive();
    a.posted(tw_send(a.ep, "one", 3, a.address_of(b), &context));
    a.posted(tw_inject(a.ep, "three", 5, a.address_of(b)));
    a.posted(tw_senddata(a.ep, "seven77", 7, 42, a.address_of(b), nullptr));
    a.posted(tw_injectdata(a.ep, "", 0, 43, a.address_of(b)));
    settle();
    for (int i = 0; i < 3; ++i) {
        receive();
    }
    ASSERT_TRUE(run([&] { return b.received.size() == 4 && a.sent.size() == 2; }));
    const size_t lengths[] = {3, 5, 7, 0};
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(b.received[i].length, lengths[i]);
        EXPECT_EQ(b.received[i].flags & ~TW_REMOTE_CQ_DATA, TW_RECV | TW_MSG);
    }
    EXPECT_EQ(b.received[2].data, 42u);
    EXPECT_EQ(b.received[3].data, 43u);
    EXPECT_EQ(a.sent[0].flags, TW_SEND | TW_MSG);
    EXPECT_EQ(a.sent[0].context, &context);
}

TEST_F(Untagged, and_tagged_ones_do_not_meet) {
    std::string tagged(10, '.');
    b.receive(tagged, 0, ~0ull);
    a.posted(tw_send(a.ep, "plain", 5, a.address_of(b), nullptr));
    settle();
    EXPECT_TRUE(b.received.empty());
    a.send(b, 7, "tag");
    receive();
    settle();
    ASSERT_EQ(b.received.size(), 2u);
    EXPECT_EQ(tagged.substr(0, 3), "tag");
    EXPECT_EQ(buffer.substr(0, 5), "plain");
}

TEST_F(Untagged, honour_the_source) {
    SimPeer c(simulator.add_node());
    receive(b.address_of(c), &context);
    a.posted(tw_send(a.ep, "from a", 6, a.address_of(b), nullptr));
    settle();
    EXPECT_TRUE(b.received.empty());
    c.posted(tw_send(c.ep, "from c", 6, c.address_of(b), nullptr));
    ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
    EXPECT_EQ(buffer.substr(0, 6), "from c");
}

TEST_F(Untagged, vectors_and_sizes) {
    const std::string large = pattern(3, 300'000);
    const iovec out[] = {{const_cast<char*>(large.data()), 1},
                         {const_cast<char*>(large.data()) + 1, 1000},
                         {nullptr, 0},
                         {const_cast<char*>(large.data()) + 1001, 298'999}};
    const iovec in[] = {{buffer.data(), 100}, {buffer.data() + 100, 300'000}};
    b.posted(tw_recvv(b.ep, in, 2, TW_ADDR_UNSPEC, nullptr));
    a.posted(tw_sendv(a.ep, out, 4, a.address_of(b), nullptr));
    ASSERT_TRUE(run([&] { return b.received.size() == 1 && a.sent.size() == 1; }));
    EXPECT_EQ(buffer.substr(0, large.size()), large);
}

TEST_F(Untagged, can_be_cancelled_and_truncated) {
    receive(TW_ADDR_UNSPEC, &context);
    ASSERT_EQ(tw_cancel(b.ep, &context), 0);
    b.wake();
    std::string small(2, '\0');
    b.posted(tw_recv(b.ep, small.data(), 2, TW_ADDR_UNSPEC, nullptr));
    a.posted(tw_send(a.ep, "three", 5, a.address_of(b), nullptr));
    ASSERT_TRUE(run([&] { return b.errors.size() == 2; }));
    EXPECT_EQ(b.errors[0].error, ECANCELED);
    EXPECT_EQ(b.errors[0].entry.flags, TW_RECV | TW_MSG);
    EXPECT_EQ(b.errors[1].error, TW_ETRUNC);
    EXPECT_EQ(b.errors[1].message_length, 5u);
}

TEST_F(Untagged, refuse_what_only_tagged_ones_have) {
    const iovec iov{buffer.data(), 10};
    const tw_msg message{&iov, 1, TW_ADDR_UNSPEC, &context, 0};
    for (const uint64_t flags : {TW_PEEK, TW_CLAIM, TW_DISCARD, TW_INJECT}) {
        EXPECT_EQ(tw_recvmsg(b.ep, &message, flags), -EINVAL);
    }
}

TEST_F(Untagged, levels_hold) {
    const iovec iov{buffer.data(), 3};
    const tw_msg message{&iov, 1, a.address_of(b), &context, 0};
    a.posted(tw_sendmsg(a.ep, &message, TW_MATCH_COMPLETE));
    settle();
    EXPECT_TRUE(a.sent.empty());
    receive();
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
}

}  // namespace
}  // namespace tagwire::test
