// SPDX-License-Identifier: BSD-3-Clause
// What generators and responders say to each other beside the messages themselves, as untagged
// messages: hello and welcome before the first one, bye and report after the last.
#pragma once

#include <tagwire/tagwire.h>

#include <cstddef>
#include <cstdint>

#include "options.h"

namespace tagwire::testpmd {

enum class ControlKind : uint8_t { kHello = 1, kWelcome = 2, kBye = 3, kReport = 4 };

struct Control {
    ControlKind kind{};
    TagMode mode{};           // of the sender
    uint64_t run = 0;         // the generator's
    tw_address sender{};      // hello: where answers and echoes go
    uint64_t largest = 0;     // welcome: the longest message that is taken
    uint64_t messages = 0;    // bye: sent; report: received
    uint64_t bytes = 0;       // of them
    uint64_t digest = 0;      // of them
    uint64_t mismatches = 0;  // report
};

inline constexpr size_t kControlSize = 96;

void encode_control(const Control& control, std::byte* data);
bool decode_control(const std::byte* data, size_t size, Control* control);

}  // namespace tagwire::testpmd
