// SPDX-License-Identifier: BSD-3-Clause
// A flush: a mark behind everything that was sent to a peer, and done when it is.
#include "lib/rma/remote_memory.h"
#include "lib/tagwire/error.h"

namespace tagwire {

int RemoteMemory::flush(Endpoint& endpoint, tw_addr address, void* context) noexcept {
    std::span<const PeerId> peers = endpoint.peers();
    PeerId peer;
    RmaRequest* request;
    if (address != TW_ADDR_UNSPEC) {
        if (const int error = begin(endpoint, address, 2, &peer, &request); error != 0) {
            return error;
        }
        peers = {&peer, 1};
    } else if (const int error = begin(endpoint, 1 + peers.size(), &request); error != 0) {
        return error;
    }
    describe(*request, context, TW_COMPLETION, TW_FLUSH);
    request->buffer = nullptr;
    request->length = 0;
    endpoint.operation_began();
    request->parts = 1;  // until every mark is set
    for (const PeerId marked : peers) {
        if (marked == transport::kNoPeer) {
            continue;
        }
        RmaRequest& part = part_of(*request);
        part.send.header.kind = transport::MessageKind::kPut;
        part.send.user = &part;
        part.peer = marked;
        if (worker_.transport().mark(marked, part.send) == 1) {
            release(part);
            --request->parts;
        }
    }
    if (--request->parts == 0) {
        complete(*request, 0);
    }
    return 0;
}

}  // namespace tagwire
