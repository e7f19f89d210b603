// SPDX-License-Identifier: BSD-3-Clause
// A wire between two capture files: the frames of one arrive, what is sent goes to the
// other. A frame stays in its file until the device can take it, so that none is lost.
#pragma once

#include <memory>
#include <string>

#include "drivers/softcx/model/objects.h"
#include "drivers/softcx/wire/pcap_file.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {

struct PcapPlan {
    std::string in, out;  // either may be empty
    uint64_t loop = 1;    // times that `in` is read; 0: without end

    // Paths for one of several devices: "%d" becomes its number.
    PcapPlan for_device(uint32_t index) const;
};

// "in=FILE,out=FILE,loop=N". False, and why with a remedy.
bool parse_pcap_plan(const std::string& text, uint32_t devices, PcapPlan& plan, std::string* error);

class PcapWire final : public Wire {
  public:
    // Either may be null. `counters` outlives the wire.
    PcapWire(std::unique_ptr<PcapReader> in, std::unique_ptr<PcapWriter> out, PcapPlan plan,
             PortCounters& counters);
    ~PcapWire() override;

    bool send(std::span<const Piece> pieces, uint32_t total) noexcept override;
    std::span<const uint8_t> receive() noexcept override;
    void release() noexcept override { front_ = {}; }
    bool link_up() const noexcept override { return true; }
    bool moves_by_itself() const noexcept override { return in_ != nullptr; }
    bool can_wait() const noexcept override { return true; }
    std::string describe() const override;

  private:
    void read_on() noexcept;
    void end_of_file(bool broken) noexcept;

    std::unique_ptr<PcapReader> in_;  // null when it is used up
    std::unique_ptr<PcapWriter> out_;
    PcapPlan plan_;
    PortCounters& counters_;
    std::span<const uint8_t> front_;
    uint64_t rounds_ = 0;
    uint64_t frames_ = 0;         // read so far
    uint64_t round_records_ = 0;  // of this round
    bool sent_since_poll_ = false;
};

std::unique_ptr<Wire> open_pcap_wire(const std::string& text, uint32_t device_index,
                                     PortCounters& counters, std::string* error);

}  // namespace softcx
