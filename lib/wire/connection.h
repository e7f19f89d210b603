// SPDX-License-Identifier: BSD-3-Clause
// Messages of connection management (doc/protocol.md, 8). The tag of their header says which
// it is, the data is the connection's id, the payload belongs to the application.
#pragma once

#include <cstdint>

namespace tagwire::wire {

enum class ConnectionMessage : uint8_t {
    kRequest = 1,   // to a listening endpoint
    kAccept = 2,    // from the endpoint that is the other side from now on
    kReject = 3,    // from the listening endpoint
    kShutdown = 4,  // nothing follows
    kPing = 5,      // is the other side still there?
};
inline constexpr uint32_t kMaxConnectionParam = 256;

// False when a header of that kind makes no sense.
constexpr bool decode_connection(uint64_t tag, bool has_data, uint64_t length,
                                 ConnectionMessage* message) noexcept {
    if (tag < static_cast<uint64_t>(ConnectionMessage::kRequest) ||
        tag > static_cast<uint64_t>(ConnectionMessage::kPing) || !has_data) {
        return false;
    }
    *message = static_cast<ConnectionMessage>(tag);
    const bool has_param = *message <= ConnectionMessage::kReject;
    return length <= (has_param ? kMaxConnectionParam : 0);
}

}  // namespace tagwire::wire
