// SPDX-License-Identifier: BSD-3-Clause
#include "test/tagwire/connect_peer.h"

#include "lib/tagwire/connection.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/passive_endpoint.h"

namespace tagwire::test {

ConnectPeer::ConnectPeer(sim::Node& node, const PeerOptions& options) : peer(node, options) {
    open();
}

void ConnectPeer::start() {
    peer.start();
    open();
}

void ConnectPeer::open() {
    ASSERT_EQ(tw_eq_open(peer.worker, nullptr, &eq), 0);
    peer.each_turn = [this] {
        if (read_events) {
            drain();
        }
    };
    // As a process that is killed: nothing is said to anybody.
    peer.before_death = [this] {
        for (tw_ep* ep : endpoints_) {
            delete ep;
        }
        for (tw_pep* passive : passive_) {
            delete passive;
        }
        delete eq;
        eq = nullptr;
        endpoints_.clear();
        passive_.clear();
    };
}

void ConnectPeer::die() {
    peer.die();
    peer.before_death = nullptr;
    events.clear();
    errors.clear();
}

void ConnectPeer::drain() {
    tw_eq_entry entry;
    for (;;) {
        const int result = tw_eq_read(eq, &entry, 0);
        if (result == 1) {
            events.push_back(entry);
        } else if (result == -TW_EAVAIL) {
            tw_eq_error error;
            ASSERT_EQ(tw_eq_readerr(eq, &error), 1);
            errors.push_back(error);
        } else {
            ASSERT_EQ(result, -EAGAIN);
            return;
        }
    }
}

tw_pep* ConnectPeer::listen(uint32_t backlog, const std::string& key) {
    tw_pep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = TW_EP_ANY;
    attr.backlog = backlog;
    attr.eq = eq;
    attr.context = this;
    attr.auth_key = key.empty() ? nullptr : key.data();
    attr.auth_key_size = key.size();
    tw_pep* pep = nullptr;
    EXPECT_EQ(tw_pep_open(peer.worker, &attr, &pep), 0) << tw_last_error();
    EXPECT_EQ(tw_listen(pep), 0) << tw_last_error();
    passive_.push_back(pep);
    return pep;
}

tw_address ConnectPeer::name_of(tw_pep* pep) const {
    tw_address name{};
    EXPECT_EQ(tw_pep_name(pep, &name), 0);
    return name;
}

tw_ep* ConnectPeer::endpoint(tw_request* request, const std::string& key) {
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = next_number == TW_EP_ANY ? next_number : next_number++;
    attr.type = TW_EP_MSG;
    attr.request = request;
    attr.auth_key = key.empty() ? nullptr : key.data();
    attr.auth_key_size = key.size();
    tw_ep* ep = nullptr;
    EXPECT_EQ(tw_ep_open(peer.worker, &attr, &ep), 0) << tw_last_error();
    EXPECT_EQ(tw_ep_bind_cq(ep, peer.cq, TW_SEND | TW_RECV), 0) << tw_last_error();
    EXPECT_EQ(tw_ep_bind_eq(ep, eq), 0) << tw_last_error();
    if (receiver != nullptr) {
        EXPECT_EQ(tw_ep_bind_receiver(ep, receiver), 0) << tw_last_error();
    }
    EXPECT_EQ(tw_ep_enable(ep), 0) << tw_last_error();
    endpoints_.push_back(ep);
    return ep;
}

tw_ep* ConnectPeer::connect(const tw_address& to, const std::string& param) {
    tw_ep* ep = endpoint();
    EXPECT_EQ(tw_connect(ep, &to, param.data(), param.size()), 0) << tw_last_error();
    peer.wake();
    return ep;
}

tw_ep* ConnectPeer::accept(const tw_eq_entry& request, const std::string& param) {
    tw_ep* ep = endpoint(request.request);
    EXPECT_EQ(tw_accept(ep, param.data(), param.size()), 0) << tw_last_error();
    peer.wake();
    return ep;
}

bool ConnectPeer::close(tw_ep* ep) {
    peer.wake();
    if (tw_ep_close(ep) != 0) {
        return false;
    }
    std::erase(endpoints_, ep);
    return true;
}

bool ConnectPeer::close(tw_pep* pep) {
    peer.wake();
    if (tw_pep_close(pep) != 0) {
        return false;
    }
    std::erase(passive_, pep);
    return true;
}

void ConnectPeer::receive(tw_ep* ep, std::string& buffer, uint64_t tag, void* context) {
    ASSERT_EQ(tw_trecv(ep, buffer.data(), buffer.size(), 12345, tag, 0, context), 0)
        << tw_last_error();
    peer.wake();
}

void ConnectPeer::send(tw_ep* ep, uint64_t tag, const std::string& payload, void* context) {
    const std::string& kept = payloads_.emplace_back(payload);
    ASSERT_EQ(tw_tsend(ep, kept.data(), kept.size(), 12345, tag, context), 0) << tw_last_error();
    peer.wake();
}

size_t ConnectPeer::count(tw_event event, const tw_ep* ep) const {
    size_t found = 0;
    for (const tw_eq_entry& entry : events) {
        found += entry.event == event && (ep == nullptr || entry.ep == ep);
    }
    return found;
}

const tw_eq_entry* ConnectPeer::find(tw_event event, const tw_ep* ep) const {
    for (const tw_eq_entry& entry : events) {
        if (entry.event == event && (ep == nullptr || entry.ep == ep)) {
            return &entry;
        }
    }
    return nullptr;
}

size_t ConnectPeer::failures(const tw_ep* ep) const {
    size_t found = 0;
    for (const tw_eq_error& error : errors) {
        found += error.ep == ep;
    }
    return found;
}

const tw_eq_error* ConnectPeer::failure(const tw_ep* ep) const {
    for (const tw_eq_error& error : errors) {
        if (error.ep == ep) {
            return &error;
        }
    }
    return nullptr;
}

void ConnectPair::connect_pair(const std::string& param) {
    if (pep == nullptr) {
        pep = server.listen();
    }
    const size_t before = server.count(TW_CONNREQ);
    at_client = client.connect(server.name_of(pep), param);
    ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == before + 1; }));
    at_server = server.accept(server.events.back(), "welcome");
    ASSERT_TRUE(run([&] {
        return client.count(TW_CONNECTED, at_client) == 1 &&
               server.count(TW_CONNECTED, at_server) == 1;
    }));
}

void ConnectPair::close_pair() {
    ASSERT_TRUE(run([&] { return client.close(at_client); })) << tw_last_error();
    ASSERT_TRUE(run([&] { return server.close(at_server); })) << tw_last_error();
    at_client = at_server = nullptr;
    settle();  // the sessions close
}

}  // namespace tagwire::test
