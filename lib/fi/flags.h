// SPDX-License-Identifier: BSD-3-Clause
// libfabric's flags and the core's: the same meaning, other bits.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <tagwire/types.h>

#include <array>
#include <bit>
#include <cstdint>

namespace tagwire::fi {

// What libfabric 1.17's headers lack; 0 there: nobody can ask for it.
#ifdef FI_AV_AUTH_KEY
inline constexpr uint64_t kAuthKey = FI_AUTH_KEY;
inline constexpr size_t kKeysOfVector = FI_AV_AUTH_KEY;  // an auth_key_size
#else
inline constexpr uint64_t kAuthKey = 0;
inline constexpr size_t kKeysOfVector = 0;
#endif
#ifdef FI_TAGGED_MULTI_RECV
inline constexpr uint64_t kTaggedMultiReceive = FI_TAGGED_MULTI_RECV;
inline constexpr uint64_t kTaggedDirectedReceive = FI_TAGGED_DIRECTED_RECV;
#else
inline constexpr uint64_t kTaggedMultiReceive = 0;
inline constexpr uint64_t kTaggedDirectedReceive = 0;
#endif

// FI_MR_BASIC and FI_MR_SCALABLE, which compilers warn of in newer headers.
inline constexpr int kBasicMemory = 1 << 0;
inline constexpr int kScalableMemory = 1 << 1;

constexpr uint64_t move_bit(uint64_t value, uint64_t from, uint64_t to) {
    const int distance = std::countr_zero(from) - std::countr_zero(to);
    const uint64_t bit = value & from;
    return distance >= 0 ? bit >> distance : bit << -distance;
}

// FI_COMMIT_COMPLETE is not among them: there is no persistent memory to speak of.
inline constexpr uint64_t kSendCallFlags = FI_COMPLETION | FI_MORE | FI_REMOTE_CQ_DATA | FI_INJECT |
                                           FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
                                           FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE;

inline uint64_t send_flags(uint64_t flags) {
    if ((flags & ~(FI_COMPLETION | FI_REMOTE_CQ_DATA)) == 0) [[likely]] {
        return move_bit(flags, FI_COMPLETION, TW_COMPLETION) |
               move_bit(flags, FI_REMOTE_CQ_DATA, TW_REMOTE_CQ_DATA);
    }
    uint64_t level = flags & (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                              FI_MATCH_COMPLETE);
    // Several are allowed there; the strongest one promises them all.
    level = level == 0 ? 0 : std::bit_floor(level);
    return move_bit(flags, FI_COMPLETION, TW_COMPLETION) | move_bit(flags, FI_MORE, TW_MORE) |
           move_bit(flags, FI_REMOTE_CQ_DATA, TW_REMOTE_CQ_DATA) |
           move_bit(flags, FI_INJECT, TW_INJECT) | move_bit(flags, FI_FENCE, TW_FENCE) |
           move_bit(level, FI_INJECT_COMPLETE, TW_INJECT_COMPLETE) |
           move_bit(level, FI_TRANSMIT_COMPLETE, TW_TRANSMIT_COMPLETE) |
           move_bit(level, FI_DELIVERY_COMPLETE, TW_DELIVERY_COMPLETE) |
           move_bit(level, FI_MATCH_COMPLETE, TW_MATCH_COMPLETE);
}

inline constexpr uint64_t kReceiveCallFlags = FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_PEEK |
                                              FI_CLAIM | FI_DISCARD | FI_REMOTE_CQ_DATA | kAuthKey;

inline uint64_t receive_flags(uint64_t flags) {
    return move_bit(flags, FI_COMPLETION, TW_COMPLETION) | move_bit(flags, FI_MORE, TW_MORE) |
           move_bit(flags, FI_MULTI_RECV, TW_MULTI_RECV) | move_bit(flags, FI_PEEK, TW_PEEK) |
           move_bit(flags, FI_CLAIM, TW_CLAIM) | move_bit(flags, FI_DISCARD, TW_DISCARD) |
           (kAuthKey != 0 ? move_bit(flags, kAuthKey, TW_AUTH_KEY) : 0);
}

constexpr uint64_t completion_flags_of(uint64_t low) {
    return move_bit(low, TW_SEND, FI_SEND) | move_bit(low, TW_RECV, FI_RECV) |
           move_bit(low, TW_TAGGED, FI_TAGGED) |
           move_bit(low, TW_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA) | move_bit(low, TW_MSG, FI_MSG) |
           move_bit(low, TW_RMA, FI_RMA) | move_bit(low, TW_ATOMIC, FI_ATOMIC) |
           move_bit(low, TW_READ, FI_READ) | move_bit(low, TW_WRITE, FI_WRITE) |
           move_bit(low, TW_REMOTE_READ, FI_REMOTE_READ) |
           move_bit(low, TW_REMOTE_WRITE, FI_REMOTE_WRITE);
}

inline constexpr auto kCompletionFlags = [] {
    std::array<uint64_t, 2048> table{};
    for (uint64_t low = 0; low < table.size(); ++low) {
        table[low] = completion_flags_of(low);
    }
    return table;
}();

// Of a completion of the core.
inline uint64_t completion_flags(uint64_t flags) {
    return kCompletionFlags[flags & 2047] | move_bit(flags, TW_MULTI_RECV, FI_MULTI_RECV);
}

// The kinds of operation that an object is bound for.
inline uint64_t bind_flags(uint64_t flags) {
    return move_bit(flags, FI_SEND, TW_SEND) | move_bit(flags, FI_RECV, TW_RECV) |
           move_bit(flags, FI_READ, TW_READ) | move_bit(flags, FI_WRITE, TW_WRITE) |
           move_bit(flags, FI_REMOTE_READ, TW_REMOTE_READ) |
           move_bit(flags, FI_REMOTE_WRITE, TW_REMOTE_WRITE);
}

}  // namespace tagwire::fi
