// SPDX-License-Identifier: BSD-3-Clause
#include "lib/transport/engine.h"

#include <fmt/format.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "lib/transport/log.h"

namespace tagwire::transport {
namespace {

uint32_t receive_units(const TransportConfig& config) noexcept {
    return static_cast<uint32_t>(
        std::min<uint64_t>(config.max_incoming_messages, config.held_bytes_limit / config.mtu));
}

std::string check(const TransportConfig& config) {
    constexpr uint32_t kMaxMtu = 9600;
    if (config.local.family != AddressFamily::kIpv4) {
        return "IPv6 is not supported yet: give the worker an IPv4 address";
    }
    if (config.local.udp_port == 0) {
        return "the worker has no UDP port: set local.udp_port";
    }
    if (config.mtu < wire::kMinMtu || config.mtu > kMaxMtu) {
        return fmt::format("MTU {} is outside {} to {}", config.mtu, wire::kMinMtu, kMaxMtu);
    }
    if (config.packet_pool == nullptr) {
        return "no packet_pool";
    }
    const uint32_t needed = config.mtu + sizeof(wire::EthernetHeader) + RTE_PKTMBUF_HEADROOM;
    if (rte_pktmbuf_data_room_size(config.packet_pool) < needed) {
        return fmt::format("packet_pool has a data room of {} bytes; an MTU of {} needs {}",
                           rte_pktmbuf_data_room_size(config.packet_pool), config.mtu, needed);
    }
    if (config.max_peers == 0 || config.max_peers > UINT16_MAX) {
        return fmt::format("max_peers {} is outside 1 to {}", config.max_peers, UINT16_MAX);
    }
    if (receive_units(config) < 2 * config.max_peers) {
        return fmt::format(
            "max_incoming_messages {} and held_bytes_limit {} leave {} packets to be held for {} "
            "peers; at least 2 per peer are needed",
            config.max_incoming_messages, config.held_bytes_limit, receive_units(config),
            config.max_peers);
    }
    if (config.send_window_packets == 0 || config.send_window_packets > wire::kPsnWindow) {
        return fmt::format("send_window_packets {} is outside 1 to {}", config.send_window_packets,
                           wire::kPsnWindow);
    }
    if (config.eager_window == 0 || config.eager_window > kMaxMessageSize) {
        return fmt::format("eager_window {} is outside 1 to {}", config.eager_window,
                           kMaxMessageSize);
    }
    if (config.rto_min_ns == 0 || config.rto_min_ns > config.rto_max_ns) {
        return "rto_min_ns must be above 0 and not above rto_max_ns";
    }
    return {};
}

}  // namespace

const char* name(SessionState state) noexcept {
    switch (state) {
        case SessionState::kClosed:
            return "closed";
        case SessionState::kResolving:
            return "resolving";
        case SessionState::kHello:
            return "hello";
        case SessionState::kEstablished:
            return "established";
        case SessionState::kClosing:
            return "closing";
    }
    return "?";
}

std::unique_ptr<Transport> Transport::create(const TransportConfig& config, PacketIo& io,
                                             Clock& clock, std::string* error) {
    const std::string problem = check(config);
    if (!problem.empty()) {
        if (error != nullptr) {
            *error = problem;
        }
        return nullptr;
    }
    return std::make_unique<Engine>(config, io, clock);
}

Engine::Engine(const TransportConfig& config, PacketIo& io, Clock& clock)
    : io_(io),
      clock_(clock),
      sessions_(new Session[config.max_peers]{}),
      events_(4096),
      messages_(receive_units(config)),
      fragments_(receive_units(config)),
      index_(receive_units(config)),
      outgoing_(receive_units(config)),
      budget_(receive_units(config), config.max_peers),
      ready_(config.max_peers),
      acks_(config.max_peers),
      timers_(config.max_peers + 2),
      config_(config),
      random_(config.random_seed),
      cookie_key_{random_.next(), random_.next()},
      incarnation_(config.incarnation != 0 ? config.incarnation : random_.next()),
      max_window_(config.send_window_packets),
      retiring_(config.max_peers) {
    decode_.mac = config.mac.bytes;
    std::memcpy(&decode_.ip, config.local.ip.data(), sizeof(decode_.ip));
    decode_.udp_port = config.local.udp_port;
}

Engine::~Engine() {
    rte_pktmbuf_free_bulk(batch_, batch_count_);
    rte_pktmbuf_free_bulk(stock_, stock_count_);
    rte_pktmbuf_free_bulk(looped_.data(), static_cast<unsigned>(looped_.size()));
    fragments_.for_each([](Fragment& fragment) { rte_pktmbuf_free(fragment.packet); });
    events_.for_each_waiting([](const Event& event) { rte_pktmbuf_free(event.records.packet); });
}

int Engine::open_endpoint(uint16_t endpoint, KeyDigest key) {
    return endpoints_.try_emplace(endpoint, std::set<KeyDigest>{key}).second ? 0 : -EEXIST;
}

void Engine::add_key(uint16_t endpoint, KeyDigest key) {
    const auto found = endpoints_.find(endpoint);
    if (found != endpoints_.end()) {
        found->second.insert(key);
    }
}

int Engine::close_endpoint(uint16_t endpoint) {
    for (PeerId id = 0; id < peers_; ++id) {
        if (sessions_[id].local_endpoint == endpoint && sessions_[id].busy()) {
            return -EBUSY;
        }
    }
    if (endpoints_.erase(endpoint) == 0) {
        return -ENOENT;
    }
    for (PeerId id = 0; id < peers_; ++id) {
        Session& s = sessions_[id];
        if (s.local_endpoint == endpoint && s.state != SessionState::kClosed) {
            close_session(s);
        }
    }
    return 0;
}

PeerId Engine::find_peer(uint16_t local_endpoint, const EndpointAddress& remote,
                         KeyDigest key) const {
    const auto found =
        peer_index_.find({host_key(remote), uint32_t{local_endpoint} << 16 | remote.endpoint, key});
    return found == peer_index_.end() ? kNoPeer : found->second;
}

int Engine::open_peer(uint16_t local_endpoint, const EndpointAddress& remote, KeyDigest key,
                      PeerId* peer) {
    uint32_t ip;
    std::memcpy(&ip, remote.ip.data(), sizeof(ip));
    if (remote.family != AddressFamily::kIpv4 || ip == 0 || remote.udp_port == 0 ||
        !endpoints_.contains(local_endpoint)) {
        return -EINVAL;
    }
    if (places_left() == 0) {
        retire_now();
    }
    const int error = add_peer(local_endpoint, remote, key, peer);
    if (error == 0) {
        hold_peer(*peer);
    }
    return error;
}

int Engine::add_peer(uint16_t local_endpoint, const EndpointAddress& remote, KeyDigest key,
                     PeerId* peer) {
    const PeerId known = find_peer(local_endpoint, remote, key);
    if (known != kNoPeer) {
        *peer = known;
        return 0;
    }
    const PeerId id = take_place();
    if (id == kNoPeer) {
        return -ENOSPC;
    }
    Session& s = sessions_[id];
    s.id = id;
    s.remote = remote;
    s.local_endpoint = local_endpoint;
    s.key = key;
    s.generation = forgotten_;
    s.held_peak = 0;
    s.heard_ns = 0;
    s.loopback = remote.ip == config_.local.ip && remote.udp_port == config_.local.udp_port;
    s.loss_deadline = s.reorder_deadline = s.persist_deadline = s.keepalive_deadline = kNever;
    peer_index_[{host_key(remote), uint32_t{local_endpoint} << 16 | remote.endpoint, key}] = id;
    const auto [host, added] = host_index_.try_emplace(host_key(remote), id);
    s.next_same_host = added ? kNoPeer : host->second;
    host->second = id;
    *peer = id;
    return 0;
}

uint32_t Engine::poll(std::span<Event> events) noexcept {
    advance_clock();
    ++turn_;
    acks_due_ = acks_due_ || !acks_.empty();
    if (finished_ != nullptr && events_.empty()) [[unlikely]] {
        free_finished();
    }
    events_.begin(events);
    if (timers_.next() <= now_) [[unlikely]] {
        run_timers();
    }
    push();  // what was posted since the last poll does not wait for what came meanwhile
    receive();
    if (!ready_.empty()) {
        transmit();
    }
    if (acks_due_) {
        transmit_acks();
    }
    if (batch_count_ != 0) {
        flush_frames();
    }
    return events_.finish();
}

void Engine::push() noexcept {
    if (!ready_.empty()) {
        transmit();
        if (batch_count_ != 0) {
            flush_frames();
        }
    }
}

// The first turn, or a jump: nobody can say who was silent while this machine slept.
void Engine::note_clock(uint64_t now, uint64_t passed) noexcept {
    if (clock_jump_ns_ == 0) {
        clock_jump_ns_ = config_.peer_timeout_ns / 2 + 1;
        probing_ = config_.probes_address;
        probing_ ? probe_address() : announce_address();
        return;
    }
    count(Counter::clock_jumps);
    for (PeerId id = 0; id < peers_; ++id) {
        sessions_[id].heard_ns = now;
        if (sessions_[id].hello_started_ns != 0) {
            sessions_[id].hello_started_ns += passed;
        }
    }
}

void Engine::free_finished() noexcept {
    while (finished_ != nullptr) {
        IncomingMessage* message = finished_;
        finished_ = message->next;
        free_message(message);
    }
}

uint64_t Engine::next_deadline_ns() const noexcept {
    const bool work = !ready_.empty() || !acks_.empty() || batch_count_ != 0 || !events_.empty() ||
                      !looped_.empty() || finished_ != nullptr;
    return work ? now_ : timers_.next();
}

BudgetShare Engine::share_of(PeerId peer) const noexcept {
    const Session& s = sessions_[peer];
    return {s.held(), s.held_peak, s.eager_allowed - s.eager_received, budget_.reserve()};
}

void Engine::report(EventType type, Session& s, int status) noexcept {
    Event event;
    event.type = type;
    event.status = status;
    event.peer = s.id;
    events_.push(event);
}

void Engine::set_state(Session& s, SessionState state) noexcept {
    TAGWIRE_LOG(DEBUG, "peer %u: %s -> %s", s.id, name(s.state), name(state));
    s.state = state;
}

}  // namespace tagwire::transport
