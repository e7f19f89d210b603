// SPDX-License-Identifier: BSD-3-Clause
// A wire to a network device of the kernel: what the device sends leaves through it, and
// what arrives there is received. Its peers are as real as the kernel's network is.
#pragma once

#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <memory>

#include "drivers/softcx/model/objects.h"
#include "drivers/softcx/wire/netdev_frame.h"
#include "drivers/softcx/wire/packet_socket.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {

class NetdevWire final : public Wire {
  public:
    // `counters` outlives the wire.
    NetdevWire(std::unique_ptr<PacketSocket> socket, PortCounters& counters);
    ~NetdevWire() override;

    bool send(std::span<const Piece> pieces, uint32_t total) noexcept override;
    std::span<const uint8_t> receive() noexcept override;
    void release() noexcept override;
    bool link_up() const noexcept override { return carrier_; }
    bool follows_carrier() const noexcept override { return true; }
    std::string describe() const override { return "netdev:" + socket_->netdev(); }

  private:
    static constexpr uint32_t kBatch = 32;
    // A large frame of the kernel, with room for a tag in front.
    static constexpr uint32_t kHeadroom = 16;
    static constexpr uint32_t kLongest = 65536 + 64;
    static constexpr uint32_t kSlot = (kHeadroom + kLongest + 63) & ~63u;

    struct alignas(8) Control {
        uint8_t bytes[CMSG_SPACE(sizeof(tpacket_auxdata))];
    };

    uint8_t* slot(uint32_t index) noexcept { return slots_.get() + size_t{index} * kSlot; }
    bool fill() noexcept;
    std::span<const uint8_t> prepare(uint32_t index) noexcept;
    std::span<const uint8_t> next_segment() noexcept;
    std::span<const uint8_t> finish(uint8_t* frame, uint32_t length) noexcept;
    void look_around() noexcept;
    void refuse(int error) noexcept;

    std::unique_ptr<PacketSocket> socket_;
    PortCounters& counters_;
    bool carrier_;
    bool refusal_logged_ = false;
    uint32_t calls_ = 0;
    int64_t last_look_ = 0;

    // Pages appear as they are touched.
    std::unique_ptr<uint8_t[]> slots_;
    std::array<mmsghdr, kBatch> messages_{};
    std::array<std::array<iovec, 2>, kBatch> parts_{};
    std::array<OffloadHeader, kBatch> headers_{};
    std::array<sockaddr_ll, kBatch> sources_{};
    std::array<Control, kBatch> controls_{};
    uint32_t count_ = 0;
    uint32_t next_ = 0;

    std::span<const uint8_t> front_;  // what receive() has returned
    std::optional<VlanTag> tag_;      // of the frame at next_
    std::optional<LargeFrame> large_;
    uint32_t segment_ = 0;
    std::unique_ptr<uint8_t[]> segment_room_;
};

std::unique_ptr<Wire> open_netdev_wire(const std::string& names, uint32_t device_index,
                                       PortCounters& counters, std::string* error);

}  // namespace softcx
