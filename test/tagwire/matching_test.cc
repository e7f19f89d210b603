// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint takes for matching, and what it tells of it.
#include <cerrno>
#include <string>
#include <vector>

#include "test/tagwire/core_fixture.h"

namespace tagwire::test {
namespace {

class Matching : public testing::Test {
  protected:
    void open(uint32_t max_operations) {
        tw_worker_attr attr = worker_attributes();
        attr.max_operations = max_operations;
        ASSERT_EQ(tw_worker_open(&attr, &worker_), 0) << tw_last_error();
        ASSERT_EQ(tw_av_open(worker_, &av_), 0);
        ASSERT_EQ(tw_cq_open(worker_, nullptr, &cq_), 0);
        ASSERT_EQ(tw_ep_open(worker_, nullptr, &ep_), 0);
        ASSERT_EQ(tw_ep_bind_av(ep_, av_), 0);
        ASSERT_EQ(tw_ep_bind_cq(ep_, cq_, TW_SEND | TW_RECV), 0);
    }

    void TearDown() override {
        EXPECT_EQ(ep_ == nullptr ? 0 : tw_ep_close(ep_), 0) << tw_last_error();
        EXPECT_EQ(tw_cq_close(cq_), 0) << tw_last_error();
        EXPECT_EQ(tw_av_close(av_), 0) << tw_last_error();
        EXPECT_EQ(tw_worker_close(worker_), 0) << tw_last_error();
    }

    uint64_t stat(const std::string& name) {
        std::vector<tw_stat> stats(256);
        const int count = tw_worker_stats(worker_, stats.data(), 256);
        for (int i = 0; i < count; ++i) {
            if (stats[static_cast<size_t>(i)].name == name) {
                return stats[static_cast<size_t>(i)].value;
            }
        }
        ADD_FAILURE() << "there is no counter " << name;
        return 0;
    }

    tw_worker* worker_ = nullptr;
    tw_av* av_ = nullptr;
    tw_cq* cq_ = nullptr;
    tw_ep* ep_ = nullptr;
};

// The tests' EAL has 64 MB.
TEST_F(Matching, EndpointThatFindsNoMemoryIsNotEnabledAndSaysWhatToDo) {
    open(1u << 20);
    EXPECT_EQ(tw_ep_enable(ep_), -ENOMEM);
    const std::string text = tw_last_error();
    EXPECT_NE(text.find("-m"), std::string::npos) << text;
    EXPECT_NE(text.find("max_operations"), std::string::npos) << text;
    char byte = 0;
    EXPECT_EQ(tw_trecv(ep_, &byte, 1, TW_ADDR_UNSPEC, 1, 0, nullptr), -TW_EOPBADSTATE);
}

TEST_F(Matching, MemoryComesBackWhenTheEndpointIsClosed) {
    open(1u << 16);
    for (int i = 0; i < 8; ++i) {
        ASSERT_EQ(tw_ep_enable(ep_), 0) << tw_last_error();
        ASSERT_EQ(tw_ep_close(ep_), 0);
        ep_ = nullptr;
        ASSERT_EQ(tw_ep_open(worker_, nullptr, &ep_), 0);
        ASSERT_EQ(tw_ep_bind_av(ep_, av_), 0);
        ASSERT_EQ(tw_ep_bind_cq(ep_, cq_, TW_SEND | TW_RECV), 0);
    }
}

TEST_F(Matching, ReceivesWithoutAClassAndLongQueuesAreCounted) {
    open(128);
    ASSERT_EQ(tw_ep_enable(ep_), 0) << tw_last_error();
    char byte = 0;
    for (uint64_t i = 0; i < 100; ++i) {
        const uint64_t ignore = i < 64 ? 0 : i;  // 36 masks, of which 31 have a class
        ASSERT_EQ(tw_trecv(ep_, &byte, 1, TW_ADDR_UNSPEC, 0, ignore, nullptr), 0);
    }
    EXPECT_EQ(stat("posted_queue_long"), 1u);
    EXPECT_EQ(stat("unexpected_queue_long"), 0u);
    EXPECT_EQ(stat("receives_without_class"), 5u);
    ASSERT_EQ(tw_ep_close(ep_), 0);
    ep_ = nullptr;
    EXPECT_EQ(stat("posted_queue_long"), 1u);
    EXPECT_EQ(stat("receives_without_class"), 5u);
    tw_cq_entry entry;
    tw_cq_error error;
    while (tw_cq_read(cq_, &entry, 1) == -TW_EAVAIL && tw_cq_readerr(cq_, &error) == 1) {
    }
}

}  // namespace
}  // namespace tagwire::test
