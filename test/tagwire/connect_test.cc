// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints, from outside.
#include "lib/tagwire/passive_endpoint.h"
#include "lib/tagwire/worker.h"
#include "test/tagwire/connect_peer.h"

namespace tagwire::test {
namespace {

using Connect = ConnectPair;

TEST_F(Connect, AcceptedRequestConnectsBothSides) {
    pep = server.listen();
    at_client = client.connect(server.name_of(pep), "let me in");
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    const tw_eq_entry request = server.events[0];
    EXPECT_EQ(request.pep, pep);
    EXPECT_EQ(request.context, &server);
    EXPECT_EQ(param_of(request), "let me in");
    tw_address name;
    ASSERT_EQ(tw_ep_name(at_client, &name), 0);
    EXPECT_EQ(std::memcmp(&request.peer, &name, sizeof(name)), 0);
    settle();
    EXPECT_EQ(client.events.size(), 0u) << "not before it is accepted";

    at_server = server.accept(request, "welcome");
    ASSERT_TRUE(run([&] {
        return client.count(TW_CONNECTED, at_client) == 1 &&
               server.count(TW_CONNECTED, at_server) == 1;
    }));
    EXPECT_EQ(param_of(*client.find(TW_CONNECTED)), "welcome");
    EXPECT_EQ(server.find(TW_CONNECTED)->param_length, 0u);
    tw_address peer;
    ASSERT_EQ(tw_getpeer(at_server, &peer), 0);
    EXPECT_EQ(std::memcmp(&peer, &name, sizeof(name)), 0);
    ASSERT_EQ(tw_getpeer(at_client, &peer), 0);
    ASSERT_EQ(tw_ep_name(at_server, &name), 0);
    EXPECT_EQ(std::memcmp(&peer, &name, sizeof(name)), 0);
    EXPECT_NE(name.endpoint, server.name_of(pep).endpoint);
    EXPECT_EQ(std::memcmp(&client.find(TW_CONNECTED)->peer, &name, sizeof(name)), 0);
}

TEST_F(Connect, MessagesGoBothWaysWhateverTheAddressArgument) {
    connect_pair();
    std::string to_server(400'000, '.'), to_client(8, '.'), untagged(8, '.');
    server.receive(at_server, to_server, 1);
    client.receive(at_client, to_client, 2);
    ASSERT_EQ(tw_recv(at_server, untagged.data(), untagged.size(), TW_ADDR_UNSPEC, nullptr), 0);
    client.send(at_client, 1, pattern(1, 400'000));
    server.send(at_server, 2, "backward");
    client.peer.posted(tw_inject(at_client, "untagged", 8, TW_ADDR_UNSPEC));
    ASSERT_TRUE(run([&] {
        return server.peer.received.size() == 2 && client.peer.received.size() == 1 &&
               client.peer.sent.size() == 1;
    }));
    EXPECT_EQ(to_server, pattern(1, 400'000));
    EXPECT_EQ(to_client, "backward");
    EXPECT_EQ(untagged, "untagged");
    EXPECT_EQ(client.peer.received[0].source, TW_ADDR_NOTAVAIL);
}

TEST_F(Connect, ReceivesPostedBeforeConnectAndAcceptTakeTheFirstMessages) {
    pep = server.listen();
    std::string at_client_buffer(8, '.'), at_server_buffer(8, '.');
    at_client = client.endpoint();
    client.receive(at_client, at_client_buffer, 1);
    EXPECT_EQ(tw_tsend(at_client, "x", 1, 0, 1, nullptr), -ENOTCONN);
    const tw_address name = server.name_of(pep);
    ASSERT_EQ(tw_connect(at_client, &name, nullptr, 0), 0);
    EXPECT_EQ(tw_tsend(at_client, "x", 1, 0, 1, nullptr), -ENOTCONN);
    client.peer.wake();
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    at_server = server.endpoint(server.events[0].request);
    server.receive(at_server, at_server_buffer, 1);
    server.peer.posted(tw_accept(at_server, nullptr, 0));
    EXPECT_EQ(tw_tsend(at_server, "x", 1, 0, 1, nullptr), -ENOTCONN);
    ASSERT_TRUE(run([&] { return client.count(TW_CONNECTED) == 1; }));
    client.send(at_client, 1, "forward!");
    ASSERT_TRUE(run([&] { return server.count(TW_CONNECTED) == 1; }));
    server.send(at_server, 1, "backward");
    ASSERT_TRUE(
        run([&] { return client.peer.received.size() + server.peer.received.size() == 2; }));
    EXPECT_EQ(at_client_buffer, "backward");
    EXPECT_EQ(at_server_buffer, "forward!");
}

TEST_F(Connect, RejectEndsTheRequestWithItsParam) {
    pep = server.listen();
    at_client = client.endpoint();
    std::string buffer(8, '.');
    client.receive(at_client, buffer, 1, &buffer);
    const tw_address name = server.name_of(pep);
    client.peer.posted(tw_connect(at_client, &name, nullptr, 0));
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    server.peer.posted(tw_reject(pep, server.events[0].request, "no", 2));
    EXPECT_EQ(tw_reject(pep, server.events[0].request, "no", 2), -EINVAL);
    ASSERT_TRUE(run([&] { return client.failures(at_client) == 1; }));
    const tw_eq_error& error = *client.failure(at_client);
    EXPECT_EQ(error.error, ECONNREFUSED);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(error.param), error.param_length), "no");
    EXPECT_STRNE(error.text, "");
    settle();
    EXPECT_EQ(client.events.size(), 0u);
    ASSERT_EQ(client.peer.errors.size(), 1u) << "the receive ends, once";
    EXPECT_EQ(client.peer.errors[0].error, ECONNREFUSED);
    EXPECT_EQ(tw_connect(at_client, &name, nullptr, 0), -TW_EOPBADSTATE);
    ASSERT_TRUE(run([&] { return server.close(pep) && client.close(at_client); }));
}

TEST_F(Connect, ParamsOfAllLengths) {
    for (const size_t length : {0u, 1u, 255u, 256u}) {
        connect_pair(pattern(length, length));
        EXPECT_EQ(param_of(*server.find(TW_CONNREQ)), pattern(length, length));
        server.events.clear();
        client.events.clear();
        close_pair();
    }
    std::string large(257, 'x');
    const tw_address name = server.name_of(pep);
    at_client = client.endpoint();
    EXPECT_EQ(tw_connect(at_client, &name, large.data(), large.size()), -EINVAL);
    EXPECT_EQ(tw_connect(at_client, &name, nullptr, 1), -EINVAL);
}

// Whom a client may find that is no listener.
class Nobody : public Connect {
  protected:
    void expect_error(const tw_address& to, int error) {
        at_client = client.connect(to);
        std::string buffer(8, '.');
        client.receive(at_client, buffer, 1);
        ASSERT_TRUE(run([&] { return client.failures(at_client) == 1; }));
        EXPECT_EQ(client.failure(at_client)->error, error);
        EXPECT_EQ(client.peer.errors.size(), 1u);
        ASSERT_TRUE(run([&] { return client.close(at_client); }));
    }
    tw_address at(uint16_t number) {
        tw_address address = server.peer.name();
        address.endpoint = number;
        return address;
    }
};

TEST_F(Nobody, NoEndpointRefuses) {
    expect_error(at(77), ECONNREFUSED);
}

TEST_F(Nobody, ConnectionlessEndpointRefuses) {
    expect_error(at(0), ECONNREFUSED);
    EXPECT_EQ(server.peer.stat("connection_requests_refused"), 1u);
}

TEST_F(Nobody, ConnectedEndpointRefuses) {
    connect_pair();
    tw_address name;
    ASSERT_EQ(tw_ep_name(at_server, &name), 0);
    expect_error(name, ECONNREFUSED);
}

TEST_F(Nobody, PassiveEndpointThatDoesNotListenRefuses) {
    tw_pep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = TW_EP_ANY;
    attr.eq = server.eq;
    ASSERT_EQ(tw_pep_open(server.peer.worker, &attr, &pep), 0);
    expect_error(server.name_of(pep), ECONNREFUSED);
    EXPECT_EQ(tw_pep_close(pep), 0);
}

TEST_F(Nobody, MachineThatIsNotThereIsUnreachable) {
    tw_address address = at(0);
    address.ip[3] = 200;
    expect_error(address, EHOSTUNREACH);
}

TEST_F(Nobody, MachineThatDiedTimesOut) {
    connect_pair();
    const tw_address name = server.name_of(pep);
    server.die();
    expect_error(name, ETIMEDOUT);
}

TEST_F(Nobody, WrongKeyIsRejected) {
    pep = server.listen(0, "secret");
    expect_error(server.name_of(pep), EKEYREJECTED);
}

TEST_F(Connect, SameKeyConnects) {
    pep = server.listen(0, "secret");
    at_client = client.endpoint(nullptr, "secret");
    const tw_address name = server.name_of(pep);
    client.peer.posted(tw_connect(at_client, &name, nullptr, 0));
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    at_server = server.accept(server.events[0]);
    ASSERT_TRUE(run([&] { return client.count(TW_CONNECTED) == 1; }));
}

TEST_F(Connect, BacklogBoundsTheRequestsThatWait) {
    pep = server.listen(2);
    std::vector<tw_ep*> eps;
    for (int i = 0; i < 3; ++i) {
        eps.push_back(client.connect(server.name_of(pep)));
    }
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 2 && client.errors.size() == 1; }));
    EXPECT_EQ(client.errors[0].error, ECONNREFUSED);
    server.peer.posted(tw_reject(pep, server.events[0].request, nullptr, 0));
    ASSERT_TRUE(run([&] { return client.errors.size() == 2; }));
    settle();
    client.connect(server.name_of(pep));
    EXPECT_TRUE(run([&] { return server.count(TW_CONNREQ) == 3; }));
}

TEST_F(Connect, ServerThatDiesWithARequestIsNoticed) {
    for (const bool restarts : {false, true}) {
        pep = server.listen();
        at_client = client.connect(server.name_of(pep));
        ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
        simulator.run_for(60 * kSecond);
        EXPECT_EQ(client.errors.size(), 0u) << "a server may take its time";
        server.die();
        if (restarts) {
            server.start();
        }
        ASSERT_TRUE(run([&] { return client.failures(at_client) == 1; }, 16 * kSecond));
        EXPECT_EQ(client.failure(at_client)->error, restarts ? ECONNRESET : ETIMEDOUT);
        ASSERT_TRUE(run([&] { return client.close(at_client); }));
        client.errors.clear();
        if (!restarts) {
            server.start();
        }
    }
}

TEST_F(Connect, RequestOfAClientThatClosedIsGoneUnlessItWasRead) {
    pep = server.listen();
    server.read_events = false;
    at_client = client.connect(server.name_of(pep));
    ASSERT_TRUE(run([&] { return server.peer.stat("connection_requests") == 1; }));
    ASSERT_TRUE(run([&] { return client.close(at_client); }));
    settle();
    tw_eq_entry entry;
    EXPECT_EQ(tw_eq_read(server.eq, &entry, 0), -EAGAIN);
    server.read_events = true;

    at_client = client.connect(server.name_of(pep));
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    ASSERT_TRUE(run([&] { return client.close(at_client); }));
    settle();
    at_server = server.endpoint(server.events[0].request);
    EXPECT_EQ(tw_accept(at_server, nullptr, 0), -ECONNRESET);
    ASSERT_TRUE(run([&] { return server.close(at_server); }));
    ASSERT_TRUE(run([&] { return server.close(pep); }));
}

TEST_F(Connect, AcceptFailsWhenTheClientGaveUp) {
    pep = server.listen();
    at_client = client.connect(server.name_of(pep));
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    client.peer.posted(tw_shutdown(at_client, 0));
    at_server = server.accept(server.events[0]);
    ASSERT_TRUE(run([&] { return server.failures(at_server) == 1; }));
    EXPECT_EQ(server.failure(at_server)->error, ECONNREFUSED);
    settle();
    EXPECT_EQ(client.events.size() + client.errors.size(), 0u);
    close_pair();
    ASSERT_TRUE(run([&] { return server.close(pep); }));
}

TEST_F(Connect, AcceptFailsWhenTheClientDied) {
    pep = server.listen();
    at_client = client.connect(server.name_of(pep));
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    client.die();
    at_server = server.accept(server.events[0]);
    ASSERT_TRUE(run([&] { return server.failures(at_server) == 1; }));
    EXPECT_EQ(server.failure(at_server)->error, ETIMEDOUT);
    ASSERT_TRUE(run([&] { return server.close(at_server); }));
    ASSERT_TRUE(run([&] { return server.close(pep); }));
}

TEST_F(Connect, ShutdownRightAfterAccept) {
    pep = server.listen();
    at_client = client.connect(server.name_of(pep));
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    at_server = server.accept(server.events[0]);
    server.peer.posted(tw_shutdown(at_server, 0));
    ASSERT_TRUE(run([&] { return client.count(TW_SHUTDOWN) == 1; }));
    EXPECT_EQ(client.count(TW_CONNECTED), 1u);
    close_pair();
    ASSERT_TRUE(run([&] { return server.close(pep); }));
}

TEST_F(Connect, ClosingAnEndpointThatDidNotAcceptRejects) {
    pep = server.listen();
    at_client = client.connect(server.name_of(pep));
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    at_server = server.endpoint(server.events[0].request);
    EXPECT_EQ(tw_pep_close(pep), -EBUSY);
    ASSERT_TRUE(run([&] { return server.close(at_server); }));
    ASSERT_TRUE(run([&] { return client.failures(at_client) == 1; }));
    EXPECT_EQ(client.failure(at_client)->error, ECONNREFUSED);
    ASSERT_TRUE(run([&] { return server.close(pep); }));
}

TEST_F(Connect, ClosingThePassiveEndpointRejectsWhatWaits) {
    pep = server.listen();
    server.read_events = false;
    at_client = client.connect(server.name_of(pep));
    ASSERT_TRUE(run([&] { return server.peer.stat("connection_requests") == 1; }));
    ASSERT_TRUE(run([&] { return server.close(pep); }));
    ASSERT_TRUE(run([&] { return client.failures(at_client) == 1; }));
    EXPECT_EQ(client.failure(at_client)->error, ECONNREFUSED);
    tw_eq_entry entry;
    EXPECT_EQ(tw_eq_read(server.eq, &entry, 0), -EAGAIN);
}

TEST_F(Connect, ClosingThePassiveEndpointLeavesConnections) {
    connect_pair();
    ASSERT_TRUE(run([&] { return server.close(pep); }));
    settle();
    EXPECT_EQ(client.count(TW_SHUTDOWN), 0u);
    std::string buffer(8, '.');
    server.receive(at_server, buffer, 1);
    client.send(at_client, 1, "still up");
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 1; }));
}

TEST_F(Connect, MessagesOfOthersAreRefusedAndCounted) {
    connect_pair();
    std::string buffer(8, '.');
    server.receive(at_server, buffer, 1);
    tw_address name;
    ASSERT_EQ(tw_ep_name(at_server, &name), 0);
    tw_addr index = 0;
    ASSERT_EQ(tw_av_insert(client.peer.av, &name, &index), 0);
    tw_msg_tagged message{};
    message.tag = 1;
    message.addr = index;
    client.peer.posted(tw_tsendmsg(client.peer.ep, &message, TW_COMPLETION | TW_DELIVERY_COMPLETE));
    ASSERT_TRUE(run([&] { return client.peer.errors.size() == 1; }));
    EXPECT_EQ(client.peer.errors[0].error, ENOTCONN);
    EXPECT_EQ(server.peer.stat("messages_foreign"), 1u);
    EXPECT_EQ(server.peer.received.size(), 0u);
    client.send(at_client, 1, "from him");
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 1; }));
}

TEST_F(Connect, EndpointsOfOneWorkerConnect) {
    pep = server.listen();
    tw_ep* ep = server.connect(server.name_of(pep), "self");
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
    at_server = server.accept(server.events[0]);
    ASSERT_TRUE(run([&] { return server.count(TW_CONNECTED) == 2; }));
    std::string buffer(8, '.');
    server.receive(at_server, buffer, 1);
    server.send(ep, 1, "own word");
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 1; }));
    server.peer.posted(tw_shutdown(ep, 0));
    ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN, at_server) == 1; }));
    ASSERT_TRUE(run([&] { return server.close(ep); }));
    ASSERT_TRUE(run([&] { return server.close(at_server); }));
}

TEST_F(Connect, ManyConnectionsOverABadNetwork) {
    simulator.faults.loss = 0.05;
    simulator.faults.duplication = 0.05;
    simulator.faults.reordering = 0.1;
    for (int round = 0; round < 60; ++round) {
        SCOPED_TRACE(round);
        connect_pair("round");
        std::string buffer(8, '.');
        server.receive(at_server, buffer, round);
        client.send(at_client, round, "carry on");
        const bool client_first = round % 2 == 0;
        client.peer.posted(tw_shutdown(at_client, 0));
        ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN) == 1; }));
        EXPECT_EQ(buffer, "carry on");
        if (client_first) {
            ASSERT_TRUE(run([&] { return client.close(at_client); }));
            ASSERT_TRUE(run([&] { return server.close(at_server); }));
        } else {
            ASSERT_TRUE(run([&] { return server.close(at_server); }));
            ASSERT_TRUE(run([&] { return client.close(at_client); }));
        }
        server.events.clear();
        client.events.clear();
        EXPECT_EQ(server.errors.size() + client.errors.size(), 0u);
        simulator.run_for(kSecond);
    }
}

// Messages that a peer of another mind may send.
class Malformed : public Connect {
  protected:
    // From the endpoint, on the session of its connection or of its request.
    void send(uint64_t type, uint64_t id, bool has_id, size_t length) {
        auto& operation = operations_.emplace_back();
        operation.header.kind = transport::MessageKind::kConnection;
        operation.header.tag = type;
        operation.header.data = id;
        operation.header.length = length;
        operation.header.flags = static_cast<uint8_t>((has_id ? transport::kHasData : 0) |
                                                      transport::kWantsDeliveryNote);
        operation.iov[0] = {payload_.data(), length};
        operation.iov_count = length != 0 ? 1 : 0;
        sends_.emplace_back();
        sends_.back().request = &nobody_;
        sends_.back().busy = true;
        operation.user = &sends_.back();
        transport::PeerId peer;
        tw_address name;
        ASSERT_EQ(tw_ep_name(at_client, &name), 0);
        auto& transport = client.peer.worker->transport();
        ASSERT_EQ(tw_ep_name(at_server, &name), 0);
        transport::EndpointAddress to = client.peer.worker->address();
        tw_address own = server.peer.name();
        std::memcpy(to.ip.data(), own.ip, sizeof(own.ip));
        to.endpoint = name.endpoint;
        tw_address self;
        ASSERT_EQ(tw_ep_name(at_client, &self), 0);
        ASSERT_EQ(transport.open_peer(self.endpoint, to, transport::kNoKey, &peer), 0);
        ASSERT_EQ(transport.send(peer, operation), 0);
        client.peer.wake();
        ASSERT_TRUE(run([&] { return !sends_.back().busy; }));
    }

    std::deque<transport::SendOperation> operations_;
    std::deque<CmSend> sends_;
    tw_request nobody_;
    std::string payload_ = std::string(1000, 'x');
};

TEST_F(Malformed, IsRefusedAndCounted) {
    connect_pair();
    struct Message {
        uint64_t type;
        bool has_id;
        size_t length;
    };
    uint64_t expected = 0;
    for (const Message& message :
         {Message{0, true, 0}, Message{6, true, 0}, Message{1ull << 40 | 2, true, 0},
          Message{2, false, 0}, Message{1, true, 257}, Message{4, true, 1}, Message{5, true, 1}}) {
        send(message.type, 1, message.has_id, message.length);
        EXPECT_EQ(server.peer.stat("connection_messages_malformed"), ++expected) << message.type;
    }
    // Well-formed, for no connection of that id.
    uint64_t stale = 0;
    for (const uint64_t type : {2, 3, 4}) {
        send(type, 1, true, 0);
        EXPECT_EQ(server.peer.stat("connection_messages_stale"), ++stale) << type;
    }
    EXPECT_EQ(server.count(TW_SHUTDOWN), 0u);
    std::string buffer(8, '.');
    server.receive(at_server, buffer, 1);
    client.send(at_client, 1, "goes on.");
    ASSERT_TRUE(run([&] { return server.peer.received.size() == 1; }));
}

}  // namespace
}  // namespace tagwire::test
