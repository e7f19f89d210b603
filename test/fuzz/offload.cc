// SPDX-License-Identifier: BSD-3-Clause
// What a packet socket hands over, with arbitrary meta data: checksum to finish, tag to put
// in, large frame to cut.
#include "drivers/softcx/engine/parse.h"
#include "drivers/softcx/wire/frame_ring.h"
#include "drivers/softcx/wire/netdev_frame.h"
#include "test/fuzz/input.h"

namespace softcx::fuzz {
namespace {

void cut(const std::vector<uint8_t>& frame, const OffloadHeader& header) {
    const auto plan = plan_segments(frame.data(), static_cast<uint32_t>(frame.size()), header);
    if (!plan.has_value())
        return;
    require(plan->header <= plan->total && plan->total <= frame.size(),
            "the plan lies in the frame");
    uint32_t payload = 0;
    for (uint32_t i = 0; i < plan->segments(); ++i) {
        std::vector<uint8_t> segment(std::max<size_t>(64, plan->header + plan->mss));
        const uint32_t length =
            make_segment(*plan, i, kEthL3Checksum | kEthL4Checksum, segment.data());
        require(length >= plan->header && length <= segment.size(), "a segment has its room");
        payload += length - plan->header;
    }
    require(payload == plan->total - plan->header, "the segments have the whole payload");
}

}  // namespace

void run(Input& input) {
    const auto header = input.take<OffloadHeader>();
    const auto tag = input.take<VlanTag>();
    std::vector<uint8_t> frame = input.take_bytes(65536);
    cut(frame, header);
    finish_checksum(frame.data(), static_cast<uint32_t>(frame.size()), header.checksum_start,
                    header.checksum_offset);
    if (frame.size() >= 12) {
        std::vector<uint8_t> room(4);
        room.insert(room.end(), frame.begin(), frame.end());
        insert_tag(room.data() + 4, static_cast<uint32_t>(frame.size()), tag);
    }
}

}  // namespace softcx::fuzz
