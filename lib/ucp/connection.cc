// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/ucp/log.h"
#include "lib/ucp/sockets.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

constexpr uint8_t kMagic[4] = {'T', 'W', 'C', 'M'};
constexpr uint8_t kVersion = 1;
// A look costs a system call; a turn without one a few nanoseconds.
constexpr unsigned kTurnsPerLook = 32;
constexpr int kEvents = 16;

ucs_status_t status_of_connect(int error) {
    switch (error) {
        case ECONNREFUSED:
        case EHOSTUNREACH:
        case ENETUNREACH:
            return UCS_ERR_UNREACHABLE;
        case ETIMEDOUT:
            return UCS_ERR_TIMED_OUT;
        default:
            return UCS_ERR_CONNECTION_RESET;
    }
}

}  // namespace

void Note::encode(uint8_t* bytes) const {
    std::memset(bytes, 0, kSize);
    std::memcpy(bytes, kMagic, sizeof(kMagic));
    bytes[4] = kVersion;
    bytes[5] = static_cast<uint8_t>(kind);
    for (int i = 0; i < 4; ++i) {
        bytes[8 + i] = static_cast<uint8_t>(endpoint >> (24 - 8 * i));
    }
    for (int i = 0; i < 8; ++i) {
        bytes[12 + i] = static_cast<uint8_t>(client_id >> (56 - 8 * i));
    }
    address.encode(bytes + 20);
}

bool Note::decode(const uint8_t* bytes) {
    if (std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0 || bytes[4] != kVersion ||
        bytes[5] > static_cast<uint8_t>(Kind::kReject)) {
        return false;
    }
    kind = static_cast<Kind>(bytes[5]);
    endpoint = 0;
    client_id = 0;
    for (int i = 0; i < 4; ++i) {
        endpoint = endpoint << 8 | bytes[8 + i];
    }
    for (int i = 0; i < 8; ++i) {
        client_id = client_id << 8 | bytes[12 + i];
    }
    return address.decode(bytes + 20);
}

ucs_status_t connection_addresses(const Connection& connection, sockaddr_storage* local,
                                  sockaddr_storage* remote) {
    socklen_t size = sizeof(*local);
    const int first = getsockname(connection.fd, reinterpret_cast<sockaddr*>(local), &size);
    size = sizeof(*remote);
    const int second = getpeername(connection.fd, reinterpret_cast<sockaddr*>(remote), &size);
    return first == 0 && second == 0 ? UCS_OK : UCS_ERR_NOT_CONNECTED;
}

Sockets::Sockets(Worker& worker) : worker_(worker), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Sockets::~Sockets() {
    for (const auto& [id, connection] : connections_) {
        if (connection->endpoint != nullptr) {
            connection->endpoint->set_connection(nullptr);
        }
        ::close(connection->fd);
    }
    for (const auto& [id, listener] : listeners_) {
        ::close(listener->fd);
    }
    ::close(epoll_);
}

bool Sockets::ready() const {
    epoll_event event;
    return epoll_wait(epoll_, &event, 1, 0) > 0;
}

unsigned Sockets::poll() {
    if (turn_++ % kTurnsPerLook != 0) {
        return 0;
    }
    epoll_event events[kEvents];
    const int count = epoll_wait(epoll_, events, kEvents, 0);
    for (int i = 0; i < count; ++i) {
        // An event before this one may have closed it.
        const uint64_t id = events[i].data.u64;
        if (const auto listener = listeners_.find(id); listener != listeners_.end()) {
            accept_all(*listener->second);
        } else if (const auto found = connections_.find(id); found != connections_.end()) {
            handle(*found->second, events[i].events);
        }
    }
    if (count > 0) {
        turn_ = 0;  // where something happens, more is likely
    }
    return count > 0 ? static_cast<unsigned>(count) : 0;
}

Connection* Sockets::add(int fd, Connection::State state, uint32_t events) {
    auto connection = std::make_unique<Connection>();
    Connection* added = connection.get();
    added->fd = fd;
    added->state = state;
    added->id = ++last_id_;
    epoll_event event{};
    event.events = events;
    event.data.u64 = added->id;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    connections_[added->id] = std::move(connection);
    return added;
}

void Sockets::watch(Connection& connection, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = connection.id;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
}

void Sockets::close(Connection& connection) {
    ::close(connection.fd);
    connections_.erase(connection.id);
}

Note Sockets::own_note(Note::Kind kind, const Endpoint* endpoint) const {
    Note note;
    note.kind = kind;
    note.endpoint = endpoint != nullptr ? endpoint->number() : 0;
    note.address = worker_.address();
    return note;
}

// Nothing else is ever written to the connection: a note always fits the kernel's buffer.
bool Sockets::send(const Connection& connection, const Note& note) {
    uint8_t bytes[Note::kSize];
    note.encode(bytes);
    return ::send(connection.fd, bytes, sizeof(bytes), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof(bytes));
}

ucs_status_t Sockets::connect(const ucp_ep_params_t& params, ucp_ep_h* ep) {
    const auto given = [&](uint64_t field) { return (params.field_mask & field) != 0; };
    if (!given(UCP_EP_PARAM_FIELD_SOCK_ADDR) || params.sockaddr.addr == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    const int fd =
        socket(params.sockaddr.addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return UCS_ERR_INVALID_ADDR;
    }
    if (given(UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR) &&
        bind(fd, params.local_sockaddr.addr, params.local_sockaddr.addrlen) != 0) {
        ::close(fd);
        return UCS_ERR_INVALID_ADDR;
    }
    if (::connect(fd, params.sockaddr.addr, params.sockaddr.addrlen) != 0 && errno != EINPROGRESS) {
        const int error = errno;
        ::close(fd);
        return status_of_connect(error);
    }
    auto* made = new ucp_ep(worker_);
    made->take_params(params);
    Connection* connection = add(fd, Connection::State::kConnecting, EPOLLOUT);
    connection->endpoint = made;
    connection->sends_client_id =
        given(UCP_EP_PARAM_FIELD_FLAGS) && (params.flags & UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID) != 0;
    made->set_connection(connection);
    *ep = made;
    return UCS_OK;
}

void Sockets::handle(Connection& connection, uint32_t events) {
    switch (connection.state) {
        case Connection::State::kConnecting:
            connected(connection);
            break;
        case Connection::State::kCalling:
        case Connection::State::kCalled:
            input(connection);
            break;
        case Connection::State::kAsking:
        case Connection::State::kOpen:
            // Nothing comes any more but the end.
            if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0) {
                lost(connection, UCS_ERR_CONNECTION_RESET);
            }
            break;
    }
}

void Sockets::connected(Connection& connection) {
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(connection.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        lost(connection, status_of_connect(error));
        return;
    }
    Note note = own_note(Note::Kind::kConnect, connection.endpoint);
    note.client_id = connection.sends_client_id ? worker_.client_id() : 0;
    connection.state = Connection::State::kCalling;
    watch(connection, EPOLLIN);
    if (!send(connection, note)) {
        lost(connection, UCS_ERR_CONNECTION_RESET);
    }
}

void Sockets::input(Connection& connection) {
    const ssize_t got = recv(connection.fd, connection.input + connection.input_length,
                             Note::kSize - connection.input_length, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        lost(connection, UCS_ERR_CONNECTION_RESET);
        return;
    }
    connection.input_length += static_cast<size_t>(got);
    if (connection.input_length < Note::kSize) {
        return;
    }
    if (!connection.remote.decode(connection.input)) {
        log_warning("a connection that does not speak Tagwire's protocol is closed");
        lost(connection, UCS_ERR_CONNECTION_RESET);
    } else if (connection.state == Connection::State::kCalled) {
        asked(connection);
    } else {
        answered(connection);
    }
}

void Sockets::answered(Connection& connection) {
    if (connection.remote.kind != Note::Kind::kAccept) {
        lost(connection, UCS_ERR_REJECTED);
        return;
    }
    ucs_status_t status = UCS_OK;
    Peer* peer = worker_.peer(connection.remote.address, &status);
    if (peer == nullptr) {
        lost(connection, status);
        return;
    }
    connection.state = Connection::State::kOpen;
    watch(connection, EPOLLIN | EPOLLRDHUP);
    connection.endpoint->connect_by_number(*peer, connection.remote.endpoint);
}

void Sockets::lost(Connection& connection, ucs_status_t status) {
    Endpoint* endpoint = connection.endpoint;
    if (endpoint != nullptr) {
        // The addresses stay to be asked for; the end is reported once.
        epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.fd, nullptr);
        endpoint->fail(status);
    } else if (connection.state != Connection::State::kAsking) {
        close(connection);
    } else {
        epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.fd, nullptr);
    }
}

}  // namespace tagwire::ucp
