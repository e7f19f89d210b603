// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/netdev_wire.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "drivers/softcx/engine/parse.h"
#include "drivers/softcx/log.h"
#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {

namespace {

constexpr uint32_t kCallsPerLook = 32;  // calls between two looks at the clock
constexpr int64_t kLookInterval = 20;   // milliseconds between two looks at the device
constexpr uint32_t kMostPieces = kMaxOctowords;
constexpr uint8_t kChecksums = kEthL3Checksum | kEthL4Checksum;

int64_t coarse_milliseconds() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return now.tv_sec * int64_t{1000} + now.tv_nsec / 1'000'000;
}

const tpacket_auxdata* auxiliary_of(msghdr& message) noexcept {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level == SOL_PACKET && part->cmsg_type == PACKET_AUXDATA)
            return reinterpret_cast<const tpacket_auxdata*>(CMSG_DATA(part));
    }
    return nullptr;
}

std::optional<VlanTag> tag_of(msghdr& message) noexcept {
    const tpacket_auxdata* auxiliary = auxiliary_of(message);
    if (auxiliary == nullptr || (auxiliary->tp_status & TP_STATUS_VLAN_VALID) == 0)
        return std::nullopt;
    const bool has_protocol = (auxiliary->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
    return VlanTag{has_protocol ? auxiliary->tp_vlan_tpid : kTypeVlan, auxiliary->tp_vlan_tci};
}

}  // namespace

NetdevWire::NetdevWire(std::unique_ptr<PacketSocket> socket, PortCounters& counters)
    : socket_(std::move(socket)),
      counters_(counters),
      carrier_(socket_->has_carrier()),
      last_look_(coarse_milliseconds()),
      slots_(std::make_unique_for_overwrite<uint8_t[]>(size_t{kBatch} * kSlot)),
      segment_room_(std::make_unique_for_overwrite<uint8_t[]>(kHeadroom + kMaxFrame + 64)) {
    for (uint32_t i = 0; i < kBatch; ++i) {
        parts_[i][0] = {&headers_[i], sizeof(headers_[i])};
        parts_[i][1] = {slot(i) + kHeadroom, kLongest};
        messages_[i].msg_hdr.msg_iov = parts_[i].data();
        messages_[i].msg_hdr.msg_iovlen = parts_[i].size();
    }
}

NetdevWire::~NetdevWire() {
    counters_.wire_rx_dropped += socket_->take_drops();
}

bool NetdevWire::send(std::span<const Piece> pieces, uint32_t total) noexcept {
    if (total > kMaxFrame || pieces.size() > kMostPieces)
        return false;
    // The kernel drops what is sent without a link, and says nothing.
    if (!carrier_ && !(carrier_ = socket_->has_carrier())) {
        ++counters_.tx_no_link;
        return true;
    }
    OffloadHeader header{};  // nothing is left to do
    std::array<iovec, kMostPieces + 1> parts;
    parts[0] = {&header, sizeof(header)};
    for (size_t i = 0; i < pieces.size(); ++i)
        parts[i + 1] = {const_cast<uint8_t*>(pieces[i].data), pieces[i].length};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = pieces.size() + 1;
    ssize_t sent;
    // That the device was down once is told to the next call, whatever that wants.
    int retries = 1;
    do {
        sent = ::sendmsg(socket_->fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && (errno == EINTR || (errno == ENETDOWN && retries-- > 0)));
    if (sent >= 0)
        return true;
    if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
        return false;
    refuse(errno);
    return true;
}

// The frame has left the card; it is the network that does not take it.
void NetdevWire::refuse(int error) noexcept {
    ++counters_.wire_tx_refused;
    if (refusal_logged_)
        return;
    refusal_logged_ = true;
    const char* name = socket_->netdev().c_str();
    if (error == EMSGSIZE)
        log(LogLevel::kWarn,
            "%s takes no frame of this length: ip link set %s mtu 9000, or send shorter ones "
            "(further ones are only counted)",
            name, name);
    else
        log(LogLevel::kWarn, "%s takes no frame: %s (further ones are only counted)", name,
            std::strerror(error));
}

std::span<const uint8_t> NetdevWire::receive() noexcept {
    look_around();
    while (front_.empty()) {
        if (next_ == count_ && !fill())
            return {};
        front_ = prepare(next_);
        if (front_.empty())
            ++next_;
    }
    return front_;
}

void NetdevWire::release() noexcept {
    front_ = {};
    if (large_.has_value() && ++segment_ < large_->segments()) {
        front_ = next_segment();
        return;
    }
    large_.reset();
    ++next_;
}

bool NetdevWire::fill() noexcept {
    for (uint32_t i = 0; i < kBatch; ++i) {
        msghdr& message = messages_[i].msg_hdr;
        message.msg_name = &sources_[i];
        message.msg_namelen = sizeof(sources_[i]);
        message.msg_control = controls_[i].bytes;
        message.msg_controllen = sizeof(controls_[i].bytes);
    }
    int received;
    do {
        received = ::recvmmsg(socket_->fd(), messages_.data(), kBatch, MSG_DONTWAIT, nullptr);
    } while (received < 0 && errno == EINTR);
    // EAGAIN: nothing is there. ENETDOWN is told once when the device goes down.
    next_ = 0;
    count_ = received > 0 ? static_cast<uint32_t>(received) : 0;
    return count_ != 0;
}

// The frame at `index` as a cable would carry it; empty when it is lost or none of ours.
std::span<const uint8_t> NetdevWire::prepare(uint32_t index) noexcept {
    msghdr& message = messages_[index].msg_hdr;
    if (sources_[index].sll_pkttype == PACKET_OUTGOING)
        return {};
    if ((message.msg_flags & MSG_TRUNC) != 0) {
        ++counters_.wire_rx_truncated;
        return {};
    }
    const OffloadHeader& header = headers_[index];
    if (messages_[index].msg_len <= sizeof(header)) {
        ++counters_.wire_rx_refused;
        return {};
    }
    uint8_t* frame = slot(index) + kHeadroom;
    const auto length = static_cast<uint32_t>(messages_[index].msg_len - sizeof(header));
    tag_ = tag_of(message);
    if (header.kind != kNotLarge) {
        large_ = plan_segments(frame, length, header);
        segment_ = 0;
        if (large_.has_value())
            return next_segment();
        ++counters_.wire_rx_refused;
        return {};
    }
    if ((header.flags & kNeedsChecksum) != 0 &&
        !finish_checksum(frame, length, header.checksum_start, header.checksum_offset)) {
        ++counters_.wire_rx_refused;
        return {};
    }
    return finish(frame, length);
}

std::span<const uint8_t> NetdevWire::next_segment() noexcept {
    uint8_t* frame = segment_room_.get() + kHeadroom;
    return finish(frame, make_segment(*large_, segment_, kChecksums, frame));
}

std::span<const uint8_t> NetdevWire::finish(uint8_t* frame, uint32_t length) noexcept {
    if (!tag_.has_value())
        return {frame, length};
    if (length < 2 * sizeof(MacAddress)) {
        ++counters_.wire_rx_refused;
        return {};
    }
    length = insert_tag(frame, length, *tag_);
    return {frame - kVlanTag, length};
}

void NetdevWire::look_around() noexcept {
    if (++calls_ < kCallsPerLook)
        return;
    calls_ = 0;
    const int64_t now = coarse_milliseconds();
    if (now - last_look_ < kLookInterval)
        return;
    last_look_ = now;
    carrier_ = socket_->has_carrier();
    counters_.wire_rx_dropped += socket_->take_drops();
}

std::unique_ptr<Wire> open_netdev_wire(const std::string& names, uint32_t device_index,
                                       PortCounters& counters, std::string* error) {
    std::vector<std::string> netdevs;
    if (!parse_netdev_names(names, netdevs)) {
        *error = "use names of network devices, each once, such as netdev:veth0,veth1";
        return nullptr;
    }
    if (device_index >= netdevs.size()) {
        *error = "no network device is named for mlx5_" + std::to_string(device_index);
        return nullptr;
    }
    std::unique_ptr<PacketSocket> socket = PacketSocket::open(netdevs[device_index], error);
    if (socket == nullptr)
        return nullptr;
    return std::make_unique<NetdevWire>(std::move(socket), counters);
}

}  // namespace softcx
