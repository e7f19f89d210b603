// SPDX-License-Identifier: BSD-3-Clause
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "lib/ucp/sockets.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

constexpr int kBacklog = 1024;

}  // namespace

ucs_status_t Sockets::listen(const ucp_listener_params_t& params, ucp_listener_h* made) {
    const auto given = [&](uint64_t field) { return (params.field_mask & field) != 0; };
    const bool conn = given(UCP_LISTENER_PARAM_FIELD_CONN_HANDLER);
    const bool accept = given(UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER);
    if (!given(UCP_LISTENER_PARAM_FIELD_SOCK_ADDR) || params.sockaddr.addr == nullptr ||
        conn == accept || (conn && params.conn_handler.cb == nullptr) ||
        (accept && params.accept_handler.cb == nullptr)) {
        return UCS_ERR_INVALID_PARAM;
    }
    const int fd =
        socket(params.sockaddr.addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return UCS_ERR_INVALID_ADDR;
    }
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, params.sockaddr.addr, params.sockaddr.addrlen) != 0 ||
        ::listen(fd, kBacklog) != 0) {
        const int error = errno;
        ::close(fd);
        return error == EADDRINUSE ? UCS_ERR_BUSY : UCS_ERR_INVALID_ADDR;
    }
    auto listener = std::make_unique<ucp_listener>();
    listener->worker = &worker_;
    listener->fd = fd;
    listener->id = ++last_id_;
    listener->conn_handler = conn ? params.conn_handler : ucp_listener_conn_handler_t{};
    listener->accept_handler = accept ? params.accept_handler : ucp_listener_accept_handler_t{};
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = listener->id;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    *made = listener.get();
    listeners_[listener->id] = std::move(listener);
    return UCS_OK;
}

// Clients that were not answered are turned away; requests that the program has stay valid.
void Sockets::stop(ucp_listener_h listener) {
    ::close(listener->fd);
    for (auto next = connections_.begin(); next != connections_.end();) {
        Connection& connection = *(next++)->second;
        if (connection.listener != listener) {
            continue;
        }
        connection.listener = nullptr;
        if (connection.state == Connection::State::kCalled) {
            send(connection, own_note(Note::Kind::kReject, nullptr));
            close(connection);
        }
    }
    listeners_.erase(listener->id);
}

void Sockets::accept_all(ucp_listener& listener) {
    for (;;) {
        const int fd = accept4(listener.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return;
        }
        add(fd, Connection::State::kCalled, EPOLLIN)->listener = &listener;
    }
}

// The client has said who it is: the program decides, now or later.
void Sockets::asked(Connection& connection) {
    ucp_listener* listener = connection.listener;
    if (connection.remote.kind != Note::Kind::kConnect || listener == nullptr) {
        close(connection);
        return;
    }
    connection.state = Connection::State::kAsking;
    watch(connection, EPOLLRDHUP);
    auto* request = new (std::nothrow) ucp_conn_request{&worker_, &connection};
    if (request == nullptr) {
        close(connection);
        return;
    }
    if (listener->conn_handler.cb != nullptr) {
        listener->conn_handler.cb(request, listener->conn_handler.arg);
        return;
    }
    const ucp_listener_accept_handler_t handler = listener->accept_handler;
    ucp_ep_h ep = nullptr;
    if (accept(request, ucp_ep_params_t{}, &ep) == UCS_OK) {
        handler.cb(ep, handler.arg);
    }
}

ucs_status_t Sockets::accept(ucp_conn_request_h request, const ucp_ep_params_t& params,
                             ucp_ep_h* ep) {
    if (request->worker != &worker_) {
        // A server may answer with another worker than the one that listens.
        Connection* moved = request->connection;
        Sockets& from = *request->worker->sockets();
        auto node = from.connections_.extract(moved->id);
        epoll_ctl(from.epoll_, EPOLL_CTL_DEL, moved->fd, nullptr);
        moved->id = ++last_id_;
        epoll_event event{};
        event.events = EPOLLRDHUP;
        event.data.u64 = moved->id;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, moved->fd, &event);
        connections_[moved->id] = std::move(node.mapped());
        request->worker = &worker_;
    }
    Connection& connection = *request->connection;
    ucs_status_t status = UCS_OK;
    Peer* peer = worker_.peer(connection.remote.address, &status);
    if (peer == nullptr) {
        reject(request);
        return status;
    }
    auto* made = new ucp_ep(worker_);
    made->take_params(params);
    made->connect_by_number(*peer, connection.remote.endpoint);
    made->set_connection(&connection);
    connection.endpoint = made;
    connection.listener = nullptr;
    connection.state = Connection::State::kOpen;
    if (send(connection, own_note(Note::Kind::kAccept, made))) {
        watch(connection, EPOLLIN | EPOLLRDHUP);
    } else {
        lost(connection, UCS_ERR_CONNECTION_RESET);
    }
    delete request;
    *ep = made;
    return UCS_OK;
}

ucs_status_t Sockets::reject(ucp_conn_request_h request) {
    Connection& connection = *request->connection;
    send(connection, own_note(Note::Kind::kReject, nullptr));
    close(connection);
    delete request;
    return UCS_OK;
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_t ucp_listener_create(ucp_worker_h worker, const ucp_listener_params_t* params,
                                 ucp_listener_h* listener) {
    const Worker::Guard guard(*worker);
    return worker->sockets()->listen(*params, listener);
}

void ucp_listener_destroy(ucp_listener_h listener) {
    Worker& worker = *listener->worker;
    const Worker::Guard guard(worker);
    worker.sockets()->stop(listener);
}

ucs_status_t ucp_listener_query(ucp_listener_h listener, ucp_listener_attr_t* attr) {
    const Worker::Guard guard(*listener->worker);
    if ((attr->field_mask & UCP_LISTENER_ATTR_FIELD_SOCKADDR) != 0) {
        socklen_t size = sizeof(attr->sockaddr);
        if (getsockname(listener->fd, reinterpret_cast<sockaddr*>(&attr->sockaddr), &size) != 0) {
            return UCS_ERR_IO_ERROR;
        }
    }
    return UCS_OK;
}

ucs_status_t ucp_listener_reject(ucp_listener_h listener, ucp_conn_request_h request) {
    const Worker::Guard guard(*listener->worker);
    return request->worker->sockets()->reject(request);
}

ucs_status_t ucp_conn_request_query(ucp_conn_request_h request, ucp_conn_request_attr_t* attr) {
    const Worker::Guard guard(*request->worker);
    if ((attr->field_mask & UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR) != 0) {
        sockaddr_storage local;
        if (const ucs_status_t status =
                connection_addresses(*request->connection, &local, &attr->client_address);
            status != UCS_OK) {
            return status;
        }
    }
    if ((attr->field_mask & UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID) != 0) {
        attr->client_id = request->connection->remote.client_id;
    }
    return UCS_OK;
}
