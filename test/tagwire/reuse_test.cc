// SPDX-License-Identifier: BSD-3-Clause
// Connections come and go, many more than a worker has places for peers; nothing of them is left.
#include <malloc.h>
#include <rte_mempool.h>

#include "test/tagwire/connect_peer.h"

namespace tagwire::test {
namespace {

class Reuse : public testing::Test {
  protected:
    static constexpr uint32_t kPlaces = 16;  // max_peers of a SimPeer

    static constexpr uint32_t kStock = 32;  // frames that a worker has at hand, or not

    bool run(const std::function<bool()>& done) { return simulator.run_until(done, 60 * kSecond); }
    // Each from another address of the client, so that each is another peer.
    void connection(uint64_t number) {
        tw_ep* const at_client = client.connect(server.name_of(pep), "hello");
        ASSERT_TRUE(run([&] { return server.count(TW_CONNREQ) == 1; })) << number;
        tw_ep* const at_server = server.accept(*server.find(TW_CONNREQ));
        ASSERT_TRUE(run([&] {
            return client.count(TW_CONNECTED) == 1 && server.count(TW_CONNECTED) == 1;
        })) << number;
        std::string there(20'000, '\0'), back(8, '\0');
        const std::string large = pattern(number, there.size());
        server.receive(at_server, there, number);
        client.receive(at_client, back, number);
        client.peer.posted(tw_tsend(at_client, large.data(), large.size(), 0, number, nullptr));
        server.peer.posted(tw_tinject(at_server, "12345678", 8, 0, number));
        ASSERT_TRUE(run([&] {
            return server.peer.received.size() == 1 && client.peer.received.size() == 1 &&
                   client.peer.sent.size() == 1;
        })) << number;
        EXPECT_EQ(there, large);
        EXPECT_EQ(back, "12345678");
        client.peer.posted(tw_shutdown(at_client, 0));
        ASSERT_TRUE(run([&] { return server.count(TW_SHUTDOWN) == 1; })) << number;
        ASSERT_TRUE(run([&] { return client.close(at_client); }));
        ASSERT_TRUE(run([&] { return server.close(at_server); }));
        for (ConnectPeer* side : {&server, &client}) {
            EXPECT_TRUE(side->errors.empty());
            side->events.clear();
            side->peer.received.clear();
            side->peer.sent.clear();
        }
    }
    void connections(uint64_t count) {
        for (; count > 0; --count) {
            connection(++made);
            ASSERT_FALSE(HasFatalFailure());
        }
        simulator.run_for(kSecond);
    }

    sim::Simulator simulator{sim::seed() + 61};
    sim::Node& server_node = simulator.add_node();
    sim::Node& client_node = simulator.add_node();
    ConnectPeer server{server_node};
    ConnectPeer client{client_node};
    tw_pep* pep = nullptr;
    uint64_t made = 0;
};

TEST_F(Reuse, ten_times_as_many_connections_as_places) {
    pep = server.listen();
    client.next_number = 100;
    connections(3 * kPlaces);
    const size_t memory = mallinfo2().uordblks;
    const unsigned server_buffers = rte_mempool_avail_count(server_node.pool());
    const unsigned client_buffers = rte_mempool_avail_count(client_node.pool());

    connections(7 * kPlaces);

    EXPECT_LT(mallinfo2().uordblks, memory + 32 * 1024) << "memory of connections that are gone";
    EXPECT_GE(rte_mempool_avail_count(server_node.pool()) + kStock, server_buffers);
    EXPECT_GE(rte_mempool_avail_count(client_node.pool()) + kStock, client_buffers);
    for (const ConnectPeer* side : {&server, &client}) {
        EXPECT_GT(side->peer.stat("peers_forgotten"), 15u * kPlaces);
        EXPECT_EQ(side->peer.stat("drop_refused"), 0u);
        EXPECT_EQ(side->peer.stat("connections_alive"), 0u);
        EXPECT_EQ(side->peer.stat("sends_outstanding"), 0u);
    }
}

TEST_F(Reuse, of_addresses_that_were_removed) {
    tw_cntr* const counter = server.peer.send_counter;
    for (uint16_t i = 0; i < 10 * kPlaces; ++i) {
        tw_address address = client.peer.name();
        address.endpoint = static_cast<uint16_t>(1000 + i);
        tw_addr index = 0;
        ASSERT_EQ(tw_av_insert(server.peer.av, &address, &index), 0);
        ASSERT_EQ(tw_tsend(server.peer.ep, "x", 1, index, i, nullptr), 0)
            << i << ": " << tw_last_error();
        server.peer.wake();
        ASSERT_TRUE(run([&] { return server.peer.errors.size() == size_t{i} + 1; }));
        EXPECT_EQ(server.peer.errors.back().error, ECONNREFUSED) << "no such endpoint";
        ASSERT_EQ(tw_av_remove(server.peer.av, index), 0) << tw_last_error();
    }
    EXPECT_EQ(tw_cntr_read(counter), 0u);
}

}  // namespace
}  // namespace tagwire::test
