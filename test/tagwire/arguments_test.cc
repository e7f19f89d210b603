// SPDX-License-Identifier: BSD-3-Clause
// Every call with each argument wrong in turn: the documented error, a text, no effect.
#include <cinttypes>
#include <functional>
#include <vector>

#include "test/tagwire/core_fixture.h"

namespace tagwire::test {
namespace {

class Arguments : public Core {
  protected:
    void SetUp() override {
        Core::SetUp();
        enable();
    }

    static tw_worker_attr with(const std::function<void(tw_worker_attr&)>& change) {
        tw_worker_attr attr = worker_attributes();
        change(attr);
        return attr;
    }

    static int open_worker(const std::function<void(tw_worker_attr&)>& change) {
        const tw_worker_attr attr = with(change);
        tw_worker* worker = nullptr;
        const int result = tw_worker_open(&attr, &worker);
        EXPECT_EQ(worker, nullptr);
        EXPECT_STRNE(tw_last_error(), "");
        return result;
    }

    char buffer_[16] = {};
};

TEST_F(Arguments, NullObjectsAreRefused) {
    tw_address name{};
    tw_addr index = 0;
    tw_worker* worker = nullptr;
    tw_av* av = nullptr;
    tw_cq* cq = nullptr;
    tw_ep* ep = nullptr;
    tw_cq_entry entry{};
    tw_cq_error error{};
    tw_stat stat{};
    char text[64];
    const tw_worker_attr attr = worker_attributes();
    const std::vector<ssize_t> results = {
        tw_address_parse(nullptr, &name),
        tw_address_parse("10.0.0.1:1", nullptr),
        tw_address_format(nullptr, text, sizeof(text)),
        tw_address_format(&name, nullptr, 64),
        tw_worker_open(nullptr, &worker),
        tw_worker_open(&attr, nullptr),
        tw_worker_close(nullptr),
        tw_worker_shutdown(nullptr),
        tw_progress(nullptr),
        tw_worker_stats(nullptr, &stat, 1),
        tw_worker_stats(worker_, nullptr, 1),
        tw_worker_stats(worker_, &stat, -1),
        tw_peer_stats(nullptr, 0, &stat, 1),
        tw_peer_stats(ep_, 0, nullptr, 1),
        tw_peer_stats(ep_, 0, &stat, -1),
        tw_av_open(nullptr, &av),
        tw_av_open(worker_, nullptr),
        tw_av_close(nullptr),
        tw_av_insert(nullptr, &name, &index),
        tw_av_insert(av_, nullptr, &index),
        tw_av_insert(av_, &name, nullptr),
        tw_av_lookup(nullptr, 0, &name),
        tw_av_lookup(av_, 0, nullptr),
        tw_cq_open(nullptr, nullptr, &cq),
        tw_cq_open(worker_, nullptr, nullptr),
        tw_cq_close(nullptr),
        tw_cq_read(nullptr, &entry, 1),
        tw_cq_read(cq_, nullptr, 1),
        tw_cq_readerr(nullptr, &error),
        tw_cq_readerr(cq_, nullptr),
        tw_ep_open(nullptr, nullptr, &ep),
        tw_ep_open(worker_, nullptr, nullptr),
        tw_ep_close(nullptr),
        tw_ep_bind_av(nullptr, av_),
        tw_ep_bind_av(ep_, nullptr),
        tw_ep_bind_cq(nullptr, cq_, TW_SEND),
        tw_ep_bind_cq(ep_, nullptr, TW_SEND),
        tw_ep_enable(nullptr),
        tw_ep_name(nullptr, &name),
        tw_ep_name(ep_, nullptr),
        tw_ep_set_name(nullptr, &name),
        tw_ep_set_name(ep_, nullptr),
        tw_tsend(nullptr, buffer_, 1, peer_, 0, nullptr),
        tw_tsendv(nullptr, nullptr, 0, peer_, 0, nullptr),
        tw_trecv(nullptr, buffer_, 1, peer_, 0, 0, nullptr),
        tw_trecvv(nullptr, nullptr, 0, peer_, 0, 0, nullptr),
        tw_cancel(nullptr, nullptr),
    };
    for (size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(results[i], -EINVAL) << "call " << i;
    }
    EXPECT_EQ(tw_worker_deadline(nullptr), UINT64_MAX);
}

TEST_F(Arguments, WorkerAttributesAreChecked) {
    EXPECT_EQ(open_worker([](auto& attr) { attr.size = 0; }), -EINVAL);
    EXPECT_EQ(open_worker([](auto& attr) { attr.address.family = 5; }), -EINVAL);
    for (const uint8_t first : {0, 224, 255}) {
        EXPECT_EQ(open_worker([first](auto& attr) { attr.address.ip[0] = first; }), -EINVAL);
    }
    EXPECT_EQ(open_worker([](auto& attr) { attr.address.udp_port = 0; }), -EINVAL);
    EXPECT_EQ(open_worker([](auto& attr) { attr.mac[5] = 0; }), -EINVAL);
    EXPECT_EQ(open_worker([](auto& attr) { attr.packet_pool = nullptr; }), -EINVAL);
    EXPECT_EQ(open_worker([](auto& attr) { attr.max_operations = UINT32_MAX; }), -EINVAL);
    EXPECT_EQ(open_worker([](auto& attr) { attr.max_peers = UINT32_MAX; }), -EINVAL);
    EXPECT_EQ(open_worker([](auto& attr) { attr.nic = nullptr; }), -ENODEV);
    static const tw_nic no_tx{nullptr, no_packets, nullptr, no_time};
    EXPECT_EQ(open_worker([](auto& attr) { attr.nic = &no_tx; }), -ENODEV) << "the port's";
}

TEST_F(Arguments, ANicNeedsNoFunctionToReceive) {
    static const tw_nic no_rx{nullptr, nullptr, no_packets, no_time};
    const tw_worker_attr attr = with([](auto& attr) { attr.nic = &no_rx; });
    tw_worker* worker = nullptr;
    ASSERT_EQ(tw_worker_open(&attr, &worker), 0) << tw_last_error();
    EXPECT_EQ(tw_worker_close(worker), 0);
}

TEST_F(Arguments, InputWithoutAWorkerOrFramesGivesAllBack) {
    rte_mbuf* frames[2] = {};
    EXPECT_EQ(tw_worker_input(nullptr, frames, 2), 2);
    EXPECT_STRNE(tw_last_error(), "");
    EXPECT_EQ(tw_worker_input(worker_, nullptr, 2), 2);
    EXPECT_EQ(tw_worker_input(worker_, nullptr, 0), 0);
}

TEST_F(Arguments, TheTransportsReasonReachesTheCaller) {
    FakeTransport::refuse_creation = true;
    EXPECT_EQ(open_worker([](auto&) {}), -EINVAL);
    FakeTransport::refuse_creation = false;
    EXPECT_NE(std::string(tw_last_error()).find("the fake refuses"), std::string::npos);
}

TEST_F(Arguments, AttributesOfANewerCallerMustBeZero) {
    struct Newer {
        tw_cq_attr known;
        uint64_t unknown;
    } newer{{sizeof(Newer), 4}, 0};
    tw_cq* cq = nullptr;
    ASSERT_EQ(tw_cq_open(worker_, &newer.known, &cq), 0) << tw_last_error();
    EXPECT_EQ(tw_cq_close(cq), 0);
    newer.unknown = 1;
    EXPECT_EQ(tw_cq_open(worker_, &newer.known, &cq), -E2BIG);
}

TEST_F(Arguments, QueueSizeIsLimited) {
    tw_cq* cq = nullptr;
    const tw_cq_attr attr{sizeof(tw_cq_attr), UINT32_MAX};
    EXPECT_EQ(tw_cq_open(worker_, &attr, &cq), -EINVAL);
}

TEST_F(Arguments, AddressesAreChecked) {
    tw_addr index = 42;
    tw_address remote = address("10.0.0.3:4791");
    remote.family = 0;
    EXPECT_EQ(tw_av_insert(av_, &remote, &index), -EINVAL);
    remote = address("10.0.0.3:4791");
    remote.endpoint = TW_EP_ANY;
    EXPECT_EQ(tw_av_insert(av_, &remote, &index), -EINVAL);
    remote = address("[2001:db8::1]:4791");
    EXPECT_EQ(tw_av_insert(av_, &remote, &index), -EAFNOSUPPORT);
    EXPECT_EQ(index, 42u);
    EXPECT_EQ(tw_av_lookup(av_, 1, &remote), -EINVAL);
}

TEST_F(Arguments, SameAddressHasTheSameIndex) {
    const tw_address remote = address(kRemote);
    const tw_address another = address("10.0.0.3:4791");
    tw_addr index = 42;
    ASSERT_EQ(tw_av_insert(av_, &another, &index), 0);
    EXPECT_EQ(index, 1u);
    ASSERT_EQ(tw_av_insert(av_, &remote, &index), 0);
    EXPECT_EQ(index, peer_);
    tw_address found{};
    ASSERT_EQ(tw_av_lookup(av_, 1, &found), 0);
    EXPECT_EQ(std::memcmp(&found, &another, sizeof(found)), 0);
}

TEST_F(Arguments, BuffersAreChecked) {
    iovec iov[TW_IOV_LIMIT + 1] = {};
    EXPECT_EQ(tw_tsend(ep_, nullptr, 1, peer_, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_trecv(ep_, nullptr, 1, peer_, 0, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_tsendv(ep_, nullptr, 1, peer_, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_trecvv(ep_, nullptr, 1, peer_, 0, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_tsendv(ep_, iov, TW_IOV_LIMIT + 1, peer_, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_trecvv(ep_, iov, TW_IOV_LIMIT + 1, peer_, 0, 0, nullptr), -EINVAL);
    iov[0] = {buffer_, SIZE_MAX};
    iov[1] = {buffer_, 1};
    EXPECT_EQ(tw_tsendv(ep_, iov, 2, peer_, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_trecvv(ep_, iov, 2, peer_, 0, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_tsend(ep_, buffer_, TW_MAX_MESSAGE_SIZE + 1, peer_, 0, nullptr), -EMSGSIZE);
    EXPECT_TRUE(transport().sends.empty());
    EXPECT_TRUE(no_completion());
}

TEST_F(Arguments, DestinationAndSourceMustBeInTheVector) {
    EXPECT_EQ(tw_tsend(ep_, buffer_, 1, TW_ADDR_UNSPEC, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_tsend(ep_, buffer_, 1, peer_ + 1, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_trecv(ep_, buffer_, 1, peer_ + 1, 0, 0, nullptr), -EINVAL);
}

TEST_F(Arguments, TooManyPeersIsSaid) {
    transport().open_peer_result = -ENOSPC;
    EXPECT_EQ(tw_tsend(ep_, buffer_, 1, peer_, 0, nullptr), -ENOSPC);
    EXPECT_NE(std::string(tw_last_error()).find("max_peers"), std::string::npos);
}

TEST_F(Arguments, ErrorTextsNeedNoSign) {
    EXPECT_STREQ(tw_strerror(TW_ETRUNC), tw_strerror(-TW_ETRUNC));
    EXPECT_STREQ(tw_strerror(ENOMEM), "Cannot allocate memory");
    EXPECT_STREQ(tw_strerror(12345), "unknown error");
}

}  // namespace
}  // namespace tagwire::test
