// SPDX-License-Identifier: BSD-3-Clause
// One worker on the fake transport, with an endpoint that is ready for use.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "lib/tagwire/address.h"
#include "tagwire/tagwire.h"
#include "test/tagwire/fake_transport.h"

namespace tagwire::test {

inline tw_address address(const char* text) {
    tw_address result{};
    EXPECT_EQ(tw_address_parse(text, &result), 0) << tw_last_error();
    return result;
}

inline uint16_t no_packets(void*, rte_mbuf**, uint16_t) {
    return 0;
}
inline uint64_t no_time(void*) {
    return 0;
}
inline const tw_nic kFakeNic{nullptr, no_packets, no_packets, no_time};

inline tw_worker_attr worker_attributes() {
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.nic = &kFakeNic;
    attr.address = address("10.0.0.1:4791");
    attr.mac[5] = 1;
    attr.packet_pool = reinterpret_cast<rte_mempool*>(64);  // the fake never looks
    attr.max_operations = 16;
    attr.random_seed = 1;
    return attr;
}

class Core : public testing::Test {
  protected:
    void SetUp() override {
        const tw_worker_attr attr = worker_attributes();
        ASSERT_EQ(tw_worker_open(&attr, &worker_), 0) << tw_last_error();
        ASSERT_EQ(tw_av_open(worker_, &av_), 0);
        ASSERT_EQ(tw_cq_open(worker_, nullptr, &cq_), 0);
        ASSERT_EQ(tw_ep_open(worker_, nullptr, &ep_), 0);
        const tw_address remote = address(kRemote);
        ASSERT_EQ(tw_av_insert(av_, &remote, &peer_), 0);
    }

    void TearDown() override {
        if (ep_ != nullptr) {
            EXPECT_EQ(tw_ep_close(ep_), 0) << tw_last_error();
        }
        EXPECT_EQ(tw_cq_close(cq_), 0) << tw_last_error();
        EXPECT_EQ(tw_av_close(av_), 0) << tw_last_error();
        EXPECT_EQ(tw_worker_close(worker_), 0) << tw_last_error();
    }

    void enable() {
        ASSERT_EQ(tw_ep_bind_av(ep_, av_), 0) << tw_last_error();
        ASSERT_EQ(tw_ep_bind_cq(ep_, cq_, TW_SEND | TW_RECV), 0) << tw_last_error();
        ASSERT_EQ(tw_ep_enable(ep_), 0) << tw_last_error();
    }

    static FakeTransport& transport() { return FakeTransport::current(); }

    transport::IncomingMessage& arrive(uint64_t tag, const std::string& payload,
                                       bool complete = true, const char* from = kRemote) {
        transport::IncomingMessage& message =
            transport().arrive(to_transport(address(from)), tag, payload, complete);
        tw_progress(worker_);
        return message;
    }

    tw_cq_entry completion() {
        tw_cq_entry entry{};
        EXPECT_EQ(tw_cq_read(cq_, &entry, 1), 1);
        return entry;
    }

    tw_cq_error error_completion() {
        tw_cq_error error{};
        tw_cq_entry entry{};
        EXPECT_EQ(tw_cq_read(cq_, &entry, 1), -TW_EAVAIL);
        EXPECT_EQ(tw_cq_readerr(cq_, &error), 1);
        return error;
    }

    bool no_completion() {
        tw_cq_entry entry{};
        return tw_cq_read(cq_, &entry, 1) == -EAGAIN;
    }

    static constexpr const char* kRemote = "10.0.0.2:4791";

    tw_worker* worker_ = nullptr;
    tw_av* av_ = nullptr;
    tw_cq* cq_ = nullptr;
    tw_ep* ep_ = nullptr;
    tw_addr peer_ = 0;
    int context_ = 0;
};

}  // namespace tagwire::test
