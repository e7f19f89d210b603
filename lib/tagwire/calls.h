// SPDX-License-Identifier: BSD-3-Clause
// The flags that calls take, checked; shared by tagged and untagged calls.
#pragma once

#include <bit>

#include "lib/tagwire/error.h"
#include "tagwire/types.h"

namespace tagwire {

inline constexpr uint64_t kCompletionLevels =
    TW_INJECT_COMPLETE | TW_TRANSMIT_COMPLETE | TW_DELIVERY_COMPLETE | TW_MATCH_COMPLETE;
inline constexpr uint64_t kSendFlags =
    TW_COMPLETION | TW_MORE | TW_REMOTE_CQ_DATA | TW_INJECT | TW_FENCE | kCompletionLevels;
inline constexpr uint64_t kReceiveFlags = TW_COMPLETION | TW_MORE | TW_MULTI_RECV | TW_AUTH_KEY;
inline constexpr uint64_t kTaggedReceiveFlags = kReceiveFlags | TW_PEEK | TW_CLAIM | TW_DISCARD;

inline bool one_level_at_most(uint64_t flags) {
    return std::popcount(flags & kCompletionLevels) <= 1;
}

inline int check_send_flags(uint64_t flags) {
    if ((flags & ~kSendFlags) != 0) {
        return refuse(EINVAL,
                      "a send takes TW_COMPLETION, TW_MORE, TW_REMOTE_CQ_DATA, TW_INJECT, TW_FENCE "
                      "and a completion level");
    }
    if (!one_level_at_most(flags)) {
        return refuse(EINVAL, "a send takes one completion level at most");
    }
    return 0;
}

}  // namespace tagwire
