// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints whose messages meet the receives of another endpoint, from outside.
#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "test/tagwire/connect_peer.h"

namespace tagwire::test {
namespace {

// Connections of one client, which share the server's connectionless endpoint.
class Receiver : public ConnectPair {
  protected:
    struct Link {
        tw_ep* at_client;
        tw_ep* at_server;
    };
    void SetUp() override { server.receiver = server.peer.ep; }
    Link link() {
        connect_pair();
        return {at_client, at_server};
    }
    void receive(std::string& buffer, uint64_t tag, void* context = nullptr) {
        server.peer.receive(buffer, tag, 0, TW_ADDR_UNSPEC, context);
    }
    // Of what waits unexpected: its length, or -ENOMSG.
    int64_t look(uint64_t tag, uint64_t flags = 0, tw_context* context = nullptr) {
        const auto& peer = server.peer;
        const size_t seen = peer.received.size(), failed = peer.errors.size();
        const tw_msg_tagged message{nullptr, 0, TW_ADDR_UNSPEC, tag, 0, context, 0};
        server.peer.posted(tw_trecvmsg(peer.ep, &message, TW_PEEK | flags));
        EXPECT_TRUE(run([&] { return peer.received.size() + peer.errors.size() > seen + failed; }));
        return peer.errors.size() > failed ? -peer.errors.back().error
                                           : static_cast<int64_t>(peer.received.back().length);
    }
    bool close(const Link& link) {
        const bool closed = run([&] { return client.close(link.at_client); }) &&
                            run([&] { return server.close(link.at_server); });
        settle();  // the sessions close
        return closed;
    }
};

TEST_F(Receiver, TakesTheMessagesOfAllConnectionsAndOfPeersWithoutOne) {
    const Link links[] = {link(), link()};
    std::string buffers[4];
    for (size_t i = 0; i < std::size(buffers); ++i) {
        buffers[i].assign(400'000, '.');
        receive(buffers[i], i, &buffers[i]);
    }
    client.send(links[1].at_client, 0, pattern(0, 400'000));
    client.send(links[0].at_client, 1, pattern(1, 8));
    client.send(links[0].at_client, 2, pattern(2, 100'000));
    client.peer.send(server.peer, 3, pattern(3, 20));
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 4; }));
    const size_t lengths[] = {400'000, 8, 100'000, 20};
    for (const tw_cq_entry& entry : server.peer.received) {
        EXPECT_EQ(entry.context, &buffers[entry.tag]);
        EXPECT_EQ(entry.length, lengths[entry.tag]);
        EXPECT_EQ(buffers[entry.tag].substr(0, entry.length), pattern(entry.tag, entry.length));
        EXPECT_EQ(entry.source, TW_ADDR_NOTAVAIL) << entry.tag;
    }
    EXPECT_EQ(tw_cntr_read(server.peer.receive_counter), 4u);
}

TEST_F(Receiver, IsWhereReceivesArePosted) {
    link();
    std::string buffer(8, '.');
    EXPECT_EQ(tw_trecv(at_server, buffer.data(), 8, 0, 1, 0, nullptr), -EOPNOTSUPP);
    EXPECT_EQ(tw_recv(at_server, buffer.data(), 8, 0, nullptr), -EOPNOTSUPP);
    EXPECT_EQ(tw_cancel(at_server, &buffer), -EOPNOTSUPP);
    server.send(at_server, 1, "answer");
    client.receive(at_client, buffer, 1);
    ASSERT_TRUE(run([&] { return client.peer.received.size() == 1; }));
    EXPECT_EQ(buffer, "answer..");
}

TEST_F(Receiver, IsBoundOnceOpenedFirstAndClosedLast) {
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = TW_EP_ANY;
    tw_ep *late = nullptr, *connected = nullptr;
    ASSERT_EQ(tw_ep_open(server.peer.worker, &attr, &late), 0);
    attr.type = TW_EP_MSG;
    ASSERT_EQ(tw_ep_open(server.peer.worker, &attr, &connected), 0);
    EXPECT_EQ(tw_ep_bind_receiver(connected, connected), -EINVAL);
    EXPECT_EQ(tw_ep_bind_receiver(connected, client.peer.ep), -EINVAL);
    ASSERT_EQ(tw_ep_bind_receiver(connected, late), 0);
    EXPECT_EQ(tw_ep_bind_receiver(connected, server.peer.ep), -EBUSY);
    ASSERT_EQ(tw_ep_bind_cq(connected, server.peer.cq, TW_SEND), 0) << "which is all it needs";
    EXPECT_EQ(tw_ep_enable(connected), -TW_EOPBADSTATE);
    ASSERT_EQ(tw_ep_bind_av(late, server.peer.av), 0);
    ASSERT_EQ(tw_ep_bind_cq(late, server.peer.cq, TW_SEND | TW_RECV), 0);
    ASSERT_EQ(tw_ep_enable(late), 0);
    EXPECT_EQ(tw_ep_enable(connected), 0) << tw_last_error();
    EXPECT_EQ(tw_ep_close(late), -EBUSY);
    EXPECT_EQ(tw_ep_close(connected), 0);
    EXPECT_EQ(tw_ep_close(late), 0);
}

TEST_F(Receiver, KeepsWhatCameBeforeThePeersEndAndItsOwnReceives) {
    const Link first = link(), second = link();
    std::string other(8, '.'), buffer(8, '.');
    receive(other, 2);
    client.send(first.at_client, 1, "the last");
    client.peer.posted(tw_shutdown(first.at_client, 0));
    ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN, first.at_server) == 1; }));
    EXPECT_TRUE(server.peer.errors.empty()) << "receives are not the connection's";
    receive(buffer, 1);
    client.send(second.at_client, 2, "goes on!");
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 2; }));
    EXPECT_EQ(buffer, "the last");
    EXPECT_EQ(other, "goes on!");
    EXPECT_TRUE(close(first));
}

TEST_F(Receiver, LosesTheMessagesOfAConnectionThatEndsHere) {
    for (const bool closes : {false, true}) {
        const Link first = link(), second = link();
        std::string buffer(8, '.');
        client.send(first.at_client, 1, "gone");
        client.send(second.at_client, 1, "stays");
        client.send(first.at_client, 1, pattern(1, 300'000));  // waits for a receive, mostly there
        settle();
        if (closes) {
            ASSERT_TRUE(run([&] { return server.close(first.at_server); }));
        } else {
            server.peer.posted(tw_shutdown(first.at_server, 0));
        }
        EXPECT_EQ(server.peer.stat("unexpected_messages"), 1u);
        EXPECT_EQ(look(1), 5);
        const size_t before = server.peer.received.size();
        receive(buffer, 1);
        ASSERT_TRUE(run([&] { return server.peer.received.size() == before + 1; }));
        EXPECT_EQ(buffer.substr(0, 5), "stays");
        EXPECT_EQ(look(1), -ENOMSG);
        EXPECT_TRUE(closes ? run([&] { return client.close(first.at_client); }) : close(first));
        EXPECT_TRUE(close(second));
        EXPECT_EQ(client.peer.stat("sends_outstanding"), 0u);
    }
}

TEST_F(Receiver, KeepsWhatWasClaimed) {
    const Link closing = link();
    tw_context context{};
    client.send(closing.at_client, 1, "claimed!");
    settle();
    EXPECT_EQ(look(1, TW_CLAIM, &context), 8);
    ASSERT_TRUE(close(closing));
    std::string buffer(8, '.');
    const iovec iov{buffer.data(), buffer.size()};
    const tw_msg_tagged message{&iov, 1, TW_ADDR_UNSPEC, 1, 0, &context, 0};
    server.peer.posted(tw_trecvmsg(server.peer.ep, &message, TW_CLAIM));
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 2; }));
    EXPECT_EQ(buffer, "claimed!");
}

TEST_F(Receiver, WaitsForAMatchedReceiveBeforeTheConnectionCloses) {
    const Link large = link();
    std::string buffer(8'000'000, '.');
    receive(buffer, 1);
    client.send(large.at_client, 1, pattern(1, buffer.size()));
    simulator.run_for(kSecond / 10'000);
    EXPECT_EQ(tw_ep_close(large.at_server), -EBUSY);
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 1; }));
    EXPECT_EQ(buffer, pattern(1, buffer.size()));
    EXPECT_TRUE(close(large));
}

TEST_F(Receiver, EndsOnlyTheReceiveThatAPeersDeathCutShort) {
    const Link dying = link();
    std::string matched(8'000'000, '.'), waiting(8, '.');
    receive(matched, 1, &matched);
    receive(waiting, 2, &waiting);
    client.send(dying.at_client, 1, pattern(1, matched.size()));
    simulator.run_for(kSecond / 10'000);
    client.die();
    ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN, dying.at_server) == 1; }));
    ASSERT_EQ(server.peer.errors.size(), 1u);
    EXPECT_EQ(server.peer.errors[0].entry.context, &matched);
    EXPECT_EQ(server.peer.errors[0].error, ETIMEDOUT);
    ASSERT_TRUE(run([&] { return server.close(dying.at_server); }));
    client.start();
    const Link next = link();
    client.send(next.at_client, 2, "alive!!!");
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 1; }));
    EXPECT_EQ(waiting, "alive!!!");
}

// Messages that a multi-receive has no entry for, in the order of their arrival.
TEST_F(Receiver, LosesBlockedMessagesOfAConnectionThatEndsHere) {
    ConnectPeer small(simulator.add_node(), {.cq_entries = 4});
    small.receiver = small.peer.ep;
    pep = small.listen();
    Link links[2];
    for (Link& link : links) {
        link.at_client = client.connect(small.name_of(pep));
        const size_t before = small.count(TW_CONNREQ);
        ASSERT_TRUE(run([&] { return small.count(TW_CONNREQ) == before + 1; }));
        link.at_server = small.accept(small.events.back());
        ASSERT_TRUE(run([&] { return client.count(TW_CONNECTED, link.at_client) == 1; }));
    }
    small.peer.read_completions = false;
    std::string buffer(100'000, '.');
    const iovec iov{buffer.data(), buffer.size()};
    const tw_msg_tagged multi{&iov, 1, TW_ADDR_UNSPEC, 0, UINT64_MAX, nullptr, 0};
    small.peer.posted(tw_trecvmsg(small.peer.ep, &multi, TW_MULTI_RECV));
    for (uint64_t tag = 0; tag < 20; ++tag) {
        client.send(links[tag % 2].at_client, tag, pattern(tag, 8 + tag));
    }
    settle();
    EXPECT_EQ(small.peer.stat("receives_blocked"), 1u);
    small.peer.posted(tw_shutdown(links[0].at_server, 0));
    const uint64_t left = small.peer.stat("unexpected_messages");
    small.peer.read_completions = true;
    small.peer.wake();
    settle();
    uint64_t odd = 0;
    for (const tw_cq_entry& entry : small.peer.received) {
        odd += entry.tag % 2;
    }
    EXPECT_EQ(odd, 10u) << "of the other connection";
    EXPECT_LT(small.peer.received.size() - odd, 10u);
    EXPECT_LE(left, 10u);
}

// Each message over a connection that stands is received once, whatever becomes of the others.
TEST_F(Receiver, ConnectionsComeAndGoUnderLoss) {
    constexpr size_t kLargest = 100'000;
    constexpr uint64_t kSteps = 400;
    simulator.faults = {.loss = 0.02, .duplication = 0.02, .reordering = 0.05};
    struct Sent {
        size_t length;
        const tw_ep* over;
        bool certain = true;
        bool received = false;
    };
    std::mt19937_64 random(sim::seed());
    std::vector<Link> links;
    std::map<uint64_t, Sent> sent;  // by tag
    std::deque<std::string> buffers;
    size_t seen = 0;
    const auto look_at_received = [&] {
        for (; seen < server.peer.received.size(); ++seen) {
            const tw_cq_entry& entry = server.peer.received[seen];
            Sent& message = sent.at(entry.tag);
            EXPECT_FALSE(message.received) << entry.tag;
            message.received = true;
            ASSERT_EQ(entry.length, message.length);
            EXPECT_EQ(std::string(static_cast<const char*>(entry.buffer), entry.length),
                      pattern(entry.tag, entry.length));
        }
    };
    const auto post = [&] {
        std::string& buffer = buffers.emplace_back(kLargest, '.');
        server.peer.receive(buffer, 0, UINT64_MAX, TW_ADDR_UNSPEC, &buffer);
    };
    const auto end = [&](Link link) {
        look_at_received();
        for (auto& [tag, message] : sent) {
            message.certain &= message.over != link.at_client;
        }
        std::erase_if(links, [&](const Link& l) { return l.at_client == link.at_client; });
        if (random() % 2 == 0) {
            server.peer.posted(tw_shutdown(link.at_server, 0));
        }
        EXPECT_TRUE(run([&] { return server.close(link.at_server); }));
        EXPECT_TRUE(run([&] { return client.close(link.at_client); }));
        simulator.run_for(kSecond);  // the sessions close
        server.events.clear();       // the next endpoint may have the same address
        client.events.clear();
    };
    for (uint64_t step = 0; step < kSteps; ++step) {
        const uint64_t choice = random() % 20;
        if (links.empty() || (choice == 0 && links.size() < 6)) {
            links.push_back(link());
        } else if (choice == 1) {
            end(links[random() % links.size()]);
        } else if (choice < 12) {
            const Link& over = links[random() % links.size()];
            const size_t length = random() % 4 == 0 ? random() % kLargest : random() % 300;
            sent[step] = {length, over.at_client};
            client.send(over.at_client, step, pattern(step, length));
        } else {
            post();
        }
        simulator.run_for(random() % 100'000);
    }
    const auto all_there = [&] {
        look_at_received();
        return std::all_of(sent.begin(), sent.end(), [](const auto& message) {
            return message.second.received || !message.second.certain;
        });
    };
    for (size_t i = 0; i < sent.size() && !all_there(); ++i) {
        post();
        run(all_there, kSecond / 100);
    }
    EXPECT_TRUE(run(all_there));
    while (!links.empty()) {
        end(links.back());
    }
    EXPECT_EQ(server.peer.stat("unexpected_messages"), 0u);
    EXPECT_TRUE(run([&] { return client.peer.stat("sends_outstanding") == 0; }));
}

}  // namespace
}  // namespace tagwire::test
