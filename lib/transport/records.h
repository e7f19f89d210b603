// SPDX-License-Identifier: BSD-3-Clause
// The records of a frame: whole small messages, one behind the other.
#pragma once

#include "lib/transport/transport.h"
#include "lib/wire/packet.h"

namespace tagwire::transport {

// The header of the record at `at`, which was validated; returns where its payload begins.
inline const uint8_t* read_record(const uint8_t* at, MessageHeader& header) noexcept {
    const uint16_t bits = *reinterpret_cast<const wire::be16*>(at);
    header.length = bits & wire::kRecordLengthMask;
    header.data = 0;
    header.flags = 0;
    if ((bits & (wire::kRecordTagged | wire::kRecordHasData)) == wire::kRecordTagged) [[likely]] {
        header.kind = MessageKind::kTagged;
        header.tag = *reinterpret_cast<const wire::be64*>(at + 2);
        return at + 10;
    }
    at += 2;
    header.kind = MessageKind::kUntagged;
    header.tag = 0;
    if ((bits & wire::kRecordTagged) != 0) {
        header.kind = MessageKind::kTagged;
        header.tag = *reinterpret_cast<const wire::be64*>(at);
        at += 8;
    }
    if ((bits & wire::kRecordHasData) != 0) {
        header.flags = kHasData;
        header.data = *reinterpret_cast<const wire::be64*>(at);
        at += 8;
    }
    return at;
}

// A record as most are: tagged, without data.
class TaggedRecord {
  public:
    explicit TaggedRecord(const uint8_t* at)
        : at_(at), bits_(*reinterpret_cast<const wire::be16*>(at)) {}

    // The rest is for such ones alone.
    bool usual() const noexcept {
        return (bits_ & (wire::kRecordTagged | wire::kRecordHasData)) == wire::kRecordTagged;
    }
    uint32_t length() const noexcept { return bits_ & wire::kRecordLengthMask; }
    uint64_t tag() const noexcept { return *reinterpret_cast<const wire::be64*>(at_ + 2); }
    const uint8_t* payload() const noexcept { return at_ + 10; }

  private:
    const uint8_t* at_;
    uint16_t bits_;
};

}  // namespace tagwire::transport
