// SPDX-License-Identifier: BSD-3-Clause
// The provider through libfabric's own calls.
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/fi_trigger.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {
namespace {

class Messages : public Pair {
  protected:
    void SetUp() override {
        const Info hints = make_hints();
        hints->caps = FI_TAGGED | FI_MSG | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_DIRECTED_RECV |
                      FI_MULTI_RECV | FI_RMA_EVENT;
        open(*hints);
    }
};

TEST(Info, EntryPerPortWithHonestAttributes) {
    const Info info = get_info(*make_hints());
    EXPECT_STREQ(info->fabric_attr->prov_name, "tagwire");
    EXPECT_EQ(info->next, nullptr);
    EXPECT_EQ(info->addr_format, static_cast<uint32_t>(FI_SOCKADDR_IN));
    EXPECT_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
    EXPECT_EQ(info->domain_attr->mr_mode, 0);
    EXPECT_GE(info->tx_attr->inject_size, 128u);
    EXPECT_GE(info->ep_attr->max_msg_size, size_t{1} << 30);
    EXPECT_EQ(info->ep_attr->mem_tag_format >> 63, 1u);
    EXPECT_NE(info->tx_attr->msg_order & FI_ORDER_SAS, 0u);
    EXPECT_NE(info->src_addr, nullptr);
}

TEST(Info, HintsThatCannotBeMetAreRefused) {
    fi_info* info = nullptr;
    const auto refused = [&](const Info& hints) {
        return fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &info) ==
               -FI_ENODATA;
    };
    Info hints = make_hints();
    hints->caps = FI_MULTICAST;
    EXPECT_TRUE(refused(hints)) << "capability";
    hints = make_hints();
    hints->ep_attr->type = FI_EP_DGRAM;
    EXPECT_TRUE(refused(hints)) << "endpoint type";
    hints = make_hints();
    hints->tx_attr->inject_size = 1 << 20;
    EXPECT_TRUE(refused(hints)) << "inject size";
    hints = make_hints();
    hints->addr_format = FI_ADDR_STR;
    EXPECT_TRUE(refused(hints)) << "address format";
}

TEST_F(Messages, TaggedWithDataSourceAndTag) {
    char received[64] = {};
    int context = 0;
    ASSERT_EQ(fi_trecv(right->ep, received, sizeof(received), nullptr, FI_ADDR_UNSPEC, 0x1200, 0xff,
                       &context),
              0);
    ASSERT_EQ(
        fi_tsenddata(left->ep, "tagged", 7, nullptr, 0x1122334455667788, to_right, 0x1234, nullptr),
        0);
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    const auto entry = expect(*right, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA, &source);
    EXPECT_EQ(entry.op_context, &context);
    EXPECT_EQ(entry.len, 7u);
    EXPECT_EQ(entry.tag, 0x1234u);
    EXPECT_EQ(entry.data, 0x1122334455667788u);
    EXPECT_EQ(source, to_left);
    EXPECT_STREQ(received, "tagged");
    expect(*left, FI_TAGGED | FI_SEND);
}

TEST_F(Messages, LargeMessageArrivesWhole) {
    std::vector<uint32_t> sent(1 << 20);
    std::iota(sent.begin(), sent.end(), 17);
    std::vector<uint32_t> received(sent.size());
    const size_t bytes = sent.size() * sizeof(sent[0]);
    ASSERT_EQ(fi_tsend(left->ep, sent.data(), bytes, nullptr, to_right, 1, nullptr), 0);
    ASSERT_EQ(fi_trecv(right->ep, received.data(), bytes, nullptr, to_left, 1, 0, nullptr), 0);
    EXPECT_EQ(expect(*right, FI_TAGGED | FI_RECV).len, bytes);
    expect(*left, FI_TAGGED | FI_SEND);
    EXPECT_EQ(sent, received);
}

TEST_F(Messages, InjectNeedsNoBufferAndHasNoCompletion) {
    char text[] = "inject";
    ASSERT_EQ(fi_tinject(left->ep, text, sizeof(text), to_right, 5), 0);
    std::memset(text, 'x', sizeof(text) - 1);
    char received[16] = {};
    ASSERT_EQ(
        fi_trecv(right->ep, received, sizeof(received), nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr), 0);
    expect(*right, FI_TAGGED | FI_RECV);
    EXPECT_STREQ(received, "inject");
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_read(left->cq, &entry, 1), -FI_EAGAIN);
    const std::vector<char> long_one(info->tx_attr->inject_size + 1);
    EXPECT_EQ(fi_tinject(left->ep, long_one.data(), long_one.size(), to_right, 5), -FI_EINVAL);
}

TEST_F(Messages, TruncationTellsHowMuchWasLostAndTheNextMessageIsUnharmed) {
    std::vector<char> buffer(150, 'c');
    ASSERT_EQ(fi_trecv(right->ep, buffer.data(), 100, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
    const std::vector<char> sent(130, 's');
    ASSERT_EQ(fi_tsend(left->ep, sent.data(), sent.size(), nullptr, to_right, 1, nullptr), 0);
    const fi_cq_err_entry error = expect_error(*right);
    EXPECT_EQ(error.err, FI_ETRUNC);
    EXPECT_EQ(error.olen, 30u);
    EXPECT_TRUE(std::all_of(buffer.begin() + 100, buffer.end(), [](char c) { return c == 'c'; }));
    expect(*left, FI_TAGGED | FI_SEND);
    ASSERT_EQ(fi_trecv(right->ep, buffer.data(), 150, nullptr, FI_ADDR_UNSPEC, 2, 0, nullptr), 0);
    ASSERT_EQ(fi_tsend(left->ep, sent.data(), sent.size(), nullptr, to_right, 2, nullptr), 0);
    EXPECT_EQ(expect(*right, FI_TAGGED | FI_RECV).len, 130u);
    expect(*left, FI_TAGGED | FI_SEND);
}

TEST_F(Messages, PeekClaimAndDiscard) {
    ASSERT_EQ(fi_tsend(left->ep, "first", 6, nullptr, to_right, 1, nullptr), 0);
    ASSERT_EQ(fi_tsend(left->ep, "second", 7, nullptr, to_right, 1, nullptr), 0);
    expect(*left, FI_TAGGED | FI_SEND);
    expect(*left, FI_TAGGED | FI_SEND);
    fi_context claim{};
    fi_msg_tagged message{};
    message.addr = FI_ADDR_UNSPEC;
    message.tag = 1;
    message.context = &claim;
    ASSERT_EQ(fi_trecvmsg(right->ep, &message, FI_PEEK | FI_CLAIM), 0);
    fi_cq_tagged_entry found{};
    ASSERT_EQ(wait(*right, &found), 1);
    EXPECT_EQ(found.len, 6u);
    char received[16] = {};
    ASSERT_EQ(
        fi_trecv(right->ep, received, sizeof(received), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
    expect(*right, FI_TAGGED | FI_RECV);
    EXPECT_STREQ(received, "second") << "a claimed message matches nobody else";
    // Another tag and mask than the peek had: the context alone names the message.
    iovec iov{received, sizeof(received)};
    message.msg_iov = &iov;
    message.iov_count = 1;
    message.tag = 99;
    message.ignore = 0xff;
    ASSERT_EQ(fi_trecvmsg(right->ep, &message, FI_CLAIM), 0);
    expect(*right, FI_TAGGED | FI_RECV);
    EXPECT_STREQ(received, "first");
    ASSERT_EQ(fi_trecvmsg(right->ep, &message, FI_PEEK), 0);
    EXPECT_EQ(expect_error(*right).err, FI_ENOMSG);
}

TEST_F(Messages, DirectedReceiveWaitsForItsSource) {
    char received[16] = {};
    const fi_addr_t itself = right->insert(*right);
    ASSERT_EQ(fi_trecv(right->ep, received, sizeof(received), nullptr, itself, 1, 0, nullptr), 0);
    ASSERT_EQ(fi_tsend(left->ep, "left", 5, nullptr, to_right, 1, nullptr), 0);
    expect(*left, FI_TAGGED | FI_SEND);
    ASSERT_EQ(fi_tinject(right->ep, "itself", 7, itself, 1), 0);
    expect(*right, FI_TAGGED | FI_RECV);
    EXPECT_STREQ(received, "itself");
}

TEST_F(Messages, CancelledReceiveCompletesOnce) {
    char received[16];
    int context = 0;
    ASSERT_EQ(
        fi_trecv(right->ep, received, sizeof(received), nullptr, FI_ADDR_UNSPEC, 1, 0, &context),
        0);
    EXPECT_EQ(fi_cancel(&right->ep->fid, &context), 0);
    const fi_cq_err_entry error = expect_error(*right);
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_EQ(error.op_context, &context);
    EXPECT_NE(fi_cancel(&right->ep->fid, &context), 0);
}

TEST_F(Messages, MultiReceiveIsReleasedLast) {
    std::vector<char> room(256);
    size_t least = 64;
    ASSERT_EQ(
        fi_setopt(&right->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)),
        0);
    iovec iov{room.data(), room.size()};
    fi_msg message{};
    message.msg_iov = &iov;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    ASSERT_EQ(fi_recvmsg(right->ep, &message, FI_MULTI_RECV), 0);
    const std::vector<char> sent(100, 'm');
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(fi_send(left->ep, sent.data(), sent.size(), nullptr, to_right, nullptr), 0);
    }
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(wait(*right, &entry), 1);
    EXPECT_EQ(entry.buf, room.data());
    EXPECT_EQ(entry.flags & FI_MULTI_RECV, 0u);
    ASSERT_EQ(wait(*right, &entry), 1);
    EXPECT_EQ(entry.buf, room.data() + 100);
    if ((entry.flags & FI_MULTI_RECV) == 0) {
        ASSERT_EQ(wait(*right, &entry), 1);
    }
    EXPECT_NE(entry.flags & FI_MULTI_RECV, 0u);
    expect(*left, FI_MSG | FI_SEND);
    expect(*left, FI_MSG | FI_SEND);
}

TEST_F(Messages, WaitDescriptorWakesAndTryWaitSeesWhatIsThere) {
    char received[16];
    ASSERT_EQ(fi_recv(right->ep, received, sizeof(received), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    int fd = -1;
    ASSERT_EQ(fi_control(&right->cq->fid, FI_GETWAIT, &fd), 0);
    fid* waiting[] = {&right->cq->fid};
    ASSERT_EQ(fi_trywait(fabric, waiting, 1), 0);
    ASSERT_EQ(fi_inject(left->ep, "wake", 5, to_right), 0);
    bool seen = false;
    for (int i = 0; i < 2000 && !seen; ++i) {
        if (fi_trywait(fabric, waiting, 1) == -FI_EAGAIN) {
            seen = true;
            break;
        }
        pollfd sleeper{fd, POLLIN, 0};
        ASSERT_GE(poll(&sleeper, 1, 5000), 0);
    }
    EXPECT_TRUE(seen);
    expect(*right, FI_MSG | FI_RECV);
}

TEST_F(Messages, TheHelperWorksWhileTheApplicationDoesNot) {
    // Nobody calls the left side after the send; its domain's helper completes it.
    ASSERT_EQ(fi_tsend(left->ep, "alone", 6, nullptr, to_right, 3, nullptr), 0);
    char received[16];
    ASSERT_EQ(
        fi_trecv(right->ep, received, sizeof(received), nullptr, FI_ADDR_UNSPEC, 3, 0, nullptr), 0);
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_sread(right->cq, &entry, 1, nullptr, 20000), 1);
    EXPECT_EQ(fi_cq_sread(left->cq, &entry, 1, nullptr, 20000), 1);
}

TEST_F(Messages, PutGetAndAtomicsReachTheRegionOfAKey) {
    std::vector<uint64_t> memory(64, 7);
    fid_mr* region = nullptr;
    ASSERT_EQ(fi_mr_reg(right->domain, memory.data(), memory.size() * 8,
                        FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0xbeef, 0, &region, nullptr),
              0);
    EXPECT_EQ(fi_mr_key(region), 0xbeefu);
    const uint64_t put = 42;
    ASSERT_EQ(fi_write(left->ep, &put, 8, nullptr, to_right, 16, 0xbeef, nullptr), 0);
    expect(*left, FI_RMA | FI_WRITE);
    EXPECT_EQ(memory[2], 42u);
    uint64_t got = 0;
    ASSERT_EQ(fi_read(left->ep, &got, 8, nullptr, to_right, 16, 0xbeef, nullptr), 0);
    expect(*left, FI_RMA | FI_READ);
    EXPECT_EQ(got, 42u);
    const uint64_t operand = 8;
    uint64_t old = 0;
    ASSERT_EQ(fi_fetch_atomic(left->ep, &operand, 1, nullptr, &old, nullptr, to_right, 16, 0xbeef,
                              FI_UINT64, FI_SUM, nullptr),
              0);
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(wait(*left, &entry), 1);
    EXPECT_EQ(old, 42u);
    EXPECT_EQ(memory[2], 50u);
    ASSERT_EQ(fi_writedata(left->ep, &put, 8, nullptr, 99, to_right, 0, 0xbeef, nullptr), 0);
    EXPECT_EQ(expect(*right, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA).data, 99u);
    expect(*left, FI_RMA | FI_WRITE);
    ASSERT_EQ(fi_write(left->ep, &put, 8, nullptr, to_right, 0, 0xdead, nullptr), 0);
    EXPECT_GT(expect_error(*left).err, 0);
    fid_mr* second = nullptr;
    EXPECT_EQ(
        fi_mr_reg(right->domain, memory.data(), 8, FI_REMOTE_READ, 0, 0xbeef, 0, &second, nullptr),
        -FI_ENOKEY);
    EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(Messages, AddressesAsTextAndByLookup) {
    std::vector<char> name(64);
    size_t length = name.size();
    ASSERT_EQ(fi_av_lookup(left->av, to_right, name.data(), &length), 0);
    name.resize(length);
    EXPECT_EQ(name, right->name());
    char text[64];
    size_t size = sizeof(text);
    fi_av_straddr(left->av, name.data(), text, &size);
    EXPECT_EQ(std::string(text).rfind("fi_sockaddr_in://10.", 0), 0u) << text;
    fi_addr_t address = FI_ADDR_UNSPEC;
    EXPECT_EQ(fi_av_insertsvc(left->av, "10.1.2.3", "4791", &address, 0, nullptr), 1);
    EXPECT_EQ(fi_av_remove(left->av, &address, 1, 0), 0);
}

TEST(SelectiveCompletion, OnlyFlaggedOperationsComplete) {
    class Selective : public Pair {
      public:
        void TestBody() override {}
        void run() {
            open(*make_hints(), FI_SELECTIVE_COMPLETION);
            char received[16];
            iovec iov{received, sizeof(received)};
            fi_msg message{};
            message.msg_iov = &iov;
            message.iov_count = 1;
            message.addr = FI_ADDR_UNSPEC;
            ASSERT_EQ(fi_recvmsg(right->ep, &message, FI_COMPLETION), 0);
            ASSERT_EQ(fi_send(left->ep, "silent", 7, nullptr, to_right, nullptr), 0);
            expect(*right, FI_MSG | FI_RECV);
            ASSERT_EQ(fi_recvmsg(right->ep, &message, FI_COMPLETION), 0);
            iovec out{received, 4};
            fi_msg loud{};
            loud.msg_iov = &out;
            loud.iov_count = 1;
            loud.addr = to_right;
            int context = 0;
            loud.context = &context;
            ASSERT_EQ(fi_sendmsg(left->ep, &loud, FI_COMPLETION), 0);
            EXPECT_EQ(expect(*left, FI_MSG | FI_SEND).op_context, &context);
            expect(*right, FI_MSG | FI_RECV);
        }
        using Pair::TearDown;
    };
    Selective selective;
    selective.run();
    selective.TearDown();
}

TEST_F(Messages, DeferredWorkWaitsForItsCounterAndEndsQuietly) {
    fi_cntr_attr attr{};
    fid_cntr* trigger = nullptr;
    fid_cntr* completion = nullptr;
    ASSERT_EQ(fi_cntr_open(left->domain, &attr, &trigger, nullptr), 0);
    ASSERT_EQ(fi_cntr_open(left->domain, &attr, &completion, nullptr), 0);
    char received[16] = {};
    ASSERT_EQ(
        fi_trecv(right->ep, received, sizeof(received), nullptr, FI_ADDR_UNSPEC, 9, 0, nullptr), 0);
    char text[] = "deferred";
    iovec iov{text, sizeof(text)};
    fi_op_tagged operation{};
    operation.ep = left->ep;
    operation.msg.msg_iov = &iov;
    operation.msg.iov_count = 1;
    operation.msg.addr = to_right;
    operation.msg.tag = 9;
    fi_deferred_work work{};
    work.threshold = 2;
    work.triggering_cntr = trigger;
    work.completion_cntr = completion;
    work.op_type = FI_OP_TSEND;
    work.op.tagged = &operation;
    ASSERT_EQ(fi_control(&left->domain->fid, FI_QUEUE_WORK, &work), 0);
    ASSERT_EQ(fi_cntr_add(trigger, 1), 0);
    fi_cq_tagged_entry entry{};
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(fi_cq_read(left->cq, &entry, 1), -FI_EAGAIN);
        EXPECT_EQ(fi_cq_read(right->cq, &entry, 1), -FI_EAGAIN);
    }
    ASSERT_EQ(fi_cntr_add(trigger, 1), 0);
    expect(*right, FI_TAGGED | FI_RECV);
    EXPECT_STREQ(received, "deferred");
    EXPECT_EQ(fi_cntr_wait(completion, 1, 20'000), 0);
    EXPECT_EQ(fi_cq_read(left->cq, &entry, 1), -FI_EAGAIN) << "no entry without FI_COMPLETION";
    EXPECT_EQ(fi_close(&trigger->fid), 0);
    EXPECT_EQ(fi_close(&completion->fid), 0);
}

}  // namespace
}  // namespace tagwire::fi_test
