// SPDX-License-Identifier: BSD-3-Clause
// A region closes: nothing under way touches its memory afterwards. An endpoint closes:
// what waits for it is refused.
#include <cstdlib>
#include <utility>

#include "lib/rma/remote_memory.h"
#include "lib/tagwire/error.h"
#include "lib/transport/scatter.h"

namespace tagwire {

using transport::IncomingMessage;

uint64_t RemoteMemory::new_key() {
    uint64_t key;
    do {
        key = uint64_t{random_()} << 32 | random_();
    } while (regions_.find(key) != nullptr);
    return key;
}

// A reply that is read from the region, and may have to be sent again, gets a copy.
bool RemoteMemory::rescue(Reply& reply) noexcept {
    const uint64_t length = reply.send.header.length;
    reply.rescued = static_cast<uint8_t*>(std::malloc(length));
    if (reply.rescued == nullptr) {
        return false;
    }
    transport::gather(reply.send.iov, 0, reply.rescued, static_cast<uint32_t>(length));
    return true;
}

int RemoteMemory::close(Region& region) noexcept {
    for (Reply* reply = region.replies; reply != nullptr; reply = reply->next) {
        if (!rescue(*reply)) {
            for (Reply* done = region.replies; done != reply; done = done->next) {
                std::free(std::exchange(done->rescued, nullptr));
            }
            return refuse(ENOMEM,
                          "tw_mr_close: no memory for what gets under way still have to send: call "
                          "tw_progress and try again");
        }
    }
    regions_.erase(region);
    while (region.replies != nullptr) {
        Reply& reply = *region.replies;
        unlink(reply);
        reply.region = nullptr;
        reply.send.iov[0] = {reply.rescued, reply.send.header.length};
        reply.send.iov_count = 1;
    }
    while (region.placements != nullptr) {
        Placement& placement = *region.placements;
        unlink(placement);
        placement.region = nullptr;
        IncomingMessage& message = *placement.message;
        const bool has_data = (transport::header_of(message).flags & transport::kHasData) != 0;
        const PeerId peer = transport::peer_of(message);
        if (!worker_.transport().revoke(message, ENOKEY)) {
            continue;  // placed already: its event is on the way
        }
        ++counters_.refused_closed;
        if (has_data) {
            placement.endpoint->receive_queue().unreserve();
        }
        placements_.release(&placement);
        one_ended(peer);
    }
    return 0;
}

void RemoteMemory::closing(Endpoint& endpoint) noexcept {
    for (PeerId peer = 0; peer < queues_.size(); ++peer) {
        PeerQueue& queue = queues_[peer];
        if (queue.first == nullptr || worker_.endpoint_of(peer) != &endpoint) {
            continue;
        }
        while (queue.first != nullptr) {
            IncomingMessage& message = *queue.first;
            queue.first = static_cast<IncomingMessage*>(transport::user_of(message));
            worker_.transport().refuse(message, ECANCELED);
        }
    }
}

}  // namespace tagwire
