// SPDX-License-Identifier: BSD-3-Clause
// Handles that share an endpoint of the core, the order in which they are closed, and calls that
// sleep.
#include <atomic>
#include <chrono>
#include <thread>

#include <rdma/fi_trigger.h>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {
namespace {

class Handles : public Pair {
  protected:
    void open_with(uint64_t caps, fi_threading threading = FI_THREAD_DOMAIN) {
        const Info hints = make_hints();
        hints->caps = caps;
        hints->domain_attr->threading = threading;
        open(*hints);
    }
    fid_cq* open_queue(Side& side) {
        fi_cq_attr attr{};
        attr.format = FI_CQ_FORMAT_TAGGED;
        fid_cq* cq = nullptr;
        require(fi_cq_open(side.domain, &attr, &cq, nullptr), "fi_cq_open");
        return cq;
    }
};

TEST_F(Handles, AnAliasSendsWithFlagsOfItsOwn) {
    open_with(FI_MSG | FI_TAGGED);
    fid_ep* alias = nullptr;
    ASSERT_EQ(fi_ep_alias(left->ep, &alias, FI_TRANSMIT | FI_DELIVERY_COMPLETE), 0);
    char text[8] = {};
    require(fi_trecv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr),
            "fi_trecv");
    require(fi_tsend(alias, "alias", 6, nullptr, to_right, 5, alias), "fi_tsend");
    EXPECT_EQ(expect(*left, FI_SEND | FI_TAGGED).op_context, alias);
    // Delivered when it is complete.
    EXPECT_STREQ(text, "alias");
    expect(*right, FI_RECV | FI_TAGGED);
    EXPECT_EQ(fi_close(&alias->fid), 0);
}

TEST_F(Handles, AnAliasIsForOneDirection) {
    open_with(FI_MSG);
    fid_ep* alias = nullptr;
    EXPECT_EQ(fi_ep_alias(left->ep, &alias, 0), -FI_EINVAL);
    EXPECT_EQ(fi_ep_alias(left->ep, &alias, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
}

TEST_F(Handles, AnAliasKeepsTheEndpointOfASharedReceiveContext) {
    open_with(FI_MSG);
    const Info shared(fi_dupinfo(info.get()));
    shared->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    fid_ep* srx = nullptr;
    require(fi_srx_context(left->domain, nullptr, &srx, nullptr), "fi_srx_context");
    fid_ep* ep = nullptr;
    require(fi_endpoint(left->domain, shared.get(), &ep, nullptr), "fi_endpoint");
    require(fi_ep_bind(ep, &srx->fid, 0), "bind srx");
    require(fi_ep_bind(ep, &left->av->fid, 0), "bind av");
    require(fi_ep_bind(ep, &left->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
    require(fi_enable(ep), "fi_enable");
    fid_ep* alias = nullptr;
    ASSERT_EQ(fi_ep_alias(ep, &alias, FI_TRANSMIT | FI_COMPLETION), 0);
    EXPECT_EQ(fi_close(&ep->fid), 0);
    char text[8] = {};
    require(fi_recv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, nullptr), "fi_recv");
    require(fi_send(alias, "alias", 6, nullptr, to_right, nullptr), "fi_send");
    expect(*left, FI_SEND | FI_MSG);
    expect(*right, FI_RECV | FI_MSG);
    EXPECT_EQ(fi_close(&alias->fid), 0);
    EXPECT_EQ(fi_close(&srx->fid), 0);
}

TEST_F(Handles, ATriggeredSendThroughAnAliasWaitsForItsCounter) {
    open_with(FI_MSG | FI_TRIGGER);
    fid_ep* alias = nullptr;
    ASSERT_EQ(fi_ep_alias(left->ep, &alias, FI_TRANSMIT | FI_TRIGGER), 0);
    fid_cntr* counter = nullptr;
    require(fi_cntr_open(left->domain, nullptr, &counter, nullptr), "fi_cntr_open");
    fi_triggered_context when{};
    when.event_type = FI_TRIGGER_THRESHOLD;
    when.trigger.threshold.cntr = counter;
    when.trigger.threshold.threshold = 2;
    char text[8] = {};
    require(fi_recv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, nullptr), "fi_recv");
    require(fi_send(alias, "later", 6, nullptr, to_right, &when), "fi_send");
    require(fi_cntr_add(counter, 1), "fi_cntr_add");
    for (int i = 0; i < 1000; ++i) {
        fi_cq_tagged_entry entry;
        EXPECT_EQ(fi_cq_read(right->cq, &entry, 1), -FI_EAGAIN);
        fi_cq_read(left->cq, nullptr, 0);
    }
    require(fi_cntr_add(counter, 1), "fi_cntr_add");
    EXPECT_EQ(expect(*left, FI_SEND | FI_MSG).op_context, &when);
    expect(*right, FI_RECV | FI_MSG);
    EXPECT_STREQ(text, "later");
    EXPECT_EQ(fi_close(&alias->fid), 0);
    EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(Handles, ASharedReceiveContextServesOneSetOfEndpointsAfterTheOther) {
    open_with(FI_MSG);
    const Info shared(fi_dupinfo(info.get()));
    shared->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    fid_ep* srx = nullptr;
    require(fi_srx_context(right->domain, nullptr, &srx, nullptr), "fi_srx_context");
    fi_addr_t to_context = FI_ADDR_UNSPEC;
    for (int set = 0; set < 3; ++set) {
        fid_cq* cq = open_queue(*right);
        fid_ep* eps[2] = {};
        for (fid_ep*& ep : eps) {
            require(fi_endpoint(right->domain, shared.get(), &ep, nullptr), "fi_endpoint");
            require(fi_ep_bind(ep, &srx->fid, 0), "bind srx");
            require(fi_ep_bind(ep, &right->av->fid, 0), "bind av");
            require(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
            require(fi_enable(ep), "fi_enable");
        }
        char name[64];
        size_t length = sizeof(name);
        require(fi_getname(&eps[0]->fid, name, &length), "fi_getname");
        fi_addr_t address = FI_ADDR_UNSPEC;
        ASSERT_EQ(fi_av_insert(left->av, name, 1, &address, 0, nullptr), 1);
        to_context = set == 0 ? address : to_context;
        EXPECT_EQ(address, to_context) << "its address stays";
        char text[8] = {};
        require(fi_recv(srx, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, text), "fi_recv");
        require(fi_send(left->ep, "set", 4, nullptr, address, nullptr), "fi_send");
        expect(*left, FI_SEND | FI_MSG);
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(fi_cq_sread(cq, &entry, 1, nullptr, 20'000), 1);
        EXPECT_EQ(entry.op_context, text);
        EXPECT_STREQ(text, "set");

        EXPECT_EQ(fi_close(&eps[0]->fid), 0);
        EXPECT_EQ(fi_close(&cq->fid), -FI_EBUSY) << "the other one uses it";
        EXPECT_EQ(fi_close(&eps[1]->fid), 0);
        EXPECT_EQ(fi_close(&cq->fid), 0);
        EXPECT_EQ(fi_recv(srx, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, nullptr),
                  -FI_EOPBADSTATE)
            << "no endpoint, no queue to complete in";
        // The sender hears that the endpoint was closed.
        for (int i = 0; i < 2000; ++i) {
            fi_cq_read(left->cq, nullptr, 0);
            fi_cq_read(right->cq, nullptr, 0);
        }
    }
    EXPECT_EQ(fi_close(&srx->fid), 0);
}

TEST_F(Handles, TheQueuesOfAScalableEndpointAreFreeOnceItsContextsAreClosed) {
    open_with(FI_MSG);
    const Info scalable(fi_dupinfo(info.get()));
    scalable->ep_attr->tx_ctx_cnt = scalable->ep_attr->rx_ctx_cnt = 2;
    fid_ep* sep = nullptr;
    require(fi_scalable_ep(left->domain, scalable.get(), &sep, nullptr), "fi_scalable_ep");
    require(fi_scalable_ep_bind(sep, &left->av->fid, 0), "bind av");
    fid_cq* cq = open_queue(*left);
    fid_ep* tx = nullptr;
    fid_ep* rx = nullptr;
    require(fi_tx_context(sep, 1, nullptr, &tx, nullptr), "fi_tx_context");
    require(fi_rx_context(sep, 1, nullptr, &rx, nullptr), "fi_rx_context");
    require(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT), "bind cq");
    require(fi_ep_bind(rx, &cq->fid, FI_RECV), "bind cq");
    require(fi_enable(tx), "fi_enable");
    require(fi_enable(rx), "fi_enable");
    EXPECT_EQ(fi_close(&tx->fid), 0);
    EXPECT_EQ(fi_close(&cq->fid), -FI_EBUSY);
    EXPECT_EQ(fi_close(&rx->fid), 0);
    EXPECT_EQ(fi_close(&cq->fid), 0);
    // The index can be opened again.
    require(fi_tx_context(sep, 1, nullptr, &tx, nullptr), "fi_tx_context");
    EXPECT_EQ(fi_close(&sep->fid), -FI_EBUSY);
    EXPECT_EQ(fi_close(&tx->fid), 0);
    EXPECT_EQ(fi_close(&sep->fid), 0);
}

TEST_F(Handles, ASleepingReadWakesForAMessage) {
    open_with(FI_MSG, FI_THREAD_SAFE);
    char text[8] = {};
    require(fi_recv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, text), "fi_recv");
    fi_cq_tagged_entry entry{};
    std::thread sleeper([&] { EXPECT_EQ(fi_cq_sread(right->cq, &entry, 1, nullptr, -1), 1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    require(fi_send(left->ep, "wake", 5, nullptr, to_right, nullptr), "fi_send");
    sleeper.join();
    EXPECT_EQ(entry.op_context, text);
    EXPECT_STREQ(text, "wake");
    expect(*left, FI_SEND | FI_MSG);
}

TEST_F(Handles, ASignalEndsASleepingRead) {
    open_with(FI_MSG, FI_THREAD_SAFE);
    std::atomic<bool> ended{false};
    std::thread sleeper([&] {
        fi_cq_tagged_entry entry;
        EXPECT_EQ(fi_cq_sread(right->cq, &entry, 1, nullptr, -1), -FI_EAGAIN);
        ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(ended);
    require(fi_cq_signal(right->cq), "fi_cq_signal");
    sleeper.join();
}

TEST_F(Handles, AWaitForACounterEndsInTime) {
    open_with(FI_MSG, FI_THREAD_SAFE);
    fid_cntr* counter = nullptr;
    require(fi_cntr_open(left->domain, nullptr, &counter, nullptr), "fi_cntr_open");
    EXPECT_EQ(fi_cntr_wait(counter, 1, 20), -FI_ETIMEDOUT);
    std::thread adder([&] { fi_cntr_add(counter, 1); });
    EXPECT_EQ(fi_cntr_wait(counter, 1, -1), 0);
    adder.join();
    EXPECT_EQ(fi_close(&counter->fid), 0);
}

}  // namespace
}  // namespace tagwire::fi_test
