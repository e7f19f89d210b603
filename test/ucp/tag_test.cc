// SPDX-License-Identifier: BSD-3-Clause
// Tagged messages (U13): send, receive, probe, cancel, truncation, datatypes.
#include <numeric>

#include "lib/ucp/worker.h"
#include "test/ucp/sim_fabric.h"

namespace tagwire::test {
namespace {

class UcpTag : public UcpPair {
  protected:
    void send(uint64_t tag, const std::string& payload) {
        sent_.push_back(payload);
        void* request =
            ucp_tag_send_nb(to_a, sent_.back().data(), payload.size(), kByte, tag, ignore_sent);
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);  // its end is not waited for
        }
    }
    ucs_status_t receive(uint64_t tag, uint64_t mask, std::string* in) {
        return wait(
            ucp_tag_recv_nb(a.worker, in->data(), in->size(), kByte, tag, mask, ignore_received));
    }
    ucp_tag_message_h probe(uint64_t tag, uint64_t mask, int remove, ucp_tag_recv_info_t* info) {
        ucp_tag_message_h message = nullptr;
        run([&] {
            message = ucp_tag_probe_nb(a.worker, tag, mask, remove, info);
            return message != nullptr;
        });
        return message;
    }
    static uint64_t stat(const UcpPeer& peer, const std::string& name) {
        std::vector<tw_stat> stats(
            static_cast<size_t>(tw_worker_stats(peer.worker->core(), nullptr, 0)));
        tw_worker_stats(peer.worker->core(), stats.data(), static_cast<int>(stats.size()));
        for (const tw_stat& each : stats) {
            if (name == each.name) {
                return each.value;
            }
        }
        ADD_FAILURE() << "there is no count " << name;
        return 0;
    }
};

class UcpTagSizes : public UcpTag, public testing::WithParamInterface<size_t> {};

TEST_P(UcpTagSizes, ExpectedAndUnexpected) {
    const std::string payload = bytes(7, GetParam());
    std::string first(GetParam(), '\0');
    std::string second(GetParam(), '\0');
    void* expected = ucp_tag_recv_nb(a.worker, first.data(), first.size(), kByte, 1, UINT64_MAX,
                                     ignore_received);
    send(1, payload);
    send(2, payload);
    EXPECT_EQ(wait(expected), UCS_OK);
    settle();
    EXPECT_EQ(receive(2, UINT64_MAX, &second), UCS_OK);
    EXPECT_EQ(first, payload);
    EXPECT_EQ(second, payload);
}

INSTANTIATE_TEST_SUITE_P(Sizes, UcpTagSizes,
                         testing::Values(0, 1, 8, 256, 257, 1500, 8192, 65536, 300'000, 1 << 20));

TEST_F(UcpTag, MaskedBitsDoNotMatter) {
    send(0xab01, "one");
    std::string in(3, '\0');
    ASSERT_EQ(receive(0xcd01, 0xff, &in), UCS_OK);
    EXPECT_EQ(in, "one");
}

TEST_F(UcpTag, AllBitsOfATagAreTheProgram) {
    send(UINT64_MAX, "max");
    send(uint64_t{1} << 63, "top");
    std::string in(3, '\0');
    ASSERT_EQ(receive(uint64_t{1} << 63, UINT64_MAX, &in), UCS_OK);
    EXPECT_EQ(in, "top");
    ASSERT_EQ(receive(UINT64_MAX, UINT64_MAX, &in), UCS_OK);
    EXPECT_EQ(in, "max");
}

TEST_F(UcpTag, AnUnexpectedMessageCallsBackInsideTheCall) {
    send(3, "now");
    settle();
    static ucp_tag_recv_info_t seen;
    seen = {};
    std::string in(3, '\0');
    void* request =
        ucp_tag_recv_nb(a.worker, in.data(), 3, kByte, 3, UINT64_MAX,
                        [](void*, ucs_status_t, ucp_tag_recv_info_t* info) { seen = *info; });
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    EXPECT_EQ(seen.length, 3u);
    EXPECT_EQ(seen.sender_tag, 3u);
    EXPECT_EQ(ucp_request_check_status(request), UCS_OK);
    ucp_request_free(request);
}

TEST_F(UcpTag, NbxIsCompleteAtOnceWithoutARequestOrACallback) {
    send(3, "now");
    settle();
    ucp_tag_recv_info_t info{};
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_RECV_INFO;
    param.cb.recv = [](void*, ucs_status_t, const ucp_tag_recv_info_t*, void*) { FAIL(); };
    param.recv_info.tag_info = &info;
    std::string in(3, '\0');
    EXPECT_EQ(ucp_tag_recv_nbx(a.worker, in.data(), 3, 3, UINT64_MAX, &param), nullptr);
    EXPECT_EQ(info.length, 3u);
    EXPECT_EQ(in, "now");
}

TEST_F(UcpTag, NbxWithoutImmediateCompletionAlwaysCallsBack) {
    static int calls;
    calls = 0;
    ucp_request_param_t param{};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.user_data = &calls;
    param.cb.send = [](void*, ucs_status_t status, void* user) {
        EXPECT_EQ(status, UCS_OK);
        ++*static_cast<int*>(user);
    };
    void* request = ucp_tag_send_nbx(to_a, "x", 1, 4, &param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    EXPECT_EQ(wait(request), UCS_OK);
    EXPECT_EQ(calls, 1);
    send(5, "y");
    settle();
    param.cb.recv = [](void*, ucs_status_t, const ucp_tag_recv_info_t* info, void* user) {
        EXPECT_EQ(info->length, 1u);
        ++*static_cast<int*>(user);
    };
    char in;
    request = ucp_tag_recv_nbx(a.worker, &in, 1, 5, UINT64_MAX, &param);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(wait(request), UCS_OK);
}

TEST_F(UcpTag, ASynchronousSendEndsOnlyWhenItIsMatched) {
    void* request = ucp_tag_send_sync_nb(to_a, "x", 1, kByte, 4, ignore_sent);
    ASSERT_TRUE(UCS_PTR_IS_PTR(request));
    settle(3000);
    EXPECT_EQ(ucp_request_check_status(request), UCS_INPROGRESS);
    std::string in(1, '\0');
    EXPECT_EQ(receive(4, UINT64_MAX, &in), UCS_OK);
    EXPECT_EQ(wait(request), UCS_OK);
}

// A message of one packet, of several, and one that waits for its receive: whether it comes before
// its receive or after, the buffer stays as it was.
class UcpTruncation : public UcpTag, public testing::WithParamInterface<size_t> {
  protected:
    void check(void* request, const std::string& in) {
        ASSERT_TRUE(run([&] { return ucp_request_is_completed(request) != 0; }));
        ucp_tag_recv_info_t info{};
        EXPECT_EQ(ucp_request_test(request, &info), UCS_ERR_MESSAGE_TRUNCATED);
        EXPECT_EQ(info.length, GetParam());
        EXPECT_EQ(info.sender_tag, 4u);
        EXPECT_TRUE(in == std::string(in.size(), '.'));
        ucp_request_free(request);
    }
    const std::string message_ = bytes(4, GetParam());
    std::string in_ = std::string(GetParam() - 1, '.');
};

TEST_P(UcpTruncation, OfAnExpectedMessage) {
    void* request =
        ucp_tag_recv_nb(a.worker, in_.data(), in_.size(), kByte, 4, UINT64_MAX, ignore_received);
    send(4, message_);
    send(5, "fits");
    check(request, in_);
    in_.resize(4);
    EXPECT_EQ(receive(5, UINT64_MAX, &in_), UCS_OK);
    EXPECT_EQ(in_, "fits");
}

TEST_P(UcpTruncation, OfAnUnexpectedMessage) {
    send(4, message_);
    settle(3000);
    check(ucp_tag_recv_nb(a.worker, in_.data(), in_.size(), kByte, 4, UINT64_MAX, ignore_received),
          in_);
}

TEST_P(UcpTruncation, OfATakenMessage) {
    send(4, message_);
    ucp_tag_recv_info_t info{};
    ucp_tag_message_h message = probe(4, UINT64_MAX, 1, &info);
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(info.length, GetParam());
    check(ucp_tag_msg_recv_nb(a.worker, in_.data(), in_.size(), kByte, message, ignore_received),
          in_);
}

INSTANTIATE_TEST_SUITE_P(Lengths, UcpTruncation, testing::Values(8, 256, 5000, 60'000, 1'000'000));

// openucx/ucx 1538: a receive of no bytes meets a large message.
TEST_F(UcpTag, AReceiveOfNothingMeetsALargeMessage) {
    send(4, bytes(4, 1 << 20));
    EXPECT_EQ(wait(ucp_tag_recv_nb(a.worker, nullptr, 0, kByte, 4, UINT64_MAX, ignore_received)),
              UCS_ERR_MESSAGE_TRUNCATED);
}

TEST_F(UcpTag, ProbeFindsAndLeavesOrTakes) {
    ucp_tag_recv_info_t info{};
    EXPECT_EQ(ucp_tag_probe_nb(a.worker, 1, UINT64_MAX, 0, &info), nullptr);
    send(1, "probed");
    ASSERT_NE(probe(1, UINT64_MAX, 0, &info), nullptr);
    EXPECT_EQ(info.length, 6u);
    EXPECT_EQ(info.sender_tag, 1u);
    ucp_tag_message_h message = probe(1, UINT64_MAX, 1, &info);
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(ucp_tag_probe_nb(a.worker, 1, UINT64_MAX, 0, &info), nullptr) << "it was taken";
    std::string in(6, '\0');
    EXPECT_EQ(wait(ucp_tag_msg_recv_nb(a.worker, in.data(), 6, kByte, message, ignore_received)),
              UCS_OK);
    EXPECT_EQ(in, "probed");
}

// openucx/ucx 1514: two messages are taken, and received in the other order.
TEST_F(UcpTag, TakenMessagesDoNotSwapTheirContents) {
    const std::string large = bytes(2, 200'000);
    send(1, "A");
    send(1, large);
    ucp_tag_recv_info_t info{};
    ucp_tag_message_h first = probe(1, UINT64_MAX, 1, &info);
    EXPECT_EQ(info.length, 1u);
    ucp_tag_message_h second = probe(1, UINT64_MAX, 1, &info);
    EXPECT_EQ(info.length, large.size());
    std::string in_second(large.size(), '\0');
    std::string in_first(1, '\0');
    EXPECT_EQ(wait(ucp_tag_msg_recv_nb(a.worker, in_second.data(), in_second.size(), kByte, second,
                                       ignore_received)),
              UCS_OK);
    EXPECT_EQ(
        wait(ucp_tag_msg_recv_nb(a.worker, in_first.data(), 1, kByte, first, ignore_received)),
        UCS_OK);
    EXPECT_EQ(in_first, "A");
    EXPECT_EQ(in_second, large);
}

// openucx/ucx 7849: the length is the message's, however much of it is here.
TEST_F(UcpTag, ProbeTellsTheWholeLengthOfWhatHasOnlyBegunToArrive) {
    send(1, bytes(1, 5 << 20));
    ucp_tag_recv_info_t info{};
    ASSERT_NE(probe(1, UINT64_MAX, 0, &info), nullptr);
    EXPECT_EQ(info.length, size_t{5} << 20);
    std::string in(size_t{5} << 20, '\0');
    EXPECT_EQ(receive(1, UINT64_MAX, &in), UCS_OK);
}

TEST_F(UcpTag, CancelCallsBackInsideTheCall) {
    static ucs_status_t seen;
    seen = UCS_OK;
    void* request =
        ucp_tag_recv_nb(a.worker, nullptr, 0, kByte, 1, UINT64_MAX,
                        [](void*, ucs_status_t status, ucp_tag_recv_info_t*) { seen = status; });
    ucp_request_cancel(a.worker, request);
    EXPECT_EQ(seen, UCS_ERR_CANCELED);
    EXPECT_EQ(ucp_request_check_status(request), UCS_ERR_CANCELED);
    ucp_request_free(request);
    send(1, "later");
    std::string in(5, '\0');
    EXPECT_EQ(receive(1, UINT64_MAX, &in), UCS_OK) << "the cancelled receive took nothing";
}

// openucx/ucx 4490: the receive has met a large message, which is on the way.
TEST_F(UcpTag, CancelOfAMatchedReceiveLetsItComplete) {
    const std::string large = bytes(1, 2 << 20);
    std::string in(large.size(), '\0');
    send(1, large);
    ucp_tag_recv_info_t info{};
    ASSERT_NE(probe(1, UINT64_MAX, 0, &info), nullptr);
    void* request =
        ucp_tag_recv_nb(a.worker, in.data(), in.size(), kByte, 1, UINT64_MAX, ignore_received);
    ucp_request_cancel(a.worker, request);
    EXPECT_EQ(wait(request), UCS_OK);
    EXPECT_EQ(in, large);
}

// openucx/ucx 7151: what nobody receives is held within the budget, and nothing is lost.
TEST_F(UcpTag, AFloodOfUnexpectedMessagesIsHeldBack) {
    constexpr uint64_t kMessages = 20'000;
    fabric.unexpected_bytes = 4 << 20;
    UcpPeer slow;
    peers_.push_back(&slow);
    ucp_ep_h to_slow = b.connect(slow);
    for (uint64_t sent = 0; sent < kMessages; ++sent) {
        void* request = ucp_tag_send_nb(to_slow, "x", 1, kByte, sent, ignore_sent);
        ASSERT_FALSE(UCS_PTR_IS_ERR(request));
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
        if (sent % 64 == 0) {
            ucp_worker_progress(b.worker);
        }
    }
    settle(3000);
    EXPECT_GT(stat(slow, "held_units_peak"), 100u);
    EXPECT_LT(stat(slow, "held_units_peak"), kMessages / 4) << "the rest waits at its sender";
    for (uint64_t i = 0; i < kMessages; ++i) {
        char in = 0;
        ASSERT_EQ(wait(ucp_tag_recv_nb(slow.worker, &in, 1, kByte, i, UINT64_MAX, ignore_received)),
                  UCS_OK)
            << i;
        ASSERT_EQ(in, 'x');
    }
    peers_.pop_back();
}

TEST_F(UcpTag, IovDatatypeGathersAndScatters) {
    for (const size_t parts : {1, 4, 6, 7, 20}) {
        std::vector<std::string> out;
        std::vector<std::string> in;
        std::vector<ucp_dt_iov_t> from;
        std::vector<ucp_dt_iov_t> to;
        for (size_t i = 0; i < parts; ++i) {
            out.push_back(bytes(i, 10 * i + 1));
            in.emplace_back(out.back().size(), '\0');
        }
        for (size_t i = 0; i < parts; ++i) {
            from.push_back({out[i].data(), out[i].size()});
            to.push_back({in[i].data(), in[i].size()});
        }
        void* receive = ucp_tag_recv_nb(a.worker, to.data(), parts, ucp_dt_make_iov(), 1,
                                        UINT64_MAX, ignore_received);
        ASSERT_EQ(
            wait(ucp_tag_send_nb(to_a, from.data(), parts, ucp_dt_make_iov(), 1, ignore_sent)),
            UCS_OK);
        ASSERT_EQ(wait(receive), UCS_OK);
        EXPECT_EQ(in, out);
    }
}

// Each byte is sent twice, to tell packing from copying.
struct Doubling {
    const char* from;
    char* to;
    size_t count;
    static int states;
};
int Doubling::states = 0;

ucp_datatype_t doubling_type() {
    ucp_generic_dt_ops_t ops{};
    ops.start_pack = [](void*, const void* buffer, size_t count) -> void* {
        ++Doubling::states;
        return new Doubling{static_cast<const char*>(buffer), nullptr, count};
    };
    ops.start_unpack = [](void*, void* buffer, size_t count) -> void* {
        ++Doubling::states;
        return new Doubling{nullptr, static_cast<char*>(buffer), count};
    };
    ops.packed_size = [](void* state) { return 2 * static_cast<Doubling*>(state)->count; };
    ops.pack = [](void* state, size_t offset, void* to, size_t length) {
        length = std::min<size_t>(length, 10);  // in small steps
        for (size_t i = 0; i < length; ++i) {
            static_cast<char*>(to)[i] = static_cast<Doubling*>(state)->from[(offset + i) / 2];
        }
        return length;
    };
    ops.unpack = [](void* state, size_t offset, const void* from, size_t length) {
        for (size_t i = 0; i < length; ++i) {
            static_cast<Doubling*>(state)->to[(offset + i) / 2] = static_cast<const char*>(from)[i];
        }
        return UCS_OK;
    };
    ops.finish = [](void* state) {
        --Doubling::states;
        delete static_cast<Doubling*>(state);
    };
    ucp_datatype_t type = 0;
    EXPECT_EQ(ucp_dt_create_generic(&ops, nullptr, &type), UCS_OK);
    return type;
}

TEST_F(UcpTag, GenericDatatypePacksAndUnpacks) {
    const ucp_datatype_t type = doubling_type();
    const std::string out = bytes(3, 1000);
    std::string in(1000, '\0');
    void* receive =
        ucp_tag_recv_nb(a.worker, in.data(), 1000, type, 1, UINT64_MAX, ignore_received);
    ASSERT_EQ(wait(ucp_tag_send_nb(to_a, out.data(), 1000, type, 1, ignore_sent)), UCS_OK);
    ASSERT_EQ(wait(receive), UCS_OK);
    EXPECT_EQ(in, out);
    // What is cancelled is finished too.
    receive = ucp_tag_recv_nb(a.worker, in.data(), 1000, type, 1, UINT64_MAX, ignore_received);
    ucp_request_cancel(a.worker, receive);
    ucp_request_free(receive);
    EXPECT_EQ(Doubling::states, 0);
    ucp_dt_destroy(type);
}

// Of empty messages too.
TEST_F(UcpTag, TheErrorOfAGenericDatatypeIsTheReceives) {
    ucp_generic_dt_ops_t ops{};
    ops.start_unpack = [](void*, void*, size_t count) -> void* { return new size_t(count); };
    ops.packed_size = [](void* state) { return *static_cast<size_t*>(state); };
    ops.unpack = [](void*, size_t, const void*, size_t) { return UCS_ERR_NO_MEMORY; };
    ops.finish = [](void* state) { delete static_cast<size_t*>(state); };
    ucp_datatype_t type = 0;
    ASSERT_EQ(ucp_dt_create_generic(&ops, nullptr, &type), UCS_OK);
    for (const size_t size : {0, 1, 5000}) {
        const std::string out = bytes(size, size);
        void* receive =
            ucp_tag_recv_nb(a.worker, nullptr, size, type, 1, UINT64_MAX, ignore_received);
        EXPECT_EQ(wait(ucp_tag_send_nb(to_a, out.data(), size, kByte, 1, ignore_sent)), UCS_OK);
        EXPECT_EQ(wait(receive), UCS_ERR_NO_MEMORY) << size;
    }
    ucp_dt_destroy(type);
}

TEST_F(UcpTag, BadArgumentsAreRefused) {
    EXPECT_EQ(ucp_tag_send_nb(to_a, nullptr, 8, kByte, 1, ignore_sent),
              UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
    EXPECT_EQ(ucp_tag_recv_nb(a.worker, nullptr, 8, kByte, 1, 1, ignore_received),
              UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
    UcpPeer other(UCP_FEATURE_AM);
    EXPECT_EQ(ucp_tag_recv_nb(other.worker, nullptr, 0, kByte, 1, 1, ignore_received),
              UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
    EXPECT_EQ(wait(ucp_tag_send_nb(to_a, nullptr, 0, kByte, 1, ignore_sent)), UCS_OK);
}

TEST_F(UcpTag, AWorkerMaySendToItself) {
    ucp_ep_h self = a.connect(a);
    std::string in(4, '\0');
    void* receive = ucp_tag_recv_nb(a.worker, in.data(), 4, kByte, 1, UINT64_MAX, ignore_received);
    ASSERT_EQ(wait(ucp_tag_send_nb(self, "self", 4, kByte, 1, ignore_sent)), UCS_OK);
    ASSERT_EQ(wait(receive), UCS_OK);
    EXPECT_EQ(in, "self");
}

TEST_F(UcpTag, NothingIsLostOrSwappedOnABadNetwork) {
    simulator.faults.loss = 0.02;
    simulator.faults.reordering = 0.05;
    std::vector<std::string> out;
    for (size_t i = 0; i < 200; ++i) {
        out.push_back(bytes(i, i * 37));
        send(7, out.back());
    }
    for (size_t i = 0; i < out.size(); ++i) {
        std::string in(out[i].size(), '\0');
        ASSERT_EQ(receive(7, UINT64_MAX, &in), UCS_OK);
        ASSERT_EQ(in, out[i]) << i;
    }
}

}  // namespace
}  // namespace tagwire::test
