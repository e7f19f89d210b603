// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: U4 (close, flush and force), U5 (flush), U6 (worker flush), error handling.
#include <chrono>

#include "lib/ucp/worker.h"
#include "test/ucp/sim_fabric.h"

namespace tagwire::test {
namespace {

class UcpEndpoint : public UcpPair {};

TEST_F(UcpEndpoint, ClosedWithFlushDeliversWhatWasSent) {
    const std::string large = bytes(1, 50'000);
    std::string in(large.size(), '\0');
    void* receive =
        ucp_tag_recv_nb(b.worker, in.data(), in.size(), kByte, 1, UINT64_MAX, ignore_received);
    void* send = ucp_tag_send_nb(to_b, large.data(), large.size(), kByte, 1, ignore_sent);
    void* close = ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FLUSH);
    EXPECT_EQ(wait(close), UCS_OK);
    EXPECT_EQ(wait(send), UCS_OK);
    EXPECT_EQ(wait(receive), UCS_OK);
    EXPECT_EQ(in, large);
}

// The short one has no request: it is on the way all the same.
TEST_F(UcpEndpoint, ClosedWithFlushAwaitsShortMessagesToo) {
    EXPECT_EQ(wait(ucp_tag_send_nb(to_b, "up", 2, kByte, 9, ignore_sent)), UCS_OK);
    ASSERT_EQ(ucp_tag_send_nb(to_b, "short", 5, kByte, 1, ignore_sent), nullptr);
    void* close = ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FLUSH);
    EXPECT_TRUE(UCS_PTR_IS_PTR(close));
    EXPECT_EQ(wait(close), UCS_OK);
    std::string in(5, '\0');
    void* receive = ucp_tag_recv_nb(b.worker, in.data(), 5, kByte, 1, UINT64_MAX, ignore_received);
    EXPECT_EQ(wait(receive), UCS_OK);
    EXPECT_EQ(in, "short");
}

TEST_F(UcpEndpoint, IdleIsClosedAtOnce) {
    EXPECT_EQ(ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FLUSH), nullptr);
    EXPECT_EQ(ucp_disconnect_nb(to_a), nullptr);
}

TEST_F(UcpEndpoint, DestroyBlocksUntilItIsDone) {
    const std::string payload = bytes(1, 30'000);
    std::string in(payload.size(), '\0');
    void* receive =
        ucp_tag_recv_nb(b.worker, in.data(), in.size(), kByte, 1, UINT64_MAX, ignore_received);
    ucp_request_release(
        ucp_tag_send_nb(to_b, payload.data(), payload.size(), kByte, 1, ignore_sent));
    ucp_ep_destroy(to_b);
    EXPECT_EQ(wait(receive), UCS_OK);
    EXPECT_EQ(in, payload);
}

TEST_F(UcpEndpoint, ForcedCloseCancelsWhatIsOutstanding) {
    static int calls;
    static ucs_status_t seen;
    calls = 0;
    const std::string large = bytes(1, 4 << 20);  // without a receive it cannot end
    void* send =
        ucp_tag_send_nb(to_b, large.data(), large.size(), kByte, 1, [](void*, ucs_status_t status) {
            ++calls;
            seen = status;
        });
    settle();
    EXPECT_EQ(ucp_request_check_status(send), UCS_INPROGRESS);
    EXPECT_EQ(wait(ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FORCE)), UCS_OK);
    EXPECT_EQ(wait(send), UCS_ERR_CANCELED);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(seen, UCS_ERR_CANCELED);
    EXPECT_TRUE(a.failures.empty()) << "the program closed it itself";
    // The other side is a peer like any other afterwards.
    to_b = a.connect(b);
    std::string in(5, '\0');
    void* receive = ucp_tag_recv_nb(b.worker, in.data(), 5, kByte, 2, UINT64_MAX, ignore_received);
    EXPECT_EQ(wait(ucp_tag_send_nb(to_b, "again", 5, kByte, 2, ignore_sent)), UCS_OK);
    EXPECT_EQ(wait(receive), UCS_OK);
}

TEST_F(UcpEndpoint, ForcedCloseNeedsPeerErrorHandling) {
    ucp_ep_h plain = a.connect(b, UCP_ERR_HANDLING_MODE_NONE);
    EXPECT_EQ(ucp_ep_close_nb(plain, UCP_EP_CLOSE_MODE_FORCE),
              UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
    EXPECT_EQ(wait(ucp_ep_close_nb(plain, UCP_EP_CLOSE_MODE_FLUSH)), UCS_OK);
}

TEST_F(UcpEndpoint, FlushEndsWhenAllBeforeItIsThere) {
    EXPECT_EQ(ucp_ep_flush_nb(to_b, 0, ignore_sent), nullptr) << "nothing is outstanding";
    std::vector<void*> sends;
    const std::string payload = bytes(1, 5000);
    for (uint64_t i = 0; i < 10; ++i) {
        sends.push_back(
            ucp_tag_send_nb(to_b, payload.data(), payload.size(), kByte, i, ignore_sent));
    }
    void* flush = ucp_ep_flush_nb(to_b, 0, ignore_sent);
    ASSERT_TRUE(UCS_PTR_IS_PTR(flush));
    EXPECT_EQ(wait(flush), UCS_OK);
    for (void* send : sends) {
        EXPECT_EQ(ucp_request_check_status(send), UCS_OK);
        ucp_request_free(send);
    }
}

// openucx/ucx 1641: the peer takes its turns only now and then.
TEST_F(UcpEndpoint, BlockingFlushReturns) {
    const std::string payload = bytes(1, 5000);
    void* send = ucp_tag_send_nb(to_b, payload.data(), payload.size(), kByte, 1, ignore_sent);
    EXPECT_EQ(ucp_ep_flush(to_b), UCS_OK);
    EXPECT_EQ(ucp_request_check_status(send), UCS_OK);
    ucp_request_free(send);
    EXPECT_EQ(ucp_worker_flush(a.worker), UCS_OK);
}

TEST_F(UcpEndpoint, WorkerFlushCoversAllEndpoints) {
    UcpPeer c;
    peers_.push_back(&c);
    ucp_ep_h to_c = a.connect(c);
    const std::string payload = bytes(1, 5000);
    void* first = ucp_tag_send_nb(to_b, payload.data(), payload.size(), kByte, 1, ignore_sent);
    void* second = ucp_tag_send_nb(to_c, payload.data(), payload.size(), kByte, 1, ignore_sent);
    ucp_request_param_t param{};
    EXPECT_EQ(wait(ucp_worker_flush_nbx(a.worker, &param)), UCS_OK);
    EXPECT_EQ(ucp_request_check_status(first), UCS_OK);
    EXPECT_EQ(ucp_request_check_status(second), UCS_OK);
    ucp_request_free(first);
    ucp_request_free(second);
    peers_.pop_back();
}

TEST_F(UcpEndpoint, ADeadPeerIsReportedOnceAndEndsEverything) {
    const std::string payload = bytes(1, 5000);
    EXPECT_EQ(wait(ucp_tag_send_nb(to_b, "up", 2, kByte, 1, ignore_sent)), UCS_OK);
    settle();
    fabric.silence(1);
    void* first = ucp_tag_send_nb(to_b, payload.data(), payload.size(), kByte, 1, ignore_sent);
    void* second = ucp_tag_send_nb(to_b, payload.data(), payload.size(), kByte, 2, ignore_sent);
    peers_ = {&a};
    EXPECT_TRUE(run_long([&] { return ucp_request_is_completed(second) != 0; }));
    EXPECT_EQ(wait(first), UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(wait(second), UCS_ERR_ENDPOINT_TIMEOUT);
    settle();
    EXPECT_EQ(a.failures, (std::vector<ucs_status_t>{UCS_ERR_ENDPOINT_TIMEOUT}));
    EXPECT_EQ(ucp_tag_send_nb(to_b, "x", 1, kByte, 1, ignore_sent),
              UCS_STATUS_PTR(UCS_ERR_ENDPOINT_TIMEOUT));
    EXPECT_EQ(ucp_ep_flush(to_b), UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(wait(ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FORCE)), UCS_OK);
}

// A close in flush mode is a flush, too.
TEST_F(UcpEndpoint, ACloseTellsThatThePeerHasDied) {
    EXPECT_EQ(wait(ucp_tag_send_nb(to_b, "up", 2, kByte, 1, ignore_sent)), UCS_OK);
    settle();
    fabric.silence(1);
    peers_ = {&a};
    ASSERT_EQ(ucp_tag_send_nb(to_b, "lost", 4, kByte, 1, ignore_sent), nullptr);
    void* close = ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FLUSH);
    ASSERT_TRUE(UCS_PTR_IS_PTR(close));
    EXPECT_TRUE(run_long([&] { return ucp_request_is_completed(close) != 0; }));
    EXPECT_EQ(wait(close), UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(a.failures.size(), 0u) << "the close has told it";
}

// Nothing is under way: only the question for a sign of life can tell.
TEST_F(UcpEndpoint, ADeadPeerIsNoticedWithoutTraffic) {
    EXPECT_EQ(wait(ucp_tag_send_nb(to_b, "up", 2, kByte, 1, ignore_sent)), UCS_OK);
    a.worker->ask_peers();
    settle();
    EXPECT_EQ(a.failures.size(), 0u) << "it answers";
    fabric.silence(1);
    peers_ = {&a};
    a.worker->ask_peers();
    EXPECT_TRUE(run_long([&] { return !a.failures.empty(); }));
    EXPECT_EQ(a.failures, (std::vector<ucs_status_t>{UCS_ERR_ENDPOINT_TIMEOUT}));
}

TEST_F(UcpEndpoint, NobodyIsAskedForEndpointsWithoutErrorHandling) {
    ucp_ep_h careless = a.connect(b, UCP_ERR_HANDLING_MODE_NONE);
    EXPECT_EQ(wait(ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FLUSH)), UCS_OK);
    EXPECT_EQ(wait(ucp_tag_send_nb(careless, "up", 2, kByte, 1, ignore_sent)), UCS_OK);
    settle();
    fabric.silence(1);
    peers_ = {&a};
    a.worker->ask_peers();
    EXPECT_FALSE(run_long([&] { return !a.failures.empty(); }));
}

// A program may end right after its first message is said to be sent.
TEST_F(UcpEndpoint, TheFirstMessagesAreCompleteWhenTheyHaveLeft) {
    peers_ = {&a};  // b's core answers, its program takes no turn
    void* first = ucp_tag_send_nb(to_b, "first", 5, kByte, 1, ignore_sent);
    void* second = ucp_tag_send_nb(to_b, "second", 6, kByte, 2, ignore_sent);
    ASSERT_TRUE(UCS_PTR_IS_PTR(first));
    EXPECT_EQ(ucp_request_check_status(first), UCS_INPROGRESS) << "nobody knows whether b is there";
    EXPECT_EQ(wait(first), UCS_OK);
    EXPECT_EQ(wait(second), UCS_OK);
    EXPECT_EQ(ucp_tag_send_nb(to_b, "third", 5, kByte, 3, ignore_sent), nullptr);
    ucp_worker_progress(a.worker);
    fabric.silence(0);
    peers_ = {&b};
    for (const ucp_tag_t tag : {1, 2, 3}) {
        ucp_tag_recv_info_t info;
        EXPECT_TRUE(run([&] {
            return ucp_tag_probe_nb(b.worker, tag, UINT64_MAX, 0, &info) != nullptr;
        })) << tag;
    }
}

// The call does not wait for a peer that is not there; the request says in the end that it is not.
TEST_F(UcpEndpoint, AFirstMessageToNobodyFailsInTime) {
    fabric.silence(1);
    peers_ = {&a};
    void* first = ucp_tag_send_nb(to_b, "first", 5, kByte, 1, ignore_sent);
    ASSERT_TRUE(UCS_PTR_IS_PTR(first));
    void* second = ucp_tag_send_nb(to_b, "second", 6, kByte, 2, ignore_sent);
    EXPECT_TRUE(run_long([&] { return ucp_request_is_completed(first) != 0; }));
    EXPECT_EQ(wait(first), UCS_ERR_UNREACHABLE);
    EXPECT_EQ(wait(second), UCS_ERR_UNREACHABLE);
}

// Closing flushes what the program has not waited for.
TEST_F(UcpEndpoint, AFirstMessageThatNobodyWaitedForArrives) {
    ucp_request_free(ucp_tag_send_nb(to_b, "first", 5, kByte, 1, ignore_sent));
    a.close();
    peers_ = {&b};
    ucp_tag_recv_info_t info;
    EXPECT_TRUE(
        run([&] { return ucp_tag_probe_nb(b.worker, 1, UINT64_MAX, 0, &info) != nullptr; }));
}

TEST_F(UcpEndpoint, AForcedCloseSparesOtherEndpointsToTheWorker) {
    ucp_ep_h other = a.connect(b);
    const std::string out = bytes(1, 100'000);
    std::string in(out.size(), '\0');
    void* receive =
        ucp_tag_recv_nb(b.worker, in.data(), in.size(), kByte, 2, UINT64_MAX, ignore_received);
    void* ours = ucp_tag_send_nb(to_b, out.data(), 5000, kByte, 1, ignore_sent);
    void* theirs = ucp_tag_send_nb(other, out.data(), out.size(), kByte, 2, ignore_sent);
    void* closing = ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FORCE);
    EXPECT_EQ(wait(ours), UCS_ERR_CANCELED);
    EXPECT_EQ(wait(closing), UCS_OK);
    EXPECT_EQ(wait(theirs), UCS_OK);
    EXPECT_EQ(wait(receive), UCS_OK);
    EXPECT_EQ(in, out);
    EXPECT_EQ(a.failures.size(), 0u);
}

TEST_F(UcpEndpoint, AForcedCloseDoesNotWaitForWhatDoesNotEnd) {
    a.connect(b);
    void* unmatched = ucp_tag_send_sync_nb(to_b, "x", 1, kByte, 1, ignore_sent);
    void* closing = ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FORCE);
    EXPECT_EQ(ucp_request_check_status(unmatched), UCS_INPROGRESS);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (ucp_request_check_status(closing) == UCS_INPROGRESS &&
           std::chrono::steady_clock::now() < limit) {
        settle(10);
    }
    EXPECT_EQ(wait(unmatched), UCS_ERR_CANCELED);
    EXPECT_EQ(wait(closing), UCS_OK);
}

// openucx/ucx 9721: forced close inside the error handler.
TEST_F(UcpEndpoint, MayBeClosedByForceInsideItsErrorHandler) {
    static int ends;
    static void* closing;
    ends = 0;
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_handler.arg = nullptr;
    params.err_handler.cb = [](void*, ucp_ep_h ep, ucs_status_t) {
        closing = ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FORCE);
    };
    EXPECT_EQ(ucp_ep_modify_nb(to_b, &params), nullptr);
    EXPECT_EQ(wait(ucp_tag_send_nb(to_b, "up", 2, kByte, 1, ignore_sent)), UCS_OK);
    settle();
    fabric.silence(1);
    const std::string payload = bytes(1, 5000);
    std::vector<void*> sends;
    for (uint64_t i = 0; i < 4; ++i) {
        sends.push_back(ucp_tag_send_nb(to_b, payload.data(), payload.size(), kByte, i,
                                        [](void*, ucs_status_t) { ++ends; }));
    }
    peers_ = {&a};
    EXPECT_TRUE(run_long([] { return ends == 4; }));
    for (void* send : sends) {
        EXPECT_NE(wait(send), UCS_OK);
    }
    settle();
    EXPECT_EQ(ends, 4);
    EXPECT_EQ(wait(closing), UCS_OK);
}

// openucx/ucx 6574: a close is pending when the worker goes.
TEST_F(UcpEndpoint, MayStillBeClosingWhenTheWorkerIsDestroyed) {
    const std::string payload = bytes(1, 5000);
    ucp_request_release(
        ucp_tag_send_nb(to_b, payload.data(), payload.size(), kByte, 1, ignore_sent));
    void* close = ucp_ep_close_nb(to_b, UCP_EP_CLOSE_MODE_FLUSH);
    ASSERT_TRUE(UCS_PTR_IS_PTR(close));
    ucp_request_release(close);
    a.close();
    EXPECT_EQ(fabric.open_workers(), 1u);
}

TEST_F(UcpEndpoint, ModifyTakesWhatConcernsThisSideAlone) {
    for (const uint64_t field : {UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, UCP_EP_PARAM_FIELD_SOCK_ADDR,
                                 UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE}) {
        ucp_ep_params_t params{};
        params.field_mask = field;
        EXPECT_EQ(ucp_ep_modify_nb(to_b, &params), UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
    }
    EXPECT_EQ(wait(ucp_tag_send_nb(to_b, "x", 1, kByte, 1, ignore_sent)), UCS_OK);
}

TEST_F(UcpEndpoint, TellsItsName) {
    ucp_ep_attr_t attr{};
    attr.field_mask = UCP_EP_ATTR_FIELD_NAME;
    EXPECT_EQ(ucp_ep_query(to_b, &attr), UCS_OK);
    EXPECT_STRNE(attr.name, "");
    attr.field_mask = UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    EXPECT_EQ(ucp_ep_query(to_b, &attr), UCS_ERR_NOT_CONNECTED);
}

}  // namespace
}  // namespace tagwire::test
