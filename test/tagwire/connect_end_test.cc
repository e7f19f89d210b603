// SPDX-License-Identifier: BSD-3-Clause
// The end of connections, from outside: in order, by death, by restart.
#include "lib/tagwire/worker.h"
#include "test/tagwire/connect_peer.h"

namespace tagwire::test {
namespace {

using Connect = ConnectPair;

TEST_F(Connect, WhatWasSentBeforeShutdownIsDelivered) {
    connect_pair();
    constexpr int kMessages = 40;
    std::vector<std::string> buffers(kMessages, std::string(200'000, '.'));
    std::string extra(8, '.');
    for (int i = 0; i < kMessages; ++i) {
        server.receive(at_server, buffers[i], i);
    }
    server.receive(at_server, extra, 1000, &extra);
    for (int i = 0; i < kMessages; ++i) {
        client.send(at_client, i, pattern(i, i % 3 == 0 ? 200'000 : 50));
    }
    client.peer.posted(tw_shutdown(at_client, 0));
    EXPECT_EQ(tw_tsend(at_client, "x", 1, 0, 1, nullptr), -ENOTCONN);
    EXPECT_EQ(tw_trecv(at_client, nullptr, 0, 0, 1, 0, nullptr), -ENOTCONN);
    EXPECT_EQ(tw_shutdown(at_client, 0), -ENOTCONN);
    ASSERT_TRUE(run([&] {
        return server.count(TW_SHUTDOWN) == 1 && server.peer.received.size() == kMessages &&
               client.peer.sent.size() == kMessages;
    }));
    EXPECT_EQ(server.find(TW_SHUTDOWN)->ep, at_server);
    EXPECT_EQ(server.find(TW_SHUTDOWN)->error, 0);
    for (int i = 0; i < kMessages; ++i) {
        const std::string expected = pattern(i, i % 3 == 0 ? 200'000 : 50);
        EXPECT_EQ(buffers[i].substr(0, expected.size()), expected);
    }
    ASSERT_EQ(server.peer.errors.size(), 1u);
    EXPECT_EQ(server.peer.errors[0].error, ESHUTDOWN);
    EXPECT_EQ(server.peer.errors[0].entry.context, &extra);
    EXPECT_EQ(tw_tsend(at_server, "x", 1, 0, 1, nullptr), -ENOTCONN);
    EXPECT_EQ(client.peer.errors.size(), 0u);
    close_pair();
    EXPECT_EQ(client.count(TW_SHUTDOWN), 0u);
}

TEST_F(Connect, MessagesThatCameBeforeTheShutdownCanStillBeReceived) {
    connect_pair();
    client.send(at_client, 5, pattern(5, 300'000));
    client.send(at_client, 6, "last one");
    client.peer.posted(tw_shutdown(at_client, 0));
    ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN) == 1; }));
    std::string large(300'000, '.'), small(8, '.');
    EXPECT_EQ(tw_trecv(at_server, small.data(), 8, 0, 7, 0, nullptr), -ENOTCONN);
    tw_msg_tagged peek{};
    peek.tag = 6;
    ASSERT_EQ(tw_trecvmsg(at_server, &peek, TW_PEEK), 0) << tw_last_error();
    server.receive(at_server, small, 6);
    server.receive(at_server, large, 5);
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 3; }));
    EXPECT_EQ(small, "last one");
    EXPECT_EQ(large, pattern(5, 300'000));
    EXPECT_EQ(tw_trecv(at_server, small.data(), 8, 0, 6, 0, nullptr), -ENOTCONN);
    ASSERT_TRUE(run([&] { return client.peer.sent.size() == 2; }));
    close_pair();
}

TEST_F(Connect, MultiReceiveEndsAtShutdown) {
    connect_pair();
    std::string buffer(4096, '.');
    const iovec iov{buffer.data(), buffer.size()};
    tw_msg_tagged message{&iov, 1, 0, 1, 0, &buffer, 0};
    server.peer.posted(tw_trecvmsg(at_server, &message, TW_MULTI_RECV));
    client.send(at_client, 1, "a");
    client.peer.posted(tw_shutdown(at_client, 0));
    ASSERT_TRUE(run([&] { return server.peer.errors.size() == 1; }));
    EXPECT_EQ(server.peer.received.size(), 1u);
    EXPECT_EQ(server.peer.errors[0].error, ESHUTDOWN);
    EXPECT_NE(server.peer.errors[0].entry.flags & TW_MULTI_RECV, 0u);
    close_pair();
}

TEST_F(Connect, OwnReceivesEndBeforeShutdownReturns) {
    connect_pair();
    std::string buffer(8, '.');
    client.peer.read_completions = false;
    client.receive(at_client, buffer, 1);
    ASSERT_EQ(tw_shutdown(at_client, 0), 0);
    tw_cq_error error;
    ASSERT_EQ(tw_cq_readerr(client.peer.cq, &error), 1);
    EXPECT_EQ(error.error, ECANCELED);
    client.peer.read_completions = true;
}

TEST_F(Connect, BothMayShutDownAtOnce) {
    connect_pair();
    client.send(at_client, 1, "x");
    server.send(at_server, 1, "y");
    client.peer.posted(tw_shutdown(at_client, 0));
    server.peer.posted(tw_shutdown(at_server, 0));
    close_pair();
    settle();
    EXPECT_LE(client.count(TW_SHUTDOWN), 1u);
    EXPECT_LE(server.count(TW_SHUTDOWN), 1u);
    EXPECT_EQ(client.errors.size() + server.errors.size(), 0u);
    EXPECT_EQ(client.peer.sent.size() + client.peer.errors.size(), 1u);
    EXPECT_EQ(server.peer.sent.size() + server.peer.errors.size(), 1u);
}

TEST_F(Connect, CloseWithoutShutdownTellsThePeer) {
    connect_pair();
    std::string buffer(8, '.');
    server.receive(at_server, buffer, 1);
    ASSERT_TRUE(run([&] { return client.close(at_client); }));
    ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN, at_server) == 1; }));
    EXPECT_EQ(server.find(TW_SHUTDOWN)->error, 0);
    EXPECT_EQ(server.peer.errors.size(), 1u);
    ASSERT_TRUE(run([&] { return server.close(at_server); }));
}

TEST_F(Connect, WorkerShutdownEndsItsConnections) {
    connect_pair();
    client.send(at_client, 1, "x");
    ASSERT_TRUE(run([&] {
        client.peer.wake();
        return tw_worker_shutdown(client.peer.worker) == 0;
    }));
    EXPECT_TRUE(run([&] { return server.count(TW_SHUTDOWN, at_server) == 1; }));
}

TEST_F(Connect, IdlePeerThatDiedIsNoticed) {
    connect_pair();
    std::string buffer(8, '.');
    server.receive(at_server, buffer, 1);
    simulator.run_for(100 * kSecond);
    EXPECT_EQ(server.count(TW_SHUTDOWN), 0u) << "it lives";
    EXPECT_GT(server.peer.stat("connection_pings"), 0u);
    client.die();
    ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN, at_server) == 1; }, 13 * kSecond));
    EXPECT_EQ(server.find(TW_SHUTDOWN)->error, ETIMEDOUT);
    ASSERT_EQ(server.peer.errors.size(), 1u);
    EXPECT_EQ(server.peer.errors[0].error, ETIMEDOUT);
    ASSERT_TRUE(run([&] { return server.close(at_server); }));
}

TEST_F(Connect, PeerThatRestartedIsNoticedAndConnectsAgain) {
    connect_pair();
    std::string buffer(8, '.');
    server.receive(at_server, buffer, 1);
    client.die();
    client.start();
    server.send(at_server, 1, pattern(1, 300'000));
    ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN, at_server) == 1; }, 16 * kSecond));
    EXPECT_EQ(server.find(TW_SHUTDOWN)->error, ECONNRESET);
    EXPECT_EQ(server.peer.errors.size(), 2u) << "the send and the receive, once each";
    tw_ep* const old = at_server;
    connect_pair();
    ASSERT_TRUE(run([&] { return server.close(old); }));
    std::string again(8, '.');
    server.receive(at_server, again, 1);
    client.send(at_client, 1, "newlife!");
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 1; }));
    EXPECT_EQ(again, "newlife!");
}

}  // namespace
}  // namespace tagwire::test
