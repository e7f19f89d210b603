// SPDX-License-Identifier: BSD-3-Clause
// What a message contains: bytes that follow from the run, the tag and the message's number, so
// that either side can tell whether they are right.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tagwire::testpmd {

// Marks what tagecho sends back.
inline constexpr uint64_t kEchoTag = uint64_t{1} << 63;

struct MessageName {
    uint64_t run = 0;       // random, one for each start of a generator
    uint64_t tag = 0;       // without kEchoTag
    uint64_t sequence = 0;  // travels as remote CQ data
};

void fill_content(const MessageName& name, std::byte* data, size_t size);
bool content_is_right(const MessageName& name, const std::byte* data, size_t size);

// The sum over all messages is the same in any order; one that is missing or came twice changes it.
uint64_t message_digest(const MessageName& name, size_t size);

}  // namespace tagwire::testpmd
