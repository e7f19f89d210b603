// SPDX-License-Identifier: BSD-3-Clause
#include "lib/transport/message.h"

namespace tagwire::transport {

const MessageHeader& header_of(const IncomingMessage& message) noexcept {
    return message.header;
}
PeerId peer_of(const IncomingMessage& message) noexcept {
    return message.peer;
}
void*& user_of(IncomingMessage& message) noexcept {
    return message.user;
}
bool is_complete(const IncomingMessage& message) noexcept {
    return message.complete();
}

}  // namespace tagwire::transport
