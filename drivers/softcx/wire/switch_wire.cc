// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/switch_wire.h"

#include <algorithm>
#include <bit>
#include <ctime>
#include <utility>

namespace softcx {

namespace {

constexpr uint32_t kMostInARow = 32;     // frames from one source before the next has its turn
constexpr uint32_t kCallsPerLook = 256;  // calls between two looks at the clock
constexpr uint32_t kAddresses = 12;

uint32_t coarse_seconds() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<uint32_t>(now.tv_sec);
}

// Destination and source address, wherever the pieces split them.
std::array<uint8_t, kAddresses> addresses_of(std::span<const Wire::Piece> pieces) noexcept {
    std::array<uint8_t, kAddresses> addresses{};
    uint32_t used = 0;
    for (const Wire::Piece& piece : pieces) {
        const uint32_t part = std::min(piece.length, kAddresses - used);
        std::copy_n(piece.data, part, addresses.data() + used);
        used += part;
        if (used == kAddresses)
            break;
    }
    return addresses;
}

uint64_t mac_at(const uint8_t* bytes) noexcept {
    uint64_t mac = 0;
    for (int i = 0; i < 6; ++i)
        mac = mac << 8 | bytes[i];
    return mac;
}

constexpr bool is_group(uint64_t mac) {
    return (mac >> 40 & 1) != 0;
}

}  // namespace

SwitchWire::SwitchWire(std::unique_ptr<SwitchSegment> segment, std::string name) noexcept
    : segment_(std::move(segment)), name_(std::move(name)), now_(coarse_seconds()) {}

bool SwitchWire::send(std::span<const Piece> pieces, uint32_t total) noexcept {
    if (total > kMaxFrame)
        return false;
    look_around();
    const auto addresses = addresses_of(pieces);
    const uint64_t destination = mac_at(addresses.data());
    learn(mac_at(addresses.data() + 6));

    const uint64_t others = segment_->others();
    if (!is_group(destination)) {
        const std::optional<uint32_t> port = segment_->layout().fdb.lookup(destination, now_);
        if (port == segment_->port())
            return true;  // its station is on this side: filtered
        if (port.has_value() && *port < kSwitchPorts && (others >> *port & 1) != 0)
            return push(*port, pieces, total);
    }
    bool delivered = others == 0;
    for (uint64_t left = others; left != 0; left &= left - 1)
        delivered |= push(static_cast<uint32_t>(std::countr_zero(left)), pieces, total);
    return delivered;
}

bool SwitchWire::push(uint32_t port, std::span<const Piece> pieces, uint32_t total) noexcept {
    FrameProducer& producer = producers_[port];
    if (!producer.is_open() && (no_room_ >> port & 1) == 0) {
        producer = segment_->open_producer(port);
        if (!producer.is_open())
            no_room_ |= uint64_t{1} << port;
    }
    uint8_t* to = producer.is_open() ? producer.reserve(total) : nullptr;
    if (to == nullptr) {
        segment_->layout().port[port].tail_drops.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    gather(pieces, to);
    producer.publish(total);
    return true;
}

// A station is written again once a second at most.
void SwitchWire::learn(uint64_t mac) noexcept {
    if (is_group(mac) || (mac == learnt_mac_ && now_ == learnt_time_))
        return;
    segment_->layout().fdb.learn(mac, segment_->port(), now_);
    learnt_mac_ = mac;
    learnt_time_ = now_;
}

void SwitchWire::look_around() noexcept {
    if (++calls_ < kCallsPerLook)
        return;
    calls_ = 0;
    now_ = coarse_seconds();
    if (now_ == last_look_)
        return;
    last_look_ = now_;
    segment_->reclaim_dead_ports();
}

std::span<const uint8_t> SwitchWire::receive() noexcept {
    look_around();
    const uint64_t sources =
        segment_->layout().port[segment_->port()].sources.load(std::memory_order_acquire);
    if (sources == 0)
        return {};
    if (turn_ < kMostInARow && consumers_[source_].is_open()) {
        const std::span<const uint8_t> frame = consumers_[source_].front();
        if (!frame.empty())
            return frame;
    }
    return next_source(sources);
}

// The others first, the present one last.
std::span<const uint8_t> SwitchWire::next_source(uint64_t sources) noexcept {
    turn_ = 0;
    // Bit i stands for the port i + 1 places behind the present one.
    const uint32_t first = source_ + 1;
    static_assert(kSwitchPorts == 32);
    for (uint32_t left = std::rotr(static_cast<uint32_t>(sources), static_cast<int>(first));
         left != 0; left &= left - 1) {
        const uint32_t candidate =
            (first + static_cast<uint32_t>(std::countr_zero(left))) % kSwitchPorts;
        FrameConsumer& consumer = consumers_[candidate];
        if (!consumer.is_open())
            consumer = segment_->open_consumer(candidate);
        const std::span<const uint8_t> frame = consumer.front();
        if (!frame.empty()) {
            source_ = candidate;
            return frame;
        }
    }
    return {};
}

void SwitchWire::release() noexcept {
    ++turn_;
    consumers_[source_].release();
}

std::string SwitchWire::describe() const {
    return "switch:" + name_ + " port " + std::to_string(segment_->port());
}

uint64_t SwitchWire::tail_drops() const noexcept {
    return segment_->layout().port[segment_->port()].tail_drops.load(std::memory_order_relaxed);
}

std::unique_ptr<Wire> open_switch_wire(const std::string& name, std::string* error) {
    std::unique_ptr<SwitchSegment> segment = SwitchSegment::attach(name, error);
    if (segment == nullptr)
        return nullptr;
    return std::make_unique<SwitchWire>(std::move(segment), name);
}

}  // namespace softcx
