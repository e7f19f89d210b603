// SPDX-License-Identifier: BSD-3-Clause
// Requests: U1 (completed or not), U2 (release, free), U3 (test), and the memory around them.
#include <gmock/gmock.h>

#include "test/ucp/sim_fabric.h"

namespace tagwire::test {
namespace {

int inits;
int cleanups;
int callbacks;

class UcpRequest : public UcpPair {};

TEST_F(UcpRequest, IsNotCompletedAndThenIs) {
    std::string in(8, '\0');
    void* receive = ucp_tag_recv_nb(a.worker, in.data(), 8, kByte, 5, UINT64_MAX, ignore_received);
    ASSERT_TRUE(UCS_PTR_IS_PTR(receive));
    EXPECT_EQ(ucp_request_is_completed(receive), 0);
    EXPECT_EQ(ucp_request_check_status(receive), UCS_INPROGRESS);
    ASSERT_EQ(wait(ucp_tag_send_nb(to_a, "message", 8, kByte, 5, ignore_sent)), UCS_OK);
    ASSERT_TRUE(run([&] { return ucp_request_is_completed(receive) != 0; }));
    EXPECT_EQ(ucp_request_check_status(receive), UCS_OK);
    EXPECT_EQ(in, std::string("message", 8));
    ucp_request_release(receive);
}

TEST_F(UcpRequest, TellsTagAndLengthOnceItIsComplete) {
    std::string in(100, '\0');
    void* receive =
        ucp_tag_recv_nb(a.worker, in.data(), in.size(), kByte, 0x100, 0xff00, ignore_received);
    ucp_tag_recv_info_t info{};
    EXPECT_EQ(ucp_request_test(receive, &info), UCS_INPROGRESS);
    EXPECT_EQ(ucp_tag_recv_request_test(receive, &info), UCS_INPROGRESS);
    ASSERT_EQ(wait(ucp_tag_send_nb(to_a, "abc", 3, kByte, 0x177, ignore_sent)), UCS_OK);
    ASSERT_TRUE(run([&] { return ucp_request_is_completed(receive) != 0; }));
    EXPECT_EQ(ucp_request_test(receive, &info), UCS_OK);
    EXPECT_EQ(info.length, 3u);
    EXPECT_EQ(info.sender_tag, 0x177u);
    info = {};
    EXPECT_EQ(ucp_tag_recv_request_test(receive, &info), UCS_OK);
    EXPECT_EQ(info.length, 3u);
    EXPECT_EQ(info.sender_tag, 0x177u);
    ucp_request_free(receive);
}

TEST_F(UcpRequest, ReleasedBeforeTheEndStillCallsBack) {
    callbacks = 0;
    std::string in(4, '\0');
    void* receive = ucp_tag_recv_nb(a.worker, in.data(), 4, kByte, 1, UINT64_MAX,
                                    [](void*, ucs_status_t status, ucp_tag_recv_info_t*) {
                                        EXPECT_EQ(status, UCS_OK);
                                        ++callbacks;
                                    });
    ucp_request_release(receive);
    ASSERT_EQ(wait(ucp_tag_send_nb(to_a, "four", 4, kByte, 1, ignore_sent)), UCS_OK);
    ASSERT_TRUE(run([] { return callbacks == 1; }));
    EXPECT_EQ(in, "four");
}

// openucx/ucx 7290: freeing a posted receive neither cancels it nor tells anybody.
TEST_F(UcpRequest, FreedBeforeTheEndIsSilentAndStillReceives) {
    callbacks = 0;
    std::string in(4, '\0');
    void* receive = ucp_tag_recv_nb(a.worker, in.data(), 4, kByte, 1, UINT64_MAX,
                                    [](void*, ucs_status_t, ucp_tag_recv_info_t*) { ++callbacks; });
    ucp_request_free(receive);
    ASSERT_EQ(wait(ucp_tag_send_nb(to_a, "four", 4, kByte, 1, ignore_sent)), UCS_OK);
    ASSERT_TRUE(run([&] { return in == "four"; }));
    settle();
    EXPECT_EQ(callbacks, 0);
}

// openucx/ucx 9131: a request freed inside the callback, while recv_nb still runs.
TEST_F(UcpRequest, MayBeFreedInTheCallbackOfAnUnexpectedMessage) {
    ASSERT_EQ(wait(ucp_tag_send_nb(to_a, "four", 4, kByte, 1, ignore_sent)), UCS_OK);
    settle();
    callbacks = 0;
    std::string in(4, '\0');
    void* receive = ucp_tag_recv_nb(a.worker, in.data(), 4, kByte, 1, UINT64_MAX,
                                    [](void* request, ucs_status_t, ucp_tag_recv_info_t*) {
                                        ++callbacks;
                                        ucp_request_free(request);
                                    });
    EXPECT_TRUE(UCS_PTR_IS_PTR(receive));
    EXPECT_EQ(callbacks, 1);
    EXPECT_EQ(in, "four");
}

TEST_F(UcpRequest, ThatNobodyReleasedIsReportedAtTheEnd) {
    void* receive = ucp_tag_recv_nb(a.worker, nullptr, 0, kByte, 1, UINT64_MAX, ignore_received);
    ucp_request_cancel(a.worker, receive);
    a.leaks = 1;
    testing::internal::CaptureStderr();
    a.close();
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::HasSubstr("1 requests that were not released"));
}

// openucx/ucx 7290 again: the program gave it up, and nothing is its fault.
TEST_F(UcpRequest, FreedBeforeAnEndThatNeverComesIsNoLeak) {
    ucp_request_free(ucp_tag_recv_nb(a.worker, nullptr, 0, kByte, 1, UINT64_MAX, ignore_received));
    testing::internal::CaptureStderr();
    a.close();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Whether its operation has ended or not, and in whichever of the two ways. Debug builds end there.
TEST_F(UcpRequest, ReleasedTwiceIsCaughtWithAMessage) {
    for (const auto release : {ucp_request_free, ucp_request_release}) {
        for (const bool ended : {true, false}) {
            void* receive =
                ucp_tag_recv_nb(a.worker, nullptr, 0, kByte, 1, UINT64_MAX, ignore_received);
            if (ended) {
                ucp_request_cancel(a.worker, receive);
            }
            ucp_request_free(receive);
#ifndef NDEBUG
            EXPECT_DEATH(release(receive), "released twice");
#else
            testing::internal::CaptureStderr();
            release(receive);
            EXPECT_THAT(testing::internal::GetCapturedStderr(),
                        testing::HasSubstr("released twice"));
#endif
            if (!ended) {
                EXPECT_EQ(wait(ucp_tag_send_nb(to_a, nullptr, 0, kByte, 1, ignore_sent)), UCS_OK);
                settle();
            }
        }
    }
}

class UcpRequestMemory : public UcpTest {};

TEST_F(UcpRequestMemory, IsInitialisedOnceForEachObject) {
    inits = cleanups = 0;
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
                        UCP_PARAM_FIELD_REQUEST_INIT | UCP_PARAM_FIELD_REQUEST_CLEANUP;
    params.features = UCP_FEATURE_TAG;
    params.request_size = 48;
    params.request_init = [](void* request) {
        ++inits;
        std::memset(request, 0x5a, 48);
    };
    params.request_cleanup = [](void* request) {
        ++cleanups;
        EXPECT_EQ(*static_cast<char*>(request), 0x5a);
    };
    ucp_context_h context;
    ASSERT_EQ(ucp_init(&params, nullptr, &context), UCS_OK);
    ucp_worker_params_t worker_params{};
    ucp_worker_h worker;
    ASSERT_EQ(ucp_worker_create(context, &worker_params, &worker), UCS_OK);
    for (int i = 0; i < 1000; ++i) {
        void* receive = ucp_tag_recv_nb(worker, nullptr, 0, kByte, 1, UINT64_MAX, ignore_received);
        EXPECT_EQ(*static_cast<char*>(receive), 0x5a);
        EXPECT_EQ(static_cast<char*>(receive)[47], 0x5a);
        ucp_request_cancel(worker, receive);
        ucp_request_free(receive);
    }
    EXPECT_GT(inits, 0);
    EXPECT_LT(inits, 1000) << "objects are used again without a second call";
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    EXPECT_EQ(cleanups, inits);
}

TEST_F(UcpRequest, OfTheProgramLiesBehindWhatTheContextTells) {
    ucp_context_attr_t attr{};
    attr.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
    ASSERT_EQ(ucp_context_query(a.context, &attr), UCS_OK);
    std::vector<char> memory(attr.request_size + 64, '\x7f');
    void* request = memory.data() + attr.request_size;
    std::string in(4, '\0');
    ASSERT_EQ(ucp_tag_recv_nbr(a.worker, in.data(), 4, kByte, 9, UINT64_MAX, request), UCS_OK);
    EXPECT_EQ(ucp_request_check_status(request), UCS_INPROGRESS);
    ASSERT_EQ(wait(ucp_tag_send_nb(to_a, "four", 4, kByte, 9, ignore_sent)), UCS_OK);
    ASSERT_TRUE(run([&] { return ucp_request_check_status(request) == UCS_OK; }));
    EXPECT_EQ(in, "four");
    EXPECT_EQ(memory.back(), '\x7f');

    const std::string out = bytes(1, 5000);
    const ucs_status_t status = ucp_tag_send_nbr(to_b, out.data(), out.size(), kByte, 3, request);
    ASSERT_EQ(status, UCS_INPROGRESS);
    std::string big(5000, '\0');
    ASSERT_EQ(wait(ucp_tag_recv_nb(b.worker, big.data(), big.size(), kByte, 3, UINT64_MAX,
                                   ignore_received)),
              UCS_OK);
    ASSERT_TRUE(run([&] { return ucp_request_check_status(request) == UCS_OK; }));
    EXPECT_EQ(big, out);
}

TEST_F(UcpRequest, FromRequestAllocServesACallAndGoesBack) {
    void* request = ucp_request_alloc(a.worker);
    ASSERT_NE(request, nullptr);
    std::string in(4, '\0');
    ASSERT_EQ(ucp_tag_recv_nbr(a.worker, in.data(), 4, kByte, 9, UINT64_MAX, request), UCS_OK);
    ASSERT_EQ(wait(ucp_tag_send_nb(to_a, "four", 4, kByte, 9, ignore_sent)), UCS_OK);
    ASSERT_TRUE(run([&] { return ucp_request_check_status(request) == UCS_OK; }));
    ucp_request_free(request);
}

TEST_F(UcpRequest, CanBeQueried) {
    void* receive = ucp_tag_recv_nb(a.worker, nullptr, 0, kByte, 1, UINT64_MAX, ignore_received);
    char text[64] = "";
    ucp_request_attr_t attr{};
    attr.field_mask = UCP_REQUEST_ATTR_FIELD_STATUS | UCP_REQUEST_ATTR_FIELD_MEM_TYPE |
                      UCP_REQUEST_ATTR_FIELD_INFO_STRING | UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE;
    attr.debug_string = text;
    attr.debug_string_size = sizeof(text);
    ASSERT_EQ(ucp_request_query(receive, &attr), UCS_OK);
    EXPECT_EQ(attr.status, UCS_INPROGRESS);
    EXPECT_EQ(attr.mem_type, UCS_MEMORY_TYPE_HOST);
    EXPECT_NE(std::string(text).find("recv"), std::string::npos);
    EXPECT_NE(std::string(text).find("host"), std::string::npos);
    ucp_request_cancel(a.worker, receive);
    ASSERT_EQ(ucp_request_query(receive, &attr), UCS_OK);
    EXPECT_EQ(attr.status, UCS_ERR_CANCELED);
    ucp_request_free(receive);
}

}  // namespace
}  // namespace tagwire::test
