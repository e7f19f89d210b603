// SPDX-License-Identifier: BSD-3-Clause
// What the port's cable is plugged into.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace softcx {

class Wire {
  public:
    virtual ~Wire() = default;

    // Sends one frame given in pieces (no FCS). False: no room now, the frame was
    // dropped by the wire.
    struct Piece {
        const uint8_t* data;
        uint32_t length;
    };
    virtual bool send(std::span<const Piece> pieces, uint32_t total) noexcept = 0;

    // The next received frame in place, or an empty span. It stays valid until
    // release().
    virtual std::span<const uint8_t> receive() noexcept = 0;
    virtual void release() noexcept = 0;

    virtual bool link_up() const noexcept = 0;
    virtual std::string describe() const = 0;  // for the tables that people read
};

// "pair": devices 2k and 2k+1 of this process are connected back to back.
// "switch:NAME": a port of the learning switch NAME in shared memory.
// "loopback": what is sent comes back.
// nullptr and a text in `error` for a bad specification.
std::unique_ptr<Wire> open_wire(const std::string& specification, uint32_t device_index,
                                std::string* error);

}  // namespace softcx
