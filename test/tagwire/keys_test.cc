// SPDX-License-Identifier: BSD-3-Clause
// Authorization keys: row T20, from outside; and addresses that are removed.
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

class Keys : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = 10 * kSecond) {
        return simulator.run_until(done, limit);
    }
    void settle() { simulator.run_for(kSecond / 100); }

    static tw_addr insert_key(SimPeer& peer, const std::string& key) {
        tw_addr index = 0;
        EXPECT_EQ(tw_av_insert_auth_key(peer.av, key.data(), key.size(), &index), 0)
            << tw_last_error();
        return index;
    }
    static tw_addr insert(SimPeer& peer, const SimPeer& other, tw_addr key) {
        const tw_address address = other.name();
        tw_addr index = 0;
        EXPECT_EQ(tw_av_insert_with_key(peer.av, &address, key, &index), 0) << tw_last_error();
        return index;
    }

    sim::Simulator simulator{sim::seed() + 3};
    std::string buffer = std::string(100, '.');
};

TEST_F(Keys, of_endpoints_that_agree_let_messages_through) {
    SimPeer a(simulator.add_node(), {.auth_key = "secret"});
    SimPeer b(simulator.add_node(), {.auth_key = "secret"});
    const tw_addr from_a = b.address_of(a);
    b.receive(buffer, 1, 0, from_a);
    a.send(b, 1, "x");
    ASSERT_TRUE(run([&] { return b.received.size() == 1 && a.sent.size() == 1; }));
    EXPECT_EQ(b.received[0].source, from_a);
}

TEST_F(Keys, that_are_wrong_are_refused_and_counted_and_nothing_is_delivered) {
    SimPeer b(simulator.add_node(), {.auth_key = "secret"});
    SimPeer wrong(simulator.add_node(), {.auth_key = "guess"});
    SimPeer none(simulator.add_node());
    b.receive(buffer, 0, ~0ull);
    wrong.send(b, 1, "x");
    none.send(b, 1, "x");
    ASSERT_TRUE(run([&] { return wrong.errors.size() == 1 && none.errors.size() == 1; }));
    EXPECT_EQ(wrong.errors[0].error, EKEYREJECTED);
    EXPECT_EQ(none.errors[0].error, EKEYREJECTED);
    EXPECT_EQ(b.stat("drop_refused_key"), 2u);
    EXPECT_EQ(b.stat("rx_messages"), 0u);
}

TEST_F(Keys, of_the_vector_select_messages_for_receives) {
    SimPeer b(simulator.add_node());
    SimPeer red(simulator.add_node(), {.auth_key = "red"});
    SimPeer blue(simulator.add_node(), {.auth_key = "blue"});
    const tw_addr red_key = insert_key(b, "red");
    const tw_addr blue_key = insert_key(b, "blue");
    EXPECT_NE(red_key, blue_key);
    EXPECT_EQ(insert_key(b, "red"), red_key);
    const iovec iov{buffer.data(), buffer.size()};
    const tw_msg_tagged message{&iov, 1, blue_key, 0, ~0ull, nullptr, 0};
    ASSERT_EQ(tw_trecvmsg(b.ep, &message, TW_AUTH_KEY), 0);
    red.send(b, 1, "red");
    settle();
    EXPECT_TRUE(b.received.empty());
    blue.send(b, 2, "blue");
    ASSERT_TRUE(run([&] { return b.received.size() == 1; }));
    EXPECT_EQ(b.received[0].tag, 2u);
    // Unexpected messages are searched in the same way.
    const tw_msg_tagged peek{nullptr, 0, blue_key, 0, ~0ull, nullptr, 0};
    ASSERT_EQ(tw_trecvmsg(b.ep, &peek, TW_AUTH_KEY | TW_PEEK), 0);
    b.wake();
    ASSERT_TRUE(run([&] { return b.errors.size() == 1; }));
    EXPECT_EQ(b.errors[0].error, ENOMSG);
    const tw_msg_tagged other{&iov, 1, red_key, 0, ~0ull, nullptr, 0};
    ASSERT_EQ(tw_trecvmsg(b.ep, &other, TW_AUTH_KEY), 0);
    b.wake();
    ASSERT_TRUE(run([&] { return b.received.size() == 2; }));
    EXPECT_EQ(b.received[1].tag, 1u);
    EXPECT_EQ(tw_trecvmsg(b.ep, &other, TW_AUTH_KEY | TW_INJECT), -EINVAL);
    const tw_msg_tagged wrong{&iov, 1, b.address_of(red), 0, ~0ull, nullptr, 0};
    EXPECT_EQ(tw_trecvmsg(b.ep, &wrong, TW_AUTH_KEY), -EINVAL) << "not a key's index";
}

TEST_F(Keys, of_an_address_are_used_to_send) {
    SimPeer a(simulator.add_node());
    SimPeer b(simulator.add_node(), {.auth_key = "b's"});
    const tw_addr to_b = insert(a, b, insert_key(a, "b's"));
    const tw_addr plain = a.address_of(b);
    EXPECT_NE(plain, to_b);
    a.posted(tw_tsend(a.ep, "x", 1, to_b, 1, nullptr));
    a.posted(tw_tsend(a.ep, "x", 1, plain, 2, nullptr));
    b.receive(buffer, 0, ~0ull);
    ASSERT_TRUE(run([&] { return a.errors.size() == 1 && b.received.size() == 1; }));
    EXPECT_EQ(b.received[0].tag, 1u);
    EXPECT_EQ(a.errors[0].entry.tag, 2u);
    // And the answer carries the same key.
    a.receive(buffer, 3, 0, to_b);
    b.send(a, 3, "y");
    ASSERT_TRUE(run([&] { return a.received.size() == 1; }));
    EXPECT_EQ(a.received[0].source, to_b);
}

TEST_F(Keys, bad_arguments_are_refused) {
    SimPeer a(simulator.add_node());
    const std::string longest(TW_AUTH_KEY_MAX, 'k');
    const std::string longer(TW_AUTH_KEY_MAX + 1, 'k');
    tw_addr index = 0;
    EXPECT_EQ(tw_av_insert_auth_key(a.av, longest.data(), longest.size(), &index), 0);
    EXPECT_EQ(tw_av_insert_auth_key(a.av, longer.data(), longer.size(), &index), -EINVAL);
    EXPECT_EQ(tw_av_insert_auth_key(a.av, longer.data(), 0, &index), -EINVAL);
    EXPECT_EQ(tw_av_insert_auth_key(a.av, nullptr, 1, &index), -EINVAL);
    EXPECT_EQ(tw_av_remove(a.av, index), -EBUSY) << "an endpoint has the key";
    const tw_address address = a.name();
    EXPECT_EQ(tw_av_insert_with_key(a.av, &address, 999, &index), -EINVAL);
}

TEST_F(Keys, of_a_vector_without_endpoints_can_be_removed) {
    SimPeer a(simulator.add_node());
    SimPeer b(simulator.add_node(), {.auth_key = "b's"});
    tw_av* av = nullptr;
    ASSERT_EQ(tw_av_open(a.worker, &av), 0);
    tw_addr gone = 0;
    tw_addr kept = 0;
    ASSERT_EQ(tw_av_insert_auth_key(av, "b's", 3, &gone), 0);
    ASSERT_EQ(tw_av_insert_auth_key(av, "other", 5, &kept), 0);
    ASSERT_EQ(tw_av_remove(av, gone), 0) << tw_last_error();
    EXPECT_EQ(tw_av_remove(av, gone), -EINVAL);
    const tw_address address = b.name();
    tw_addr index = 0;
    EXPECT_EQ(tw_av_insert_with_key(av, &address, gone, &index), -EINVAL);
    EXPECT_EQ(tw_av_insert_with_key(av, &address, kept, &index), 0);
    tw_addr again = 0;
    ASSERT_EQ(tw_av_insert_auth_key(av, "b's", 3, &again), 0);
    EXPECT_NE(again, gone) << "indexes are not given out twice";
    EXPECT_EQ(tw_av_insert_with_key(av, &address, again, &index), 0);
    EXPECT_EQ(tw_av_close(av), 0);
}

class Removal : public SimPair {};

TEST_F(Removal, ends_an_address_and_its_index_is_not_used_again) {
    const tw_addr to_b = a.address_of(b);
    a.send(b, 1, "x");
    std::string buffer(10, '.');
    EXPECT_EQ(tw_av_remove(a.av, to_b), -EBUSY);
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    ASSERT_EQ(tw_av_remove(a.av, to_b), 0) << tw_last_error();
    EXPECT_EQ(tw_av_remove(a.av, to_b), -EINVAL);
    EXPECT_EQ(tw_tsend(a.ep, "x", 1, to_b, 1, nullptr), -EINVAL);
    tw_address address;
    EXPECT_EQ(tw_av_lookup(a.av, to_b, &address), -EINVAL);

    a.receive(buffer, 5);
    b.send(a, 5, "y");
    ASSERT_TRUE(run([&] { return a.received.size() == 1; }));
    EXPECT_EQ(a.received[0].source, TW_ADDR_NOTAVAIL);

    const tw_addr again = a.address_of(b);
    EXPECT_NE(again, to_b);
    a.receive(buffer, 6);
    b.send(a, 6, "z");
    ASSERT_TRUE(run([&] { return a.received.size() == 2; }));
    EXPECT_EQ(a.received[1].source, again);
}

}  // namespace
}  // namespace tagwire::test
