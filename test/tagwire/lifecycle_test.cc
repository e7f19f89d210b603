// SPDX-License-Identifier: BSD-3-Clause
// Construct, open, close: what is possible in which state.
#include "test/tagwire/core_fixture.h"

namespace tagwire::test {
namespace {

using Lifecycle = Core;

TEST_F(Lifecycle, OperationsBeforeEnableFailWithOpBadState) {
    char byte = 0;
    const iovec iov{&byte, 1};
    EXPECT_EQ(tw_tsend(ep_, &byte, 1, peer_, 1, nullptr), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_tsendv(ep_, &iov, 1, peer_, 1, nullptr), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_trecv(ep_, &byte, 1, peer_, 1, 0, nullptr), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_trecvv(ep_, &iov, 1, peer_, 1, 0, nullptr), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_cancel(ep_, nullptr), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_ep_reset_peer(ep_, peer_), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_ep_peer_is_up(ep_, peer_), -TW_EOPBADSTATE);
    EXPECT_TRUE(no_completion());
}

TEST_F(Lifecycle, OperationsWorkAfterEnable) {
    enable();
    EXPECT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
}

TEST_F(Lifecycle, EnableNeedsAnAddressVectorAndBothQueues) {
    EXPECT_EQ(tw_ep_enable(ep_), -TW_ENOAV);
    ASSERT_EQ(tw_ep_bind_av(ep_, av_), 0);
    EXPECT_EQ(tw_ep_enable(ep_), -TW_ENOCQ);
    ASSERT_EQ(tw_ep_bind_cq(ep_, cq_, TW_SEND), 0);
    EXPECT_EQ(tw_ep_enable(ep_), -TW_ENOCQ);
    ASSERT_EQ(tw_ep_bind_cq(ep_, cq_, TW_RECV), 0);
    EXPECT_EQ(tw_ep_enable(ep_), 0);
}

TEST_F(Lifecycle, EnabledEndpointTakesNoBindingAndNoSecondEnable) {
    enable();
    EXPECT_EQ(tw_ep_enable(ep_), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_ep_bind_av(ep_, av_), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_ep_bind_cq(ep_, cq_, TW_SEND), -TW_EOPBADSTATE);
}

TEST_F(Lifecycle, SecondBindingIsBusy) {
    ASSERT_EQ(tw_ep_bind_av(ep_, av_), 0);
    EXPECT_EQ(tw_ep_bind_av(ep_, av_), -EBUSY);
    ASSERT_EQ(tw_ep_bind_cq(ep_, cq_, TW_SEND), 0);
    EXPECT_EQ(tw_ep_bind_cq(ep_, cq_, TW_SEND | TW_RECV), -EBUSY);
    EXPECT_EQ(tw_ep_bind_cq(ep_, cq_, TW_RECV), 0);
}

TEST_F(Lifecycle, BindingFlagsAreChecked) {
    EXPECT_EQ(tw_ep_bind_cq(ep_, cq_, 0), -EINVAL);
    EXPECT_EQ(tw_ep_bind_cq(ep_, cq_, TW_SEND | TW_TAGGED), -EINVAL);
}

TEST_F(Lifecycle, ObjectsOfAnotherWorkerAreRefused) {
    const tw_worker_attr attr = worker_attributes();
    tw_worker* other = nullptr;
    tw_av* av = nullptr;
    tw_cq* cq = nullptr;
    ASSERT_EQ(tw_worker_open(&attr, &other), 0);
    ASSERT_EQ(tw_av_open(other, &av), 0);
    ASSERT_EQ(tw_cq_open(other, nullptr, &cq), 0);
    EXPECT_EQ(tw_ep_bind_av(ep_, av), -EINVAL);
    EXPECT_EQ(tw_ep_bind_cq(ep_, cq, TW_SEND), -EINVAL);
    EXPECT_EQ(tw_av_close(av), 0);
    EXPECT_EQ(tw_cq_close(cq), 0);
    EXPECT_EQ(tw_worker_close(other), 0);
}

TEST_F(Lifecycle, ParentsWithChildrenAreBusy) {
    enable();
    EXPECT_EQ(tw_worker_close(worker_), -EBUSY);
    EXPECT_EQ(tw_av_close(av_), -EBUSY);
    EXPECT_EQ(tw_cq_close(cq_), -EBUSY);
}

TEST_F(Lifecycle, EndpointNumbersAreGivenInOrderAndOnce) {
    tw_ep* next = nullptr;
    ASSERT_EQ(tw_ep_open(worker_, nullptr, &next), 0);
    tw_address name{};
    ASSERT_EQ(tw_ep_name(next, &name), 0);
    EXPECT_EQ(name.endpoint, 1);
    EXPECT_EQ(name.udp_port, 4791);
    tw_ep_attr attr{sizeof(tw_ep_attr), 1};
    tw_ep* again = nullptr;
    EXPECT_EQ(tw_ep_open(worker_, &attr, &again), -EADDRINUSE);
    EXPECT_EQ(tw_ep_close(next), 0);
    EXPECT_EQ(tw_ep_open(worker_, &attr, &again), 0);
    EXPECT_EQ(tw_ep_close(again), 0);
}

TEST_F(Lifecycle, AnEndpointIsGivenANumberBeforeItIsEnabled) {
    tw_ep* next = nullptr;
    ASSERT_EQ(tw_ep_open(worker_, nullptr, &next), 0);
    tw_address wanted{};
    ASSERT_EQ(tw_ep_name(next, &wanted), 0);
    wanted.endpoint = 7;
    EXPECT_EQ(tw_ep_set_name(next, &wanted), 0);
    tw_address name{};
    ASSERT_EQ(tw_ep_name(next, &name), 0);
    EXPECT_EQ(name.endpoint, 7);
    tw_address number_alone{};
    number_alone.endpoint = 1;  // which is free again
    EXPECT_EQ(tw_ep_set_name(next, &number_alone), 0);
    number_alone.endpoint = TW_EP_ANY;
    EXPECT_EQ(tw_ep_set_name(next, &number_alone), 0);
    ASSERT_EQ(tw_ep_name(next, &name), 0);
    EXPECT_EQ(name.endpoint, 1);

    number_alone.endpoint = 0;
    EXPECT_EQ(tw_ep_set_name(next, &number_alone), -EADDRINUSE);
    tw_address foreign = wanted;
    ++foreign.udp_port;
    EXPECT_EQ(tw_ep_set_name(next, &foreign), -EADDRNOTAVAIL);
    foreign = wanted;
    ++foreign.ip[0];
    EXPECT_EQ(tw_ep_set_name(next, &foreign), -EADDRNOTAVAIL);
    enable();
    EXPECT_EQ(tw_ep_set_name(ep_, &wanted), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_ep_close(next), 0);
}

TEST_F(Lifecycle, CloseWithASendUnderWayIsBusyAndHarmless) {
    enable();
    ASSERT_EQ(tw_tsend(ep_, "x", 1, peer_, 1, &context_), 0);
    EXPECT_EQ(tw_ep_close(ep_), -EBUSY);
    transport().finish_send(0, 0);
    tw_progress(worker_);
    EXPECT_EQ(completion().context, &context_);
}

TEST_F(Lifecycle, CloseWithAMatchedReceiveUnderWayIsBusy) {
    enable();
    char buffer[8];
    ASSERT_EQ(tw_trecv(ep_, buffer, sizeof(buffer), TW_ADDR_UNSPEC, 1, 0, &context_), 0);
    auto& message = arrive(1, "x", false);
    EXPECT_EQ(tw_ep_close(ep_), -EBUSY);
    transport().finish(message, 0);
    tw_progress(worker_);
    EXPECT_EQ(completion().context, &context_);
}

TEST_F(Lifecycle, CloseCancelsPostedReceivesInOrderAndDiscardsMessages) {
    enable();
    int contexts[2];
    ASSERT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, &contexts[0]), 0);
    ASSERT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 2, 0, &contexts[1]), 0);
    arrive(9, "nobody wants it");
    ASSERT_EQ(tw_ep_close(ep_), 0) << tw_last_error();
    ep_ = nullptr;
    EXPECT_EQ(transport().discarded, std::vector<uint64_t>{9});
    EXPECT_TRUE(transport().endpoints.empty());
    for (int& context : contexts) {
        const tw_cq_error error = error_completion();
        EXPECT_EQ(error.error, ECANCELED);
        EXPECT_EQ(error.entry.context, &context);
    }
}

TEST_F(Lifecycle, EndpointStaysWhenTheTransportIsBusy) {
    enable();
    ASSERT_EQ(tw_trecv(ep_, nullptr, 0, TW_ADDR_UNSPEC, 1, 0, &context_), 0);
    transport().close_endpoint_result = -EBUSY;
    EXPECT_EQ(tw_ep_close(ep_), -EBUSY);
    transport().close_endpoint_result = 0;
    arrive(1, "");
    EXPECT_EQ(completion().context, &context_);
}

TEST_F(Lifecycle, ShutdownIsAgainUntilNothingIsUnderWay) {
    EXPECT_EQ(tw_worker_shutdown(worker_), -EAGAIN);
    transport().quiet = true;
    EXPECT_EQ(tw_worker_shutdown(worker_), 0);
}

}  // namespace
}  // namespace tagwire::test
