// SPDX-License-Identifier: BSD-3-Clause
// Active messages: short, long, offered; kept data, replies, refusals.
#include "lib/ucp/request.h"
#include "test/sim/repeated.h"
#include "test/ucp/sim_fabric.h"

namespace tagwire::test {
namespace {

struct Received {
    std::string header;
    std::string data;
    uint64_t attributes;
    size_t length;
};

// What the handler of b does with a message.
enum class Taking { kCopy, kKeep, kFetch, kFetchLater, kRefuse, kIgnore };

class UcpAm : public UcpPair {
  protected:
    UcpAm() {
        handle(b, 7, this);
        handle(a, 8, this);
    }
    static void handle(UcpPeer& peer, unsigned id, UcpAm* test) {
        ucp_am_handler_param_t param{};
        param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                           UCP_AM_HANDLER_PARAM_FIELD_ARG;
        param.id = id;
        param.arg = test;
        param.cb = arrived;
        EXPECT_EQ(ucp_worker_set_am_recv_handler(peer.worker, &param), UCS_OK);
    }
    static ucs_status_t arrived(void* arg, const void* header, size_t header_length, void* data,
                                size_t length, const ucp_am_recv_param_t* param) {
        return static_cast<UcpAm*>(arg)->take(header, header_length, data, length, param);
    }
    ucs_status_t take(const void* header, size_t header_length, void* data, size_t length,
                      const ucp_am_recv_param_t* param) {
        Received message{std::string(static_cast<const char*>(header), header_length),
                         {},
                         param->recv_attr,
                         length};
        const bool offered = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
        if (!offered) {
            message.data.assign(static_cast<char*>(data), length);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
        }
        received.push_back(message);
        reply_ep =
            (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0 ? param->reply_ep : nullptr;
        kept = data;
        if (offered && taking == Taking::kFetch) {
            fetch();
            return UCS_OK;
        }
        if (taking == Taking::kRefuse) {
            return UCS_ERR_REJECTED;
        }
        return taking == Taking::kKeep || taking == Taking::kFetchLater ? UCS_INPROGRESS : UCS_OK;
    }
    void fetch() {
        fetched.assign(received.back().length, '\0');
        fetch(fetched.data(), fetched.size());
    }
    void fetch(void* buffer, size_t length) {
        ucp_request_param_t param{};
        fetching = ucp_am_recv_data_nbx(b.worker, kept, buffer, length, &param);
    }
    void* send(const std::string& header, const std::string& data, uint32_t flags = 0) {
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = flags;
        return ucp_am_send_nbx(to_b, 7, header.data(), header.size(), data.data(), data.size(),
                               &param);
    }

    Taking taking = Taking::kCopy;
    std::vector<Received> received;
    ucp_ep_h reply_ep = nullptr;
    void* kept = nullptr;
    std::string fetched;
    void* fetching = nullptr;
};

TEST_F(UcpAm, ShortMessagesOfAllSizesInOrder) {
    simulator.faults.loss = 0.02;
    std::vector<std::pair<std::string, std::string>> sent;
    std::vector<void*> requests;
    for (size_t i = 0; i < 200; ++i) {
        sent.emplace_back(bytes(i, i % 7 * 30), bytes(i + 1, i * 41 % 8192));
        requests.push_back(send(sent.back().first, sent.back().second, UCP_AM_SEND_FLAG_EAGER));
    }
    for (void* request : requests) {
        EXPECT_EQ(wait(request), UCS_OK);
    }
    ASSERT_TRUE(run([&] { return received.size() == sent.size(); }));
    for (size_t i = 0; i < sent.size(); ++i) {
        ASSERT_EQ(received[i].header, sent[i].first) << i;
        ASSERT_EQ(received[i].data, sent[i].second) << i;
    }
    simulator.faults = {};
}

TEST_F(UcpAm, LongMessagesAreOfferedAndFetchedInTheHandler) {
    taking = Taking::kFetch;
    const std::string data = bytes(1, 300'000);
    void* request = send("header", data);
    EXPECT_EQ(wait(request), UCS_OK);
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].header, "header");
    EXPECT_NE(received[0].attributes & UCP_AM_RECV_ATTR_FLAG_RNDV, 0u);
    EXPECT_EQ(wait(fetching), UCS_OK);
    EXPECT_EQ(fetched, data);
}

TEST_F(UcpAm, AnOfferCanBeFetchedLater) {
    taking = Taking::kFetchLater;
    const std::string data = bytes(1, 100'000);
    void* request = send("", data);
    ASSERT_TRUE(run([&] { return received.size() == 1; }));
    settle(2000);
    EXPECT_EQ(ucp_request_check_status(request), UCS_INPROGRESS);
    fetch();
    EXPECT_EQ(wait(fetching), UCS_OK);
    EXPECT_EQ(wait(request), UCS_OK);
    EXPECT_EQ(fetched, data);
}

// An offer whose data is more than one message of the core's.
class UcpAmLarge : public UcpAm {
  protected:
    static constexpr size_t kLength = ucp::kLargestPart + sim::Repeated::kPeriod;

    UcpAmLarge() : here_(kLength, true), there_(kLength, true) {
        most_.copy(reinterpret_cast<char*>(here_.base()), most_.size());
        last_.copy(reinterpret_cast<char*>(here_.tail()), last_.size());
        taking = Taking::kFetchLater;
        ucp_request_param_t param{};
        sending_ = ucp_am_send_nbx(to_b, 7, nullptr, 0, here_.base(), kLength, &param);
        EXPECT_TRUE(run([&] { return received.size() == 1; }));
        EXPECT_EQ(received[0].length, kLength);
    }
    ucs_status_t finish(void* request) {
        EXPECT_TRUE(run([&] { return ucp_request_is_completed(request) != 0; }, 20'000'000));
        return wait(request);
    }
    bool has_arrived() const {
        return std::memcmp(there_.base(), most_.data(), most_.size()) == 0 &&
               std::memcmp(there_.tail(), last_.data(), last_.size()) == 0;
    }
    bool is_untouched() const {
        const std::string nothing(sim::Repeated::kPeriod, '\0');
        return std::memcmp(there_.base(), nothing.data(), nothing.size()) == 0 &&
               std::memcmp(there_.tail(), nothing.data(), nothing.size()) == 0;
    }

    const std::string most_ = bytes(1, sim::Repeated::kPeriod);
    const std::string last_ = bytes(2, sim::Repeated::kPeriod);
    const sim::Repeated here_;
    const sim::Repeated there_;
    void* sending_;
};

TEST_F(UcpAmLarge, ComesInParts) {
    fetch(there_.base(), kLength);
    EXPECT_EQ(finish(fetching), UCS_OK);
    EXPECT_EQ(finish(sending_), UCS_OK);
    EXPECT_TRUE(has_arrived());
}

TEST_F(UcpAmLarge, IsTruncatedAsAWhole) {
    fetch(there_.base(), kLength - 1);
    EXPECT_EQ(finish(fetching), UCS_ERR_MESSAGE_TRUNCATED);
    EXPECT_EQ(finish(sending_), UCS_OK);
    EXPECT_TRUE(is_untouched());
    taking = Taking::kCopy;
    EXPECT_EQ(wait(send("", "next")), UCS_OK);
    ASSERT_TRUE(run([&] { return received.size() == 2; }));
    EXPECT_EQ(received[1].data, "next");
}

TEST_F(UcpAmLarge, EndsOnceWhenItsSenderGivesUp) {
    EXPECT_EQ(wait(ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FORCE)), UCS_OK);
    EXPECT_EQ(finish(sending_), UCS_ERR_CANCELED);
    static int ends;
    ends = 0;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK;
    param.cb.recv_am = [](void*, ucs_status_t status, size_t, void*) {
        EXPECT_NE(status, UCS_OK);
        ++ends;
    };
    fetching = ucp_am_recv_data_nbx(b.worker, kept, there_.base(), kLength, &param);
    EXPECT_NE(finish(fetching), UCS_OK);
    settle();
    EXPECT_EQ(ends, 1);
    EXPECT_TRUE(is_untouched());
}

TEST_F(UcpAm, AnOfferThatNobodyFetchesEndsItsSend) {
    taking = Taking::kIgnore;
    EXPECT_EQ(wait(send("", bytes(1, 100'000))), UCS_OK);
    taking = Taking::kRefuse;
    EXPECT_EQ(wait(send("", bytes(1, 100'000))), UCS_ERR_REJECTED);
    taking = Taking::kFetchLater;
    void* request = send("", bytes(1, 100'000));
    ASSERT_TRUE(run([&] { return received.size() == 3; }));
    ucp_am_data_release(b.worker, kept);
    EXPECT_EQ(wait(request), UCS_OK);
}

TEST_F(UcpAm, FlagsChooseTheWay) {
    EXPECT_EQ(wait(send("", bytes(1, 100'000), UCP_AM_SEND_FLAG_EAGER)), UCS_OK);
    ASSERT_TRUE(run([&] { return received.size() == 1; }));
    EXPECT_EQ(received[0].attributes & UCP_AM_RECV_ATTR_FLAG_RNDV, 0u);
    EXPECT_EQ(received[0].data, bytes(1, 100'000));
    taking = Taking::kFetch;
    EXPECT_EQ(wait(send("", "small", UCP_AM_SEND_FLAG_RNDV)), UCS_OK);
    EXPECT_NE(received[1].attributes & UCP_AM_RECV_ATTR_FLAG_RNDV, 0u);
    EXPECT_EQ(wait(fetching), UCS_OK);
    EXPECT_EQ(fetched, "small");
    EXPECT_EQ(send("", "x", UCP_AM_SEND_FLAG_RNDV | UCP_AM_SEND_FLAG_EAGER),
              UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
}

TEST_F(UcpAm, DataCanBeKeptAndGivenBack) {
    taking = Taking::kKeep;
    std::vector<void*> held;
    for (size_t i = 0; i < 300; ++i) {  // more than the channel has receives
        EXPECT_EQ(wait(send("", bytes(i, 100))), UCS_OK);
        ASSERT_TRUE(run([&] { return received.size() == i + 1; }));
        held.push_back(kept);
    }
    for (size_t i = 0; i < held.size(); ++i) {
        EXPECT_EQ(std::string(static_cast<char*>(held[i]), 100), bytes(i, 100));
        ucp_am_data_release(b.worker, held[i]);
    }
}

TEST_F(UcpAm, KeptDataCanBeReceivedIntoABuffer) {
    taking = Taking::kKeep;
    EXPECT_EQ(wait(send("", "kept data")), UCS_OK);
    ASSERT_TRUE(run([&] { return received.size() == 1; }));
    fetch();
    EXPECT_EQ(wait(fetching), UCS_OK);
    EXPECT_EQ(fetched, "kept data");
}

TEST_F(UcpAm, AReplyEndpointLeadsBack) {
    EXPECT_EQ(wait(send("h", "ask", UCP_AM_SEND_FLAG_REPLY)), UCS_OK);
    ASSERT_TRUE(run([&] { return received.size() == 1; }));
    ASSERT_NE(reply_ep, nullptr);
    ucp_request_param_t param{};
    EXPECT_EQ(wait(ucp_am_send_nbx(reply_ep, 8, nullptr, 0, "answer", 6, &param)), UCS_OK);
    ASSERT_TRUE(run([&] { return received.size() == 2; }));
    EXPECT_EQ(received[1].data, "answer");
}

TEST_F(UcpAm, HeadersUpToTheLimitTheWorkerTells) {
    ucp_worker_attr_t attr{};
    attr.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
    ASSERT_EQ(ucp_worker_query(b.worker, &attr), UCS_OK);
    const std::string header = bytes(3, attr.max_am_header);
    EXPECT_EQ(wait(send(header, "data")), UCS_OK);
    ASSERT_TRUE(run([&] { return received.size() == 1; }));
    EXPECT_EQ(received[0].header, header);
    EXPECT_EQ(send(header + "x", "data"), UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
}

TEST_F(UcpAm, WithoutAHandlerAMessageIsDropped) {
    ucp_request_param_t param{};
    testing::internal::CaptureStderr();
    EXPECT_EQ(wait(ucp_am_send_nbx(to_b, 99, nullptr, 0, "x", 1, &param)), UCS_OK);
    settle();
    EXPECT_NE(testing::internal::GetCapturedStderr().find("no handler"), std::string::npos);
}

TEST_F(UcpAm, TheOldCallsHaveNoHeader) {
    static std::string seen;
    seen.clear();
    ASSERT_EQ(ucp_worker_set_am_handler(
                  b.worker, 5,
                  [](void*, void* data, size_t length, ucp_ep_h reply, unsigned) -> ucs_status_t {
                      EXPECT_NE(reply, nullptr);
                      seen.assign(static_cast<char*>(data), length);
                      return UCS_OK;
                  },
                  nullptr, UCP_AM_FLAG_WHOLE_MSG),
              UCS_OK);
    for (const size_t size : {5, 5000, 200'000}) {
        const std::string data = bytes(size, size);
        EXPECT_EQ(
            wait(ucp_am_send_nb(to_b, 5, data.data(), size, kByte, ignore_sent, UCP_AM_SEND_REPLY)),
            UCS_OK);
        ASSERT_TRUE(run([&] { return seen.size() == size; }));
        EXPECT_EQ(seen, data);
    }
}

TEST_F(UcpAm, AnOfferMayHaveNoData) {
    taking = Taking::kFetch;
    EXPECT_EQ(wait(send("header", "", UCP_AM_SEND_FLAG_RNDV)), UCS_OK);
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].header, "header");
    EXPECT_NE(received[0].attributes & UCP_AM_RECV_ATTR_FLAG_RNDV, 0u);
    EXPECT_EQ(wait(fetching), UCS_OK);
    EXPECT_EQ(fetched, "");
}

TEST_F(UcpAm, TheHeaderCountsForTheThresholdOfOffers) {
    taking = Taking::kFetch;
    EXPECT_EQ(wait(send(bytes(1, 100), bytes(2, 8091))), UCS_OK);  // one byte less than 8192
    ASSERT_TRUE(run([&] { return received.size() == 1; }));
    EXPECT_EQ(received[0].attributes & UCP_AM_RECV_ATTR_FLAG_RNDV, 0u);
    EXPECT_EQ(wait(send(bytes(1, 100), bytes(2, 8092))), UCS_OK);
    ASSERT_EQ(received.size(), 2u);
    EXPECT_NE(received[1].attributes & UCP_AM_RECV_ATTR_FLAG_RNDV, 0u);
    EXPECT_EQ(wait(fetching), UCS_OK);
    EXPECT_EQ(fetched, bytes(2, 8092));
}

// As in UCX: what would need the closed endpoint is dropped, and its sender hears of it.
TEST_F(UcpAm, WhatNeedsAClosedEndpointIsDropped) {
    EXPECT_EQ(wait(ucp_ep_close_nb(to_a, UCP_EP_CLOSE_MODE_FLUSH)), UCS_OK);
    EXPECT_EQ(wait(send("", bytes(1, 100'000))), UCS_ERR_CANCELED);
    EXPECT_EQ(wait(send("", bytes(1, 100'000), UCP_AM_SEND_FLAG_EAGER)), UCS_ERR_CANCELED);
    EXPECT_EQ(wait(send("", "question", UCP_AM_SEND_FLAG_REPLY)), UCS_OK);
    settle();
    EXPECT_EQ(received.size(), 0u);
    EXPECT_EQ(wait(send("", "news")), UCS_OK);
    ASSERT_TRUE(run([&] { return received.size() == 1; }));
    EXPECT_EQ(received[0].data, "news");
}

TEST_F(UcpAm, AHandlerWithUnknownFlagsIsRefused) {
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    param.id = 9;
    param.cb = arrived;
    param.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    EXPECT_EQ(ucp_worker_set_am_recv_handler(b.worker, &param), UCS_OK);
    param.flags = 1u << 15;
    EXPECT_EQ(ucp_worker_set_am_recv_handler(b.worker, &param), UCS_ERR_INVALID_PARAM);
}

TEST_F(UcpAm, AnOfferOfADeadSenderEndsItsReceive) {
    taking = Taking::kFetchLater;
    void* request = send("", bytes(1, 100'000));
    ASSERT_TRUE(run([&] { return received.size() == 1; }));
    EXPECT_EQ(wait(ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FORCE)), UCS_OK);
    EXPECT_EQ(wait(request), UCS_ERR_CANCELED);
    fetch();
    EXPECT_NE(wait(fetching), UCS_OK);
}

}  // namespace
}  // namespace tagwire::test
