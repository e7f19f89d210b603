// SPDX-License-Identifier: BSD-3-Clause
// Listeners: U12 (conn and accept handlers, rejection), U11 (modify of an accepted endpoint).
// The meeting goes over the loopback interface, the data over the simulator.
#include <arpa/inet.h>
#include <netinet/in.h>

#include "test/ucp/sim_fabric.h"

namespace tagwire::test {
namespace {

class UcpListener : public UcpTest {
  protected:
    UcpListener() {
        peers_ = {&server, &client};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    ~UcpListener() override {
        if (listener != nullptr) {
            ucp_listener_destroy(listener);
        }
    }
    ucs_status_t listen(bool conn, bool accept) {
        ucp_listener_params_t params{};
        params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR;
        params.sockaddr = {reinterpret_cast<sockaddr*>(&address), sizeof(address)};
        if (conn) {
            params.field_mask |= UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
            params.conn_handler.arg = this;
            params.conn_handler.cb = [](ucp_conn_request_h request, void* arg) {
                static_cast<UcpListener*>(arg)->request = request;
            };
        }
        if (accept) {
            params.field_mask |= UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER;
            params.accept_handler.arg = this;
            params.accept_handler.cb = [](ucp_ep_h ep, void* arg) {
                static_cast<UcpListener*>(arg)->accepted = ep;
            };
        }
        const ucs_status_t status = ucp_listener_create(server.worker, &params, &listener);
        if (status == UCS_OK) {
            ucp_listener_attr_t attr{};
            attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
            EXPECT_EQ(ucp_listener_query(listener, &attr), UCS_OK);
            std::memcpy(&address, &attr.sockaddr, sizeof(address));
            EXPECT_NE(address.sin_port, 0);
        }
        return status;
    }
    void call() {
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
        params.sockaddr = {reinterpret_cast<sockaddr*>(&address), sizeof(address)};
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.arg = &client;
        params.err_handler.cb = failed;
        ASSERT_EQ(ucp_ep_create(client.worker, &params, &ep), UCS_OK);
    }
    void accept() {
        ASSERT_TRUE(run([&] { return request != nullptr; }, 2'000'000));
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                            UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.conn_request = std::exchange(request, nullptr);
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.arg = &server;
        params.err_handler.cb = failed;
        ASSERT_EQ(ucp_ep_create(server.worker, &params, &accepted), UCS_OK);
    }
    static void failed(void* peer, ucp_ep_h, ucs_status_t status) {
        static_cast<UcpPeer*>(peer)->failures.push_back(status);
    }
    void exchange() {
        for (int i = 0; i < 2; ++i) {
            UcpPeer& to = i == 0 ? server : client;
            std::string in(5, '\0');
            void* receive =
                ucp_tag_recv_nb(to.worker, in.data(), 5, kByte, 1, UINT64_MAX, ignore_received);
            EXPECT_EQ(
                wait(ucp_tag_send_nb(i == 0 ? ep : accepted, "hello", 5, kByte, 1, ignore_sent)),
                UCS_OK);
            EXPECT_EQ(wait(receive), UCS_OK);
            EXPECT_EQ(in, "hello");
        }
    }

    UcpPeer server;
    UcpPeer client;
    sockaddr_in address{};
    ucp_listener_h listener = nullptr;
    ucp_conn_request_h request = nullptr;
    ucp_ep_h ep = nullptr;
    ucp_ep_h accepted = nullptr;
};

TEST_F(UcpListener, NeedsExactlyOneHandler) {
    EXPECT_EQ(listen(false, false), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(listen(true, true), UCS_ERR_INVALID_PARAM);
}

TEST_F(UcpListener, ConnHandlerLetsAClientIn) {
    ASSERT_EQ(listen(true, false), UCS_OK);
    call();
    ASSERT_TRUE(run([&] { return request != nullptr; }, 2'000'000));
    ucp_conn_request_attr_t attr{};
    attr.field_mask =
        UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR | UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID;
    EXPECT_EQ(ucp_conn_request_query(request, &attr), UCS_OK);
    EXPECT_EQ(attr.client_address.ss_family, AF_INET);
    accept();
    exchange();
    ucp_ep_attr_t addresses{};
    addresses.field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    ASSERT_EQ(ucp_ep_query(ep, &addresses), UCS_OK);
    EXPECT_EQ(reinterpret_cast<sockaddr_in&>(addresses.remote_sockaddr).sin_port, address.sin_port);
}

TEST_F(UcpListener, MessagesSentBeforeTheAnswerAreKept) {
    ASSERT_EQ(listen(true, false), UCS_OK);
    call();
    void* send = ucp_tag_send_nb(ep, "early", 5, kByte, 1, ignore_sent);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send));
    accept();
    std::string in(5, '\0');
    EXPECT_EQ(
        wait(ucp_tag_recv_nb(server.worker, in.data(), 5, kByte, 1, UINT64_MAX, ignore_received)),
        UCS_OK);
    EXPECT_EQ(wait(send), UCS_OK);
    EXPECT_EQ(in, "early");
}

TEST_F(UcpListener, AcceptHandlerGetsAUsableEndpointThatCanBeModified) {
    ASSERT_EQ(listen(false, true), UCS_OK);
    call();
    ASSERT_TRUE(run([&] { return accepted != nullptr; }, 2'000'000));
    exchange();
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    EXPECT_EQ(ucp_ep_modify_nb(accepted, &params), UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
    int mark = 0;
    params.field_mask = UCP_EP_PARAM_FIELD_USER_DATA | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.user_data = &mark;
    params.err_handler.cb = failed;
    EXPECT_EQ(ucp_ep_modify_nb(accepted, &params), nullptr);
    EXPECT_EQ(wait(ucp_stream_send_nb(ep, "x", 1, kByte, ignore_sent, 0)), UCS_OK);
    ucp_stream_poll_ep_t polled;
    ASSERT_TRUE(run([&] { return ucp_stream_worker_poll(server.worker, &polled, 1, 0) == 1; }));
    EXPECT_EQ(polled.ep, accepted);
    EXPECT_EQ(polled.user_data, &mark);
    exchange();
}

TEST_F(UcpListener, ARejectedClientHearsIt) {
    ASSERT_EQ(listen(true, false), UCS_OK);
    call();
    void* send = ucp_tag_send_nb(ep, "early", 5, kByte, 1, ignore_sent);
    ASSERT_TRUE(run([&] { return request != nullptr; }, 2'000'000));
    EXPECT_EQ(ucp_listener_reject(listener, request), UCS_OK);
    ASSERT_TRUE(run([&] { return !client.failures.empty(); }, 2'000'000));
    EXPECT_EQ(client.failures, (std::vector<ucs_status_t>{UCS_ERR_REJECTED}));
    EXPECT_EQ(wait(send), UCS_ERR_REJECTED);
}

TEST_F(UcpListener, WhereNobodyListensThereIsAnError) {
    ASSERT_EQ(listen(true, false), UCS_OK);
    ucp_listener_destroy(std::exchange(listener, nullptr));
    call();
    ASSERT_TRUE(run([&] { return !client.failures.empty(); }, 2'000'000));
    EXPECT_EQ(client.failures, (std::vector<ucs_status_t>{UCS_ERR_UNREACHABLE}));
}

// openucx/ucx 11087: a client calls while the listener goes.
TEST_F(UcpListener, MayBeDestroyedWhileAClientCalls) {
    ASSERT_EQ(listen(true, false), UCS_OK);
    call();
    run([] { return false; }, 100);
    ucp_listener_destroy(std::exchange(listener, nullptr));
    if (request != nullptr) {  // it was quick
        accept();
        exchange();
        return;
    }
    ASSERT_TRUE(run([&] { return !client.failures.empty(); }, 2'000'000));
}

TEST_F(UcpListener, TheOtherSideHearsOfAClose) {
    ASSERT_EQ(listen(true, false), UCS_OK);
    call();
    accept();
    exchange();
    EXPECT_EQ(wait(ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH)), UCS_OK);
    ASSERT_TRUE(run([&] { return !server.failures.empty(); }, 2'000'000));
    EXPECT_EQ(server.failures, (std::vector<ucs_status_t>{UCS_ERR_CONNECTION_RESET}));
}

// openucx/ucx 2946: progress inside the callback does nothing, and returns.
TEST_F(UcpListener, ProgressInsideACallbackIsRefused) {
    static ucp_worker_h worker;
    static int calls;
    worker = server.worker;
    calls = 0;
    ucp_listener_params_t params{};
    params.field_mask =
        UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER;
    params.sockaddr = {reinterpret_cast<sockaddr*>(&address), sizeof(address)};
    params.accept_handler.cb = [](ucp_ep_h ep, void*) {
        EXPECT_EQ(ucp_worker_progress(worker), 0u);
        char in;
        ucp_request_free(ucp_tag_recv_nb(worker, &in, 0, kByte, 1, UINT64_MAX, ignore_received));
        EXPECT_EQ(ucp_ep_flush(ep), UCS_OK) << "nothing to wait for";
        ++calls;
    };
    ASSERT_EQ(ucp_listener_create(server.worker, &params, &listener), UCS_OK);
    ucp_listener_attr_t attr{};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    ASSERT_EQ(ucp_listener_query(listener, &attr), UCS_OK);
    std::memcpy(&address, &attr.sockaddr, sizeof(address));
    call();
    EXPECT_TRUE(run([] { return calls == 1; }, 2'000'000));
}

}  // namespace
}  // namespace tagwire::test
