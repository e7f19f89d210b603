// SPDX-License-Identifier: BSD-3-Clause
// What the port's cable is plugged into.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace softcx {

struct PortCounters;

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

    // True when a frame that the device can't take yet stays where it is, instead of being
    // lost as on a cable. It is returned again by the next receive().
    virtual bool can_wait() const noexcept { return false; }

    virtual bool link_up() const noexcept = 0;
    // True when frames arrive, or leave, without a device of this process being run for it.
    virtual bool moves_by_itself() const noexcept { return true; }

    // True when link_up() may change while the wire is open, which is a port event then.
    virtual bool follows_carrier() const noexcept { return false; }
    virtual std::string describe() const = 0;  // for the tables that people read
};

// "pair": devices 2k and 2k+1 of this process are connected back to back.
// "switch:NAME": a port of the learning switch NAME in shared memory.
// "loopback": what is sent comes back.
// "netdev:NAME,NAME...": device k is on the k-th of these network devices of the kernel.
// "pcap:in=FILE,out=FILE,loop=N": capture files (wire/pcap_wire.h).
// nullptr and a text in `error` for a bad specification. `counters` takes what the wire
// loses, and outlives it.
std::unique_ptr<Wire> open_wire(const std::string& specification, uint32_t device_index,
                                PortCounters& counters, std::string* error);

// The same for wires between devices ("pair", "switch", "loopback"), which have nothing to count.
std::unique_ptr<Wire> open_wire(const std::string& specification, uint32_t device_index,
                                std::string* error);

// What is wrong with a specification for so many devices, with a remedy; empty: nothing.
// Whether it can be opened is not looked at.
std::string check_wire(const std::string& specification, uint32_t devices);

// How many devices a specification speaks of; 0: as many as there are.
uint32_t devices_of_wire(const std::string& specification);

}  // namespace softcx
