// SPDX-License-Identifier: BSD-3-Clause
// Flags that fabtests leave out: match completion, fences, several buffers for tagged receives,
// discarding what was claimed, authorization keys.
#include <string>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {
namespace {

class Flags : public Pair {
  protected:
    void SetUp() override {
        const Info hints = make_hints();
        hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_FENCE | FI_MULTI_RECV;
        open(*hints);
    }
    ssize_t send(const char* text, uint64_t tag, uint64_t flags) {
        iovec iov{const_cast<char*>(text), std::strlen(text) + 1};
        fi_msg_tagged message{};
        message.msg_iov = &iov;
        message.iov_count = 1;
        message.addr = to_right;
        message.tag = tag;
        return fi_tsendmsg(left->ep, &message, flags);
    }
    // Both sides work for a while.
    void turn() {
        for (int i = 0; i < 2000; ++i) {
            fi_cq_read(left->cq, nullptr, 0);
            fi_cq_read(right->cq, nullptr, 0);
        }
    }
};

TEST_F(Flags, AMatchCompletionComesWhenAReceiveHasTakenTheMessage) {
    ASSERT_EQ(send("matched", 1, FI_COMPLETION | FI_MATCH_COMPLETE), 0);
    turn();
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_read(left->cq, &entry, 1), -FI_EAGAIN) << "nothing took it yet";
    char text[16] = {};
    ASSERT_EQ(fi_trecv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
    expect(*right, FI_TAGGED | FI_RECV);
    expect(*left, FI_TAGGED | FI_SEND);
    EXPECT_STREQ(text, "matched");
}

TEST_F(Flags, AFencedMessageFollowsThePutThatItTellsOf) {
    std::vector<char> region(256 * 1024, '-');
    const std::vector<char> data(region.size(), 'd');
    fid_mr* mr = nullptr;
    require(fi_mr_reg(right->domain, region.data(), region.size(), FI_REMOTE_WRITE, 0, 17, 0, &mr,
                      nullptr),
            "fi_mr_reg");
    char text[16] = {};
    ASSERT_EQ(fi_trecv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, 2, 0, nullptr), 0);
    ASSERT_EQ(fi_write(left->ep, data.data(), data.size(), nullptr, to_right, 0, 17, nullptr), 0);
    ASSERT_EQ(send("written", 2, FI_COMPLETION | FI_FENCE), 0);
    expect(*right, FI_TAGGED | FI_RECV);
    EXPECT_EQ(region, data) << "the fence lets the message go when the put is complete";
    expect(*left, FI_RMA | FI_WRITE);
    expect(*left, FI_TAGGED | FI_SEND);
    EXPECT_EQ(fi_close(&mr->fid), 0);
}

TEST_F(Flags, ATaggedBufferTakesSeveralMessages) {
    std::vector<char> room(256);
    size_t least = 64;
    ASSERT_EQ(
        fi_setopt(&right->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)),
        0);
    iovec iov{room.data(), room.size()};
    fi_msg_tagged message{};
    message.msg_iov = &iov;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.tag = 3;
    ASSERT_EQ(fi_trecvmsg(right->ep, &message, FI_MULTI_RECV | FI_COMPLETION), 0);
    const std::string sent(99, 'm');
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(send(sent.c_str(), 3, FI_COMPLETION), 0);
    }
    size_t messages = 0;
    for (bool released = false; !released;) {
        fi_cq_tagged_entry entry{};
        ASSERT_EQ(wait(*right, &entry), 1);
        if (entry.len != 0) {
            EXPECT_EQ(entry.buf, room.data() + 100 * messages);
            EXPECT_EQ(entry.tag, 3u);
            ++messages;
        }
        released = (entry.flags & FI_MULTI_RECV) != 0;
    }
    EXPECT_EQ(messages, 2u);
    expect(*left, FI_TAGGED | FI_SEND);
    expect(*left, FI_TAGGED | FI_SEND);
}

TEST_F(Flags, WhatWasClaimedCanBeDiscarded) {
    ASSERT_EQ(send("claimed", 4, FI_COMPLETION | FI_MATCH_COMPLETE), 0);
    turn();
    fi_context claim{};
    fi_msg_tagged message{};
    message.addr = FI_ADDR_UNSPEC;
    message.tag = 4;
    message.context = &claim;
    ASSERT_EQ(fi_trecvmsg(right->ep, &message, FI_PEEK | FI_CLAIM), 0);
    EXPECT_EQ(expect(*right, FI_TAGGED | FI_RECV).len, 8u);
    ASSERT_EQ(fi_trecvmsg(right->ep, &message, FI_CLAIM | FI_DISCARD), 0);
    EXPECT_EQ(expect(*right, FI_TAGGED | FI_RECV).op_context, &claim);
    expect(*left, FI_TAGGED | FI_SEND);
    ASSERT_EQ(fi_trecvmsg(right->ep, &message, FI_PEEK), 0);
    EXPECT_EQ(expect_error(*right).err, FI_ENOMSG);
}

class Keys : public testing::TestWithParam<bool> {};

Info with_key(const char* key) {
    const Info hints = make_hints();
    hints->caps = FI_TAGGED;
    hints->ep_attr->auth_key = reinterpret_cast<uint8_t*>(strdup(key));
    hints->ep_attr->auth_key_size = std::strlen(key);
    return get_info(*hints);
}

TEST_P(Keys, PeersNeedTheSameOne) {
    const bool same = GetParam();
    const Info info = with_key("the key");
    const Info other = with_key(same ? "the key" : "another");
    EXPECT_EQ(info->ep_attr->auth_key_size, 7u);
    fid_fabric* fabric = nullptr;
    require(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    {
        Side left(fabric, info.get());
        Side right(fabric, other.get());
        const fi_addr_t to_right = left.insert(right);
        char text[8] = {};
        require(fi_trecv(right.ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
                "fi_trecv");
        require(fi_tsend(left.ep, "secret", 7, nullptr, to_right, 1, nullptr), "fi_tsend");
        ssize_t result = -FI_EAGAIN;
        fi_cq_tagged_entry entry{};
        for (long turn = 0; turn < 20'000'000 && result == -FI_EAGAIN; ++turn) {
            result = fi_cq_read(left.cq, &entry, 1);
            fi_cq_read(right.cq, nullptr, 0);
        }
        if (same) {
            EXPECT_EQ(result, 1);
        } else {
            ASSERT_EQ(result, -FI_EAVAIL);
            fi_cq_err_entry error{};
            ASSERT_EQ(fi_cq_readerr(left.cq, &error, 0), 1);
            EXPECT_EQ(error.err, FI_EKEYREJECTED);
        }
    }
    EXPECT_EQ(fi_close(&fabric->fid), 0);
}

INSTANTIATE_TEST_SUITE_P(SameOrNot, Keys, testing::Bool());

}  // namespace
}  // namespace tagwire::fi_test
