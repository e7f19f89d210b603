// SPDX-License-Identifier: BSD-3-Clause
// ARP (RFC 826) and ICMP echo (RFC 792), for ports without a kernel netdev. Every
// peer is on the link: there is no routing.
#include <rte_mbuf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/transport/frame_parts.h"
#include "lib/transport/log.h"
#include "lib/wire/checksum.h"

namespace tagwire::transport {
namespace {

constexpr uint64_t kExpiryNs = 60'000'000'000;
constexpr uint64_t kRetryNs = 100'000'000;
constexpr uint64_t kDefendIntervalNs = 10'000'000'000;  // RFC 5227: DEFEND_INTERVAL

}  // namespace

// Until the peer's MAC is known; then hello.
void Engine::resolve_timer(Session& s) noexcept {
    if (s.hello_started_ns == 0) {
        s.hello_started_ns = now_;
    }
    wire::be32 ip;
    std::memcpy(&ip, s.remote.ip.data(), sizeof(ip));
    if (const wire::Mac* mac = s.loopback ? &decode_.mac : find_mac(ip)) {
        fill_template(s, *mac);
        set_state(s, SessionState::kHello);
        hello_timer(s);
        return;
    }
    if (now_ - s.hello_started_ns >= config_.arp_timeout_ns) {
        TAGWIRE_LOG(NOTICE,
                    "%s: nobody answers ARP for this address: is its process alive, and on the "
                    "same link or software wire as this one? (EHOSTUNREACH)",
                    format(s.remote).c_str());
        end_session(s, -EHOSTUNREACH);
        return;
    }
    request_mac(ip);
    const uint64_t retry =
        std::min({kRetryNs, config_.arp_timeout_ns / 4, config_.peer_timeout_ns / 4});
    s.loss_deadline = now_ + retry;
    wake(s, s.loss_deadline);
}

const wire::Mac* Engine::find_mac(wire::be32 ip) const noexcept {
    const auto found = neighbours_.find(ip.raw());
    const bool fresh = found != neighbours_.end() && found->second.known &&
                       now_ - found->second.learned_ns < kExpiryNs;
    return fresh ? &found->second.mac : nullptr;
}

// A cache: what is missing is asked for again. So it need not hold more than the peers have,
// however many stations come and go, or somebody makes up.
Engine::Neighbour& Engine::neighbour_of(wire::be32 ip) noexcept {
    const size_t limit = 2 * size_t{config_.max_peers} + 64;
    if (neighbours_.size() >= limit && !neighbours_.contains(ip.raw())) {
        std::erase_if(neighbours_, [this](const auto& entry) {
            return now_ - entry.second.learned_ns >= kExpiryNs;
        });
        if (neighbours_.size() >= limit) {
            neighbours_.clear();
        }
    }
    return neighbours_[ip.raw()];
}

void Engine::request_mac(wire::be32 ip) noexcept {
    Neighbour& neighbour = neighbour_of(ip);
    // Many sessions to one host ask once.
    if (neighbour.requested_ns == 0 || now_ - neighbour.requested_ns >= kRetryNs / 2) {
        neighbour.requested_ns = now_;
        send_arp(wire::kArpRequest, wire::kBroadcastMac, wire::Mac{}, ip, decode_.ip);
    }
}

void Engine::send_arp(uint16_t operation, const wire::Mac& to, const wire::Mac& target,
                      wire::be32 target_ip, wire::be32 sender_ip) noexcept {
    rte_mbuf* packet = has_tx_room() ? new_frame() : nullptr;
    if (packet == nullptr) {
        return;
    }
    auto* frame = rte_pktmbuf_mtod(packet, uint8_t*);
    std::memset(frame, 0, wire::kMinFrame);
    *reinterpret_cast<wire::EthernetHeader*>(frame) = {to, decode_.mac, wire::kEtherTypeArp};
    *reinterpret_cast<wire::ArpPacket*>(frame + sizeof(wire::EthernetHeader)) = {
        wire::kArpHardwareEthernet,
        wire::kEtherTypeIpv4,
        6,
        4,
        operation,
        decode_.mac,
        sender_ip,
        target,
        target_ip};
    packet->data_len = wire::kMinFrame;
    packet->pkt_len = wire::kMinFrame;
    push_frame(packet);
}

void Engine::announce_address() noexcept {
    send_arp(wire::kArpRequest, wire::kBroadcastMac, wire::Mac{}, decode_.ip, decode_.ip);
}

// RFC 5227, 2.1.1: without a sender's address, so that nobody takes our MAC for that of the station
// which has it.
void Engine::probe_address() noexcept {
    advance_clock();
    send_arp(wire::kArpRequest, wire::kBroadcastMac, wire::Mac{}, decode_.ip, wire::be32{});
    if (batch_count_ != 0) {
        flush_frames();
    }
}

void Engine::claim_address() noexcept {
    advance_clock();
    probing_ = false;
    announce_address();
    if (batch_count_ != 0) {
        flush_frames();
    }
}

bool Engine::address_is_taken(MacAddress* by) const noexcept {
    if (rival_) {
        by->bytes = *rival_;
    }
    return rival_.has_value();
}

Counter Engine::note_rival(const wire::Mac& other) noexcept {
    rival_ = other;
    if (!probing_) {
        defend_address(other);
    }
    return Counter::drop_arp_conflict;
}

// RFC 5227, 2.4: says once more whose address it is, so that the other hears of the conflict,
// too; not again soon, since the other may do the same.
void Engine::defend_address(const wire::Mac& other) noexcept {
    if (defended_ns_ != 0 && now_ - defended_ns_ < kDefendIntervalNs) {
        return;
    }
    defended_ns_ = now_;
    const auto& ip = config_.local.ip;
    TAGWIRE_LOG(ERR,
                "another station, %s, has our IP address %u.%u.%u.%u, too: messages get lost until "
                "each worker has one of its own",
                format(MacAddress{other}).c_str(), ip[0], ip[1], ip[2], ip[3]);
    announce_address();
}

Counter Engine::receive_arp(const wire::FrameView& view) noexcept {
    const wire::ArpPacket& arp = *view.arp;
    if (arp.sender_ip.raw() == decode_.ip.raw()) {
        return arp.sender_mac != decode_.mac ? note_rival(arp.sender_mac)
                                             : Counter::drop_arp_conflict;
    }
    const bool for_us = arp.target_ip.raw() == decode_.ip.raw();
    if (arp.sender_ip.raw() == 0) {
        return receive_probe(arp, for_us);
    }
    const bool known = neighbours_.contains(arp.sender_ip.raw());
    if (!for_us && !known) {
        return Counter::drop_arp_not_for_us;
    }
    learn_mac(arp.sender_ip, arp.sender_mac);
    if (for_us && arp.operation == wire::kArpRequest && !probing_) {
        send_arp(wire::kArpReply, arp.sender_mac, arp.sender_mac, arp.sender_ip, decode_.ip);
    }
    return Counter::rx_arp;
}

// Of a station that starts, and has no address yet. Of two that want the same one at the same time
// neither gets it.
Counter Engine::receive_probe(const wire::ArpPacket& arp, bool for_us) noexcept {
    if (!for_us || arp.sender_mac == decode_.mac || arp.operation != wire::kArpRequest) {
        return Counter::drop_arp_not_for_us;
    }
    if (probing_) {
        return note_rival(arp.sender_mac);
    }
    send_arp(wire::kArpReply, arp.sender_mac, arp.sender_mac, arp.sender_ip, decode_.ip);
    return Counter::rx_arp;
}

void Engine::learn_mac(wire::be32 ip, const wire::Mac& mac) noexcept {
    Neighbour& neighbour = neighbour_of(ip);
    neighbour.mac = mac;
    neighbour.learned_ns = now_;
    neighbour.known = true;
    for (PeerId id = 0; id < peers_; ++id) {
        Session& s = sessions_[id];
        if (std::memcmp(s.remote.ip.data(), &ip, sizeof(ip)) != 0) {
            continue;
        }
        if (s.state == SessionState::kResolving) {
            s.loss_deadline = now_;
            resolve_timer(s);
        } else if (s.state != SessionState::kClosed) {
            s.frame.ethernet.destination = mac;  // the peer has another card now
        }
    }
}

Counter Engine::receive_ping(const wire::FrameView& view) noexcept {
    const uint32_t icmp_length =
        static_cast<uint32_t>(sizeof(wire::IcmpHeader)) + view.payload_length;
    const uint32_t ip_length = static_cast<uint32_t>(sizeof(wire::Ipv4Header)) + icmp_length;
    if (!config_.answer_ping || ip_length > config_.mtu) {
        return Counter::drop_ping_ignored;
    }
    rte_mbuf* packet = has_tx_room() ? new_frame() : nullptr;
    if (packet == nullptr) {
        return Counter::drop_ping_ignored;
    }
    auto* frame = rte_pktmbuf_mtod(packet, uint8_t*);
    *reinterpret_cast<wire::EthernetHeader*>(frame) = {view.ethernet->source, decode_.mac,
                                                       wire::kEtherTypeIpv4};
    auto& ip = *reinterpret_cast<wire::Ipv4Header*>(frame + sizeof(wire::EthernetHeader));
    ip = *view.ip;
    ip.source = view.ip->destination;
    ip.destination = view.ip->source;
    ip.checksum = wire::be16::from_raw(wire::ipv4_header_checksum(ip));
    auto* icmp = reinterpret_cast<wire::IcmpHeader*>(&ip + 1);
    std::memcpy(static_cast<void*>(icmp), view.icmp, icmp_length);
    icmp->type = wire::kIcmpEchoReply;
    icmp->checksum = 0;
    icmp->checksum = wire::be16::from_raw(wire::checksum(icmp, icmp_length));
    packet->data_len = static_cast<uint16_t>(sizeof(wire::EthernetHeader) + ip_length);
    packet->pkt_len = packet->data_len;
    push_frame(packet);
    return Counter::rx_pings;
}

}  // namespace tagwire::transport
