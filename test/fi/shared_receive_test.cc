// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints that share a receive context.
#include "test/fi/connections.h"

namespace tagwire::fi_test {
namespace {

class SharedReceives : public Connections {
  protected:
    void SetUp() override {
        shares_receives_ = true;
        Connections::SetUp();
    }
    void TearDown() override {
        for (const fid_ep* ep : {second_client_.ep, second_server_.ep}) {
            if (ep != nullptr) {
                EXPECT_EQ(fi_close(const_cast<fid*>(&ep->fid)), 0);
            }
        }
        Connections::TearDown();
    }
    // A second connection, whose ends share what the first's have.
    void connect_both() {
        connect();
        accept();
        second_client_ = {client_.domain, nullptr, client_.cq, client_.srx};
        second_server_ = {server_.domain, nullptr, server_.cq, server_.srx};
        open(second_client_, info_.get());
        connect(second_client_);
        accept(second_client_, second_server_);
    }
    void receive(const Active& side, char (&text)[8]) {
        require(fi_recv(side.srx, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, text), "fi_recv");
    }
    void send(const Active& side, const char (&text)[8]) {
        require(fi_inject(side.ep, text, sizeof(text), FI_ADDR_UNSPEC), "fi_inject");
    }

    Active second_client_;
    Active second_server_;
};

TEST_F(SharedReceives, TakeTheMessagesOfEveryConnection) {
    char texts[3][8] = {};
    receive(client_, texts[2]);  // before there is a connection
    connect_both();
    receive(server_, texts[0]);
    receive(server_, texts[1]);
    send(second_client_, "second!");
    EXPECT_EQ(completion(server_).op_context, texts[0]);
    send(client_, "first..");
    EXPECT_EQ(completion(server_).op_context, texts[1]);
    EXPECT_STREQ(texts[0], "second!");
    EXPECT_STREQ(texts[1], "first..");
    send(second_server_, "answer!");
    EXPECT_EQ(completion(client_).op_context, texts[2]);
    EXPECT_STREQ(texts[2], "answer!");
}

TEST_F(SharedReceives, AreNotTheEndOfOneConnections) {
    connect_both();
    char text[8] = {};
    receive(server_, text);
    require(fi_shutdown(client_.ep, 0), "fi_shutdown");
    for (int i = 0; i < 2; ++i) {
        Entry entry{};
        ASSERT_EQ(event(&entry), uint32_t{FI_SHUTDOWN});
    }
    send(second_client_, "goes on");
    EXPECT_EQ(completion(server_).op_context, text);
    EXPECT_STREQ(text, "goes on");
}

TEST_F(SharedReceives, AreNotPostedToTheEndpoint) {
    connect_both();
    char text[8] = {};
    EXPECT_EQ(fi_recv(server_.ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, nullptr),
              -FI_EOPNOTSUPP);
    EXPECT_EQ(fi_cancel(&server_.ep->fid, text), -FI_EOPNOTSUPP);
}

TEST_F(SharedReceives, AreBoundOnceAndBeforeTheEndpointIsEnabled) {
    fid_ep* ep = nullptr;
    require(fi_endpoint(client_.domain, info_.get(), &ep, nullptr), "fi_endpoint");
    require(fi_ep_bind(ep, &client_.cq->fid, FI_TRANSMIT), "bind cq");
    require(fi_ep_bind(ep, &eq_->fid, 0), "bind eq");
    EXPECT_EQ(fi_enable(ep), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_connect(ep, name(&pep_->fid).data(), nullptr, 0), -FI_EOPBADSTATE);
    require(fi_ep_bind(ep, &client_.srx->fid, 0), "bind srx");
    EXPECT_EQ(fi_ep_bind(ep, &client_.srx->fid, 0), -FI_EINVAL);
    EXPECT_EQ(fi_enable(ep), 0);
    EXPECT_EQ(fi_close(&ep->fid), 0);

    const Info own(fi_dupinfo(info_.get()));
    own->ep_attr->rx_ctx_cnt = 1;
    require(fi_endpoint(client_.domain, own.get(), &ep, nullptr), "fi_endpoint");
    EXPECT_EQ(fi_ep_bind(ep, &client_.srx->fid, 0), -FI_EINVAL) << "it has receives of its own";
    EXPECT_EQ(fi_close(&ep->fid), 0);
}

TEST_F(SharedReceives, AreOfTheDomain) {
    fid_ep* ep = nullptr;
    require(fi_endpoint(server_.domain, info_.get(), &ep, nullptr), "fi_endpoint");
    EXPECT_EQ(fi_ep_bind(ep, &client_.srx->fid, 0), -FI_EINVAL);
    EXPECT_EQ(fi_close(&ep->fid), 0);
}

TEST_F(SharedReceives, AreOfConnectedEndpointsOrOfOthers) {
    const Info other(fi_dupinfo(info_.get()));
    other->ep_attr->type = FI_EP_RDM;
    fid_ep* ep = nullptr;
    require(fi_endpoint(client_.domain, other.get(), &ep, nullptr), "fi_endpoint");
    EXPECT_EQ(fi_ep_bind(ep, &client_.srx->fid, 0), -FI_EINVAL);
    fid_ep* context = nullptr;
    require(fi_srx_context(client_.domain, nullptr, &context, nullptr), "fi_srx_context");
    require(fi_ep_bind(ep, &context->fid, 0), "bind srx");
    fid_ep* connected = nullptr;
    require(fi_endpoint(client_.domain, info_.get(), &connected, nullptr), "fi_endpoint");
    EXPECT_EQ(fi_ep_bind(connected, &context->fid, 0), -FI_EINVAL);
    for (fid_ep* open : {connected, ep, context}) {
        EXPECT_EQ(fi_close(&open->fid), 0);
    }
}

// fi_endpoint(3): completions are in the queues of the endpoints. Those of one context are one.
TEST_F(SharedReceives, EndInTheQueueAndCounterOfTheEndpoints) {
    fid_cntr *counter = nullptr, *other_counter = nullptr;
    fid_cq* other = nullptr;
    require(fi_cntr_open(client_.domain, nullptr, &counter, nullptr), "fi_cntr_open");
    require(fi_cntr_open(client_.domain, nullptr, &other_counter, nullptr), "fi_cntr_open");
    fi_cq_attr attr{};
    require(fi_cq_open(client_.domain, &attr, &other, nullptr), "fi_cq_open");
    fid_ep* srx = nullptr;
    require(fi_srx_context(client_.domain, nullptr, &srx, nullptr), "fi_srx_context");
    fid_ep* eps[3] = {};
    for (fid_ep*& ep : eps) {
        require(fi_endpoint(client_.domain, info_.get(), &ep, nullptr), "fi_endpoint");
        require(fi_ep_bind(ep, &eq_->fid, 0), "bind eq");
    }
    // In any order.
    require(fi_ep_bind(eps[0], &srx->fid, 0), "bind srx");
    require(fi_ep_bind(eps[0], &client_.cq->fid, FI_RECV | FI_TRANSMIT), "bind cq");
    require(fi_ep_bind(eps[0], &counter->fid, FI_RECV), "bind counter");
    require(fi_enable(eps[0]), "fi_enable");
    require(fi_ep_bind(eps[1], &client_.cq->fid, FI_RECV | FI_TRANSMIT), "bind cq");
    require(fi_ep_bind(eps[1], &counter->fid, FI_RECV | FI_SEND), "bind counter");
    EXPECT_EQ(fi_ep_bind(eps[1], &other->fid, FI_RECV), -FI_EBUSY);
    EXPECT_EQ(fi_ep_bind(eps[1], &other_counter->fid, FI_RECV), -FI_EBUSY);
    require(fi_ep_bind(eps[1], &srx->fid, 0), "bind srx");
    require(fi_enable(eps[1]), "fi_enable");
    require(fi_ep_bind(eps[2], &other->fid, FI_RECV), "bind cq");
    EXPECT_NE(fi_ep_bind(eps[2], &srx->fid, 0), 0) << "its queue is another";
    EXPECT_EQ(fi_enable(eps[2]), -FI_EOPBADSTATE);

    const Active active{client_.domain, eps[1], client_.cq, srx};
    connect(active);
    accept(active, server_);
    char text[8] = {};
    receive(active, text);
    send(server_, "counted");
    EXPECT_EQ(completion(active).op_context, text);
    EXPECT_EQ(fi_cntr_read(counter), 1u);

    for (fid_ep* ep : eps) {
        EXPECT_EQ(fi_close(&ep->fid), 0);
    }
    for (fid* object : {&counter->fid, &other_counter->fid, &other->fid}) {
        EXPECT_EQ(fi_close(object), 0) << "though the context is there";
    }
    EXPECT_EQ(fi_close(&srx->fid), 0);
}

TEST_F(SharedReceives, StayPostedForTheConnectionsToCome) {
    connect();
    accept();
    char text[8] = {};
    receive(server_, text);
    EXPECT_EQ(fi_close(&client_.ep->fid), 0);
    Entry entry{};
    ASSERT_EQ(event(&entry), uint32_t{FI_SHUTDOWN});
    EXPECT_EQ(fi_close(&server_.ep->fid), 0);
    open(client_, info_.get());
    connect();
    accept();
    send(client_, "for you");
    EXPECT_EQ(completion(server_).op_context, text);
    EXPECT_STREQ(text, "for you");
}

// The context goes with its last user, whichever handle is closed first.
TEST_F(SharedReceives, EndWithTheLastEndpoint) {
    connect_both();
    EXPECT_EQ(fi_close(&server_.srx->fid), 0);
    server_.srx = second_server_.srx = nullptr;
    send(second_server_, "through");
    char text[8] = {};
    receive(client_, text);
    EXPECT_EQ(completion(client_).op_context, text);
    EXPECT_STREQ(text, "through");
}

}  // namespace
}  // namespace tagwire::fi_test
