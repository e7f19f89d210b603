// SPDX-License-Identifier: BSD-3-Clause
// Streams.
#include <algorithm>
#include <cstring>

#include "test/ucp/sim_fabric.h"

namespace tagwire::test {
namespace {

class UcpStream : public UcpPair {
  protected:
    void send(const std::string& data) {
        EXPECT_EQ(wait(ucp_stream_send_nb(to_b, data.data(), data.size(), kByte, ignore_sent, 0)),
                  UCS_OK);
    }
    static void received(void* /* request */, ucs_status_t status, size_t /* length */) {
        EXPECT_EQ(status, UCS_OK);
    }
};

TEST_F(UcpStream, BytesArriveInOrderWhateverTheirPieces) {
    simulator.faults.loss = 0.02;
    std::string all;
    for (size_t i = 0; i < 40; ++i) {
        const std::string part = bytes(i, 1 + i * 997 % 30'000);
        all += part;
        send(part);
    }
    std::string in;
    while (in.size() < all.size()) {
        std::string part(1 + in.size() % 5000, '\0');
        size_t length = 0;
        void* request =
            ucp_stream_recv_nb(to_a, part.data(), part.size(), kByte, received, &length, 0);
        if (request != nullptr) {
            ASSERT_TRUE(UCS_PTR_IS_PTR(request));
            ASSERT_TRUE(run([&] { return ucp_request_is_completed(request) != 0; }));
            EXPECT_EQ(ucp_stream_recv_request_test(request, &length), UCS_OK);
            ucp_request_free(request);
        }
        in.append(part, 0, length);
    }
    EXPECT_EQ(in, all);
    simulator.faults = {};
}

TEST_F(UcpStream, WaitAllFillsTheBuffer) {
    std::string in(10, '\0');
    size_t length = 0;
    void* request = ucp_stream_recv_nb(to_a, in.data(), 10, kByte, received, &length,
                                       UCP_STREAM_RECV_FLAG_WAITALL);
    send("half ");
    settle();
    EXPECT_EQ(ucp_request_check_status(request), UCS_INPROGRESS);
    send("whole");
    EXPECT_EQ(wait(request), UCS_OK);
    EXPECT_EQ(in, "half whole");
}

// Copies, and expects that what it unpacks was packed by one send.
ucp_datatype_t copying_type() {
    struct State {
        void* buffer;
        size_t count;
    };
    ucp_generic_dt_ops_t ops{};
    ops.start_pack = [](void*, const void* buffer, size_t count) -> void* {
        return new State{const_cast<void*>(buffer), count};
    };
    ops.start_unpack = [](void*, void* buffer, size_t count) -> void* {
        return new State{buffer, count};
    };
    ops.packed_size = [](void* state) { return static_cast<State*>(state)->count; };
    ops.pack = [](void* state, size_t offset, void* to, size_t length) {
        length = std::min(length, static_cast<State*>(state)->count - offset);
        std::memcpy(to, static_cast<char*>(static_cast<State*>(state)->buffer) + offset, length);
        return length;
    };
    ops.unpack = [](void* state, size_t offset, const void* from, size_t length) {
        std::memcpy(static_cast<char*>(static_cast<State*>(state)->buffer) + offset, from, length);
        return UCS_OK;
    };
    ops.finish = [](void* state) { delete static_cast<State*>(state); };
    ucp_datatype_t type = 0;
    EXPECT_EQ(ucp_dt_create_generic(&ops, nullptr, &type), UCS_OK);
    return type;
}

TEST_F(UcpStream, AReceiveOfAGenericDatatypeTakesOneSend) {
    const ucp_datatype_t type = copying_type();
    for (const char* text : {"one", "three", "seventeen"}) {
        EXPECT_EQ(wait(ucp_stream_send_nb(to_b, text, std::strlen(text), type, ignore_sent, 0)),
                  UCS_OK);
    }
    settle();
    for (const std::string text : {"one", "three", "seventeen"}) {
        std::string in(100, '\0');
        size_t length = 0;
        ASSERT_EQ(ucp_stream_recv_nb(to_a, in.data(), in.size(), type, received, &length, 0),
                  nullptr);
        EXPECT_EQ(in.substr(0, length), text);
    }
    ucp_dt_destroy(type);
}

TEST_F(UcpStream, ElementsAreNotTornApart) {
    send("1234567");
    settle();
    uint32_t in[4] = {};
    size_t length = 0;
    EXPECT_EQ(ucp_stream_recv_nb(to_a, in, 4, ucp_dt_make_contig(4), received, &length, 0),
              nullptr);
    EXPECT_EQ(length, 4u);
    send("8");
    settle();
    EXPECT_EQ(ucp_stream_recv_nb(to_a, in, 4, ucp_dt_make_contig(4), received, &length, 0),
              nullptr);
    EXPECT_EQ(length, 4u);
    EXPECT_EQ(std::memcmp(in, "5678", 4), 0);
}

TEST_F(UcpStream, DataCanBeTakenWithoutACopy) {
    const std::string data = bytes(1, 5000);
    send(data);
    send("little");
    std::string in;
    run([&] {
        size_t length = 0;
        void* part = ucp_stream_recv_data_nb(to_a, &length);
        if (part != nullptr) {
            in.append(static_cast<char*>(part), length);
            ucp_stream_data_release(to_a, part);
        }
        return in.size() == data.size() + 6;
    });
    EXPECT_EQ(in, data + "little");
}

TEST_F(UcpStream, PollTellsWhichEndpointsHaveBytes) {
    ucp_stream_poll_ep_t polled[4];
    EXPECT_EQ(ucp_stream_worker_poll(b.worker, polled, 4, 0), 0);
    send("x");
    ssize_t count = 0;
    run([&] { return (count = ucp_stream_worker_poll(b.worker, polled, 4, 0)) != 0; });
    ASSERT_EQ(count, 1);
    EXPECT_EQ(polled[0].ep, to_a);
    EXPECT_EQ(polled[0].user_data, &b);
    size_t length = 0;
    char in;
    EXPECT_EQ(ucp_stream_recv_nb(to_a, &in, 1, kByte, received, &length, 0), nullptr);
    EXPECT_EQ(ucp_stream_worker_poll(b.worker, polled, 4, 0), 0);
}

// The n-th endpoint here and the n-th there are one stream, made in any order.
TEST_F(UcpStream, EndpointsArePairedInTheirOrder) {
    ucp_ep_h second = a.connect(b);
    const std::string data = "second";
    EXPECT_EQ(wait(ucp_stream_send_nb(second, data.data(), 6, kByte, ignore_sent, 0)), UCS_OK);
    settle();
    ucp_ep_h other = b.connect(a);  // bytes for it have come already
    std::string in(6, '\0');
    size_t length = 0;
    void* request = ucp_stream_recv_nb(other, in.data(), 6, kByte, received, &length,
                                       UCP_STREAM_RECV_FLAG_WAITALL);
    EXPECT_EQ(wait(request), UCS_OK);
    EXPECT_EQ(in, data);
    EXPECT_EQ(ucp_stream_recv_data_nb(to_a, &length), nullptr);
}

TEST_F(UcpStream, ForcedCloseEndsReceives) {
    char in;
    size_t length = 0;
    void* request = ucp_stream_recv_nb(
        to_a, &in, 1, kByte, [](void*, ucs_status_t, size_t) {}, &length, 0);
    EXPECT_EQ(wait(ucp_ep_close_nb(to_a, UCP_EP_CLOSE_MODE_FORCE)), UCS_OK);
    EXPECT_EQ(wait(request), UCS_ERR_CANCELED);
}

}  // namespace
}  // namespace tagwire::test
