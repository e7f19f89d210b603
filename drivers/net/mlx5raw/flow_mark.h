// SPDX-License-Identifier: BSD-3-Clause
// rte_flow MARK and FLAG between the rule, which carries a verbs flow tag, and the
// mbuf: the completion of a packet has the tag of the rule that took it (24 bits,
// zero without one).
#pragma once

#include <rte_mbuf.h>

#include <cstdint>

namespace tagwire::mlx5raw {

inline constexpr uint32_t kFlowTagMask = 0xffffff;
inline constexpr uint32_t kFlowTagOfFlag = 0xffffff;  // FLAG has no number
inline constexpr uint32_t kMaxFlowMark = 0xfffffd;    // the largest id of MARK

// Tag zero says "no rule", so a mark travels as its id plus one.
constexpr uint32_t flow_tag_of_mark(uint32_t id) {
    return id + 1;
}
static_assert(flow_tag_of_mark(kMaxFlowMark) < kFlowTagOfFlag);

// `tag` as the completion has it, in host order. Adds to ol_flags, which must be set.
inline void set_flow_mark(rte_mbuf& mbuf, uint32_t tag) {
    tag &= kFlowTagMask;
    if (tag == 0) {
        return;
    }
    mbuf.ol_flags |= RTE_MBUF_F_RX_FDIR;
    if (tag != kFlowTagOfFlag) {
        mbuf.ol_flags |= RTE_MBUF_F_RX_FDIR_ID;
        mbuf.hash.fdir.hi = tag - 1;  // beside hash.rss, not over it
    }
}
static_assert(offsetof(rte_mbuf, hash.fdir.hi) == offsetof(rte_mbuf, hash.rss) + 4);

}  // namespace tagwire::mlx5raw
