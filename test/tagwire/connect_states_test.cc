// SPDX-License-Identifier: BSD-3-Clause
// Every call in every state of a connected endpoint, and every argument wrong in turn.
#include <functional>

#include "test/tagwire/connect_peer.h"

namespace tagwire::test {
namespace {

constexpr int kChanges = 1;  // it succeeds, and the state is another one afterwards

class ConnectStates : public ConnectPair {
  protected:
    struct Expected {
        int connect, accept, shutdown, getpeer, tsend, trecv, enable, bind_eq;
    };

    void expect(const char* state, ConnectPeer& owner, tw_ep* ep, const Expected& expected) {
        SCOPED_TRACE(state);
        const tw_address name = server.name_of(pep);
        const auto check = [&](const char* call, int wanted, const std::function<int()>& make) {
            if (wanted != kChanges) {
                EXPECT_EQ(make(), -wanted) << call;
                if (wanted != 0) {
                    EXPECT_STRNE(tw_last_error(), "");
                }
            }
        };
        tw_address peer;
        check("tw_connect", expected.connect, [&] { return tw_connect(ep, &name, nullptr, 0); });
        check("tw_accept", expected.accept, [&] { return tw_accept(ep, nullptr, 0); });
        check("tw_shutdown", expected.shutdown, [&] { return tw_shutdown(ep, 0); });
        check("tw_getpeer", expected.getpeer, [&] { return tw_getpeer(ep, &peer); });
        check("tw_tsend", expected.tsend,
              [&] { return tw_tsend(ep, nullptr, 0, 12345, 1, nullptr); });
        check("tw_trecv", expected.trecv,
              [&] { return tw_trecv(ep, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, &owner); });
        if (expected.trecv == 0) {
            EXPECT_EQ(tw_cancel(ep, &owner), 0);
        }
        check("tw_ep_enable", expected.enable, [&] { return tw_ep_enable(ep); });
        check("tw_ep_bind_eq", expected.bind_eq, [&] { return tw_ep_bind_eq(ep, owner.eq); });
        settle();
    }
    tw_ep* requested() {
        client.events.clear();
        server.events.clear();
        tw_ep* const ep = client.connect(server.name_of(pep));
        EXPECT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
        return ep;
    }
};

TEST_F(ConnectStates, EveryCallInEveryState) {
    pep = server.listen();
    const int bad = TW_EOPBADSTATE;
    expect("connectionless", client, client.peer.ep,
           {EOPNOTSUPP, EOPNOTSUPP, EOPNOTSUPP, EOPNOTSUPP, EINVAL, 0, bad, EOPNOTSUPP});

    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = TW_EP_ANY;
    attr.type = TW_EP_MSG;
    tw_ep* opened = nullptr;
    ASSERT_EQ(tw_ep_open(client.peer.worker, &attr, &opened), 0);
    expect("opened", client, opened, {TW_ENOEQ, EINVAL, ENOTCONN, ENOTCONN, bad, bad, TW_ENOCQ, 0});
    expect("bound", client, opened,
           {TW_ENOCQ, EINVAL, ENOTCONN, ENOTCONN, bad, bad, TW_ENOCQ, EBUSY});
    EXPECT_EQ(tw_ep_bind_av(opened, client.peer.av), -EINVAL);
    EXPECT_EQ(tw_ep_close(opened), 0);

    expect("idle", client, client.endpoint(),
           {kChanges, EINVAL, ENOTCONN, ENOTCONN, ENOTCONN, 0, bad, EBUSY});

    tw_ep* ep = requested();
    expect("connecting", client, ep,
           {EALREADY, EINVAL, kChanges, ENOTCONN, ENOTCONN, 0, bad, EBUSY});

    tw_ep* const accepting = server.endpoint(server.events[0].request);
    expect("opened for a request", server, accepting,
           {EINVAL, kChanges, ENOTCONN, ENOTCONN, ENOTCONN, 0, bad, EBUSY});
    ASSERT_EQ(tw_accept(accepting, nullptr, 0), 0);
    expect("accepting", server, accepting,
           {EINVAL, EALREADY, kChanges, ENOTCONN, ENOTCONN, 0, bad, EBUSY});
    server.peer.wake();
    ASSERT_TRUE(run([&] { return server.count(TW_CONNECTED) == 1; }));
    expect("connected, accepted", server, accepting,
           {EISCONN, EISCONN, kChanges, 0, kChanges, 0, bad, EBUSY});
    expect("connected", client, ep, {EISCONN, EISCONN, kChanges, 0, kChanges, 0, bad, EBUSY});
    ASSERT_EQ(tw_shutdown(ep, 0), 0);
    const ConnectStates::Expected ended{bad, EINVAL, ENOTCONN, 0, ENOTCONN, ENOTCONN, bad, EBUSY};
    expect("ending", client, ep, ended);
    client.peer.wake();
    ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN) == 1; }));
    expect("ended here", client, ep, ended);
    expect("ended by the peer", server, accepting, ended);

    ep = requested();
    server.peer.posted(tw_reject(pep, server.events[0].request, nullptr, 0));
    ASSERT_TRUE(run([&] { return client.failures(ep) == 1; }));
    expect("rejected", client, ep,
           {bad, EINVAL, ENOTCONN, ENOTCONN, ENOTCONN, ENOTCONN, bad, EBUSY});
}

TEST_F(ConnectStates, ListenAndCloseOfAPassiveEndpoint) {
    pep = server.listen(1);
    EXPECT_EQ(tw_listen(pep), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_eq_close(server.eq), -EBUSY);
    EXPECT_EQ(tw_worker_close(server.peer.worker), -EBUSY);
    tw_ep* const ep = requested();
    tw_request* const request = server.events[0].request;
    tw_pep* const other = server.listen();
    EXPECT_EQ(tw_reject(other, request, nullptr, 0), -EINVAL) << "of another one";
    tw_ep* const taken = server.endpoint(request);
    EXPECT_EQ(tw_reject(pep, request, nullptr, 0), -EINVAL) << "an endpoint has it";
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = TW_EP_ANY;
    attr.type = TW_EP_MSG;
    attr.request = request;
    tw_ep* second = nullptr;
    EXPECT_EQ(tw_ep_open(server.peer.worker, &attr, &second), -EINVAL) << "an endpoint has it";
    EXPECT_EQ(tw_ep_open(client.peer.worker, &attr, &second), -EINVAL) << "another worker's";
    attr.type = TW_EP_RDM;
    EXPECT_EQ(tw_ep_open(server.peer.worker, &attr, &second), -EINVAL);
    ASSERT_TRUE(run([&] { return server.close(taken); }));
    ASSERT_TRUE(run([&] { return client.failures(ep) == 1; }));
}

TEST_F(ConnectStates, NumbersAreOfEndpointsAndPassiveEndpointsTogether) {
    pep = server.listen();
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = server.name_of(pep).endpoint;
    tw_ep* ep = nullptr;
    EXPECT_EQ(tw_ep_open(server.peer.worker, &attr, &ep), -EADDRINUSE);
    tw_pep_attr passive{};
    passive.size = sizeof(passive);
    passive.endpoint = 0;
    passive.eq = server.eq;
    tw_pep* other = nullptr;
    EXPECT_EQ(tw_pep_open(server.peer.worker, &passive, &other), -EADDRINUSE);
}

TEST_F(ConnectStates, EveryArgumentIsChecked) {
    pep = server.listen();
    tw_ep* const ep = client.endpoint();
    const tw_address name = server.name_of(pep);
    tw_address wrong[3] = {name, name, name};
    wrong[0].family = 5;
    wrong[1].udp_port = 0;
    wrong[2].endpoint = TW_EP_ANY;
    tw_address other_family{};
    ASSERT_EQ(tw_address_parse("[2001:db8::1]:4791", &other_family), 0);
    tw_eq_entry entry;
    tw_eq_error error;
    tw_address address;
    tw_eq* eq = nullptr;
    tw_eq_attr eq_attr{};
    tw_pep* made = nullptr;
    tw_pep_attr pep_attr{};
    pep_attr.size = sizeof(pep_attr);
    pep_attr.endpoint = TW_EP_ANY;
    pep_attr.eq = server.eq;
    tw_ep_attr ep_attr{};
    ep_attr.size = sizeof(ep_attr);
    ep_attr.endpoint = TW_EP_ANY;
    ep_attr.type = 2;
    tw_ep* opened = nullptr;
    const auto pep_with = [&](auto change) {
        tw_pep_attr attr = pep_attr;
        change(attr);
        return tw_pep_open(server.peer.worker, &attr, &made);
    };
    tw_worker* const worker = server.peer.worker;
    const int results[] = {
        tw_eq_open(nullptr, nullptr, &eq),
        tw_eq_open(worker, nullptr, nullptr),
        tw_eq_open(worker, &eq_attr, &eq),  // size 0
        tw_eq_close(nullptr),
        tw_eq_read(nullptr, &entry, 0),
        tw_eq_read(server.eq, nullptr, 0),
        tw_eq_read(server.eq, &entry, TW_CLAIM),
        tw_eq_sread(nullptr, &entry, 0, 0),
        tw_eq_sread(server.eq, nullptr, 0, 0),
        tw_eq_sread(server.eq, &entry, 0, TW_MORE),
        tw_eq_readerr(nullptr, &error),
        tw_eq_readerr(server.eq, nullptr),
        tw_pep_open(nullptr, &pep_attr, &made),
        tw_pep_open(worker, nullptr, &made),
        tw_pep_open(worker, &pep_attr, nullptr),
        pep_with([](tw_pep_attr& attr) { attr.size = 0; }),
        pep_with([](tw_pep_attr& attr) { attr.eq = nullptr; }),
        pep_with([&](tw_pep_attr& attr) { attr.eq = client.eq; }),
        pep_with([](tw_pep_attr& attr) { attr.backlog = 65536; }),
        pep_with([](tw_pep_attr& attr) { attr.auth_key = "x"; }),
        pep_with([](tw_pep_attr& attr) { attr.auth_key_size = 1; }),
        tw_pep_close(nullptr),
        tw_pep_name(nullptr, &address),
        tw_pep_name(pep, nullptr),
        tw_listen(nullptr),
        tw_reject(nullptr, reinterpret_cast<tw_request*>(64), nullptr, 0),
        tw_reject(pep, nullptr, nullptr, 0),
        tw_reject(pep, reinterpret_cast<tw_request*>(64), nullptr, 0),
        tw_ep_bind_eq(nullptr, client.eq),
        tw_ep_bind_eq(ep, nullptr),
        tw_ep_bind_eq(client.peer.ep, nullptr),
        tw_connect(nullptr, &name, nullptr, 0),
        tw_connect(ep, nullptr, nullptr, 0),
        tw_connect(ep, &wrong[0], nullptr, 0),
        tw_connect(ep, &wrong[1], nullptr, 0),
        tw_connect(ep, &wrong[2], nullptr, 0),
        tw_connect(ep, &name, &name, 257),
        tw_connect(ep, &name, nullptr, 1),
        tw_accept(nullptr, nullptr, 0),
        tw_accept(ep, &name, 257),
        tw_accept(ep, nullptr, 1),
        tw_accept(ep, nullptr, 0),
        tw_shutdown(nullptr, 0),
        tw_shutdown(ep, 1),
        tw_getpeer(nullptr, &address),
        tw_getpeer(ep, nullptr),
        tw_ep_open(worker, &ep_attr, &opened),
    };
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); ++i) {
        EXPECT_EQ(results[i], -EINVAL) << "number " << i;
    }
    EXPECT_EQ(tw_connect(ep, &other_family, nullptr, 0), -EAFNOSUPPORT);
    EXPECT_EQ(eq, nullptr);
    EXPECT_EQ(made, nullptr);
    // And with nothing wrong it works.
    client.peer.posted(tw_connect(ep, &name, nullptr, 0));
    EXPECT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; }));
}

TEST_F(ConnectStates, EventQueueIsReadInOrderAndErrorsApart) {
    pep = server.listen();
    client.read_events = server.read_events = false;
    tw_ep* const refused = client.endpoint();
    tw_address nobody = server.peer.name();
    nobody.endpoint = 99;
    client.peer.posted(tw_connect(refused, &nobody, nullptr, 0));
    tw_eq_entry entry;
    tw_eq_error error;
    ASSERT_TRUE(run([&] { return tw_eq_read(client.eq, &entry, TW_PEEK) == -TW_EAVAIL; }));
    EXPECT_EQ(tw_eq_sread(client.eq, &entry, -1, 0), -TW_EAVAIL);
    EXPECT_EQ(tw_eq_readerr(client.eq, &error), 1);
    EXPECT_EQ(error.ep, refused);
    EXPECT_EQ(tw_eq_readerr(client.eq, &error), -EAGAIN);

    EXPECT_EQ(tw_eq_read(server.eq, &entry, 0), -EAGAIN);
    EXPECT_EQ(tw_eq_sread(server.eq, &entry, 1, 0), -EAGAIN);
    client.connect(server.name_of(pep), "one");
    ASSERT_TRUE(run([&] { return server.peer.stat("connection_requests") == 1; }));
    client.connect(server.name_of(pep), "two");
    ASSERT_TRUE(run([&] { return server.peer.stat("connection_requests") == 2; }));
    EXPECT_EQ(tw_eq_readerr(server.eq, &error), -EAGAIN);
    EXPECT_EQ(tw_eq_read(server.eq, &entry, TW_PEEK), 1);
    EXPECT_EQ(param_of(entry), "one");
    EXPECT_EQ(tw_eq_read(server.eq, &entry, 0), 1);
    EXPECT_EQ(param_of(entry), "one");
    EXPECT_EQ(tw_eq_sread(server.eq, &entry, -1, 0), 1);
    EXPECT_EQ(param_of(entry), "two");
    EXPECT_EQ(tw_eq_read(server.eq, &entry, 0), -EAGAIN);
}

TEST_F(ConnectStates, EventsOfAClosedEndpointAreGone) {
    pep = server.listen();
    client.read_events = false;
    tw_ep* const ep = client.endpoint();
    tw_address nobody = server.peer.name();
    nobody.endpoint = 99;
    client.peer.posted(tw_connect(ep, &nobody, nullptr, 0));
    tw_eq_entry entry;
    ASSERT_TRUE(run([&] { return tw_eq_read(client.eq, &entry, 0) == -TW_EAVAIL; }));
    ASSERT_TRUE(run([&] { return client.close(ep); }));
    EXPECT_EQ(tw_eq_read(client.eq, &entry, 0), -EAGAIN);
}

}  // namespace
}  // namespace tagwire::test
