// SPDX-License-Identifier: BSD-3-Clause
// Sessions that wait for something, each at most once.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/transport/transport.h"

namespace tagwire::transport {

class PeerList {
  public:
    explicit PeerList(uint32_t peers) : peers_(new PeerId[peers]) {}

    bool empty() const noexcept { return count_ == 0; }
    void push(PeerId peer) noexcept { peers_[count_++] = peer; }

    // Keeps those of which `visit` says yes. It may push others, which stay.
    template <typename Visit>
    [[gnu::always_inline]] void keep_if(Visit visit) noexcept {
        const uint32_t before = count_;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < before; ++i) {
            const PeerId peer = peers_[i];
            if (visit(peer)) {
                peers_[kept++] = peer;
            }
        }
        if (kept == before) {
            return;
        }
        for (uint32_t i = before; i < count_; ++i)
            [[unlikely]] {
                peers_[kept++] = peers_[i];
            }
        count_ = kept;
    }

  private:
    uint32_t count_ = 0;
    std::unique_ptr<PeerId[]> peers_;
};

}  // namespace tagwire::transport
