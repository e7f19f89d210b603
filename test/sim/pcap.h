// SPDX-License-Identifier: BSD-3-Clause
// TAGWIRE_SIM_PCAP=FILE: every frame that enters the simulated networks of a process, in virtual
// time, for tshark -X lua_script:scripts/wireshark/tagwire.lua -r FILE.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace sim {

class Pcap {
  public:
    Pcap() {
        static bool begun = false;  // the simulators of a process follow each other in one file
        if (const char* path = std::getenv("TAGWIRE_SIM_PCAP")) {
            file_ = std::fopen(path, begun ? "ab" : "wb");
        }
        if (file_ != nullptr && !std::exchange(begun, true)) {
            // The classic format with nanoseconds; link type 1 is Ethernet.
            const uint32_t header[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
            std::fwrite(header, sizeof(header), 1, file_);
        }
    }
    ~Pcap() {
        if (file_ != nullptr) {
            std::fclose(file_);
        }
    }
    Pcap(const Pcap&) = delete;
    Pcap& operator=(const Pcap&) = delete;

    void write(uint64_t now_ns, const std::vector<uint8_t>& frame) {
        if (file_ == nullptr) {
            return;
        }
        const auto size = static_cast<uint32_t>(frame.size());
        const uint32_t header[] = {static_cast<uint32_t>(now_ns / 1'000'000'000),
                                   static_cast<uint32_t>(now_ns % 1'000'000'000), size, size};
        std::fwrite(header, sizeof(header), 1, file_);
        std::fwrite(frame.data(), size, 1, file_);
    }

  private:
    std::FILE* file_ = nullptr;
};

}  // namespace sim
