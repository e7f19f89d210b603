// SPDX-License-Identifier: BSD-3-Clause
// A receive ring with arbitrary WQEs, doorbells and geometry, and frames that arrive.
// The device writes only into regions that the client may write, and gives back or
// flushes what was posted.
#include <algorithm>
#include <memory>

#include "drivers/softcx/wire/frame_ring.h"
#include "test/fuzz/input.h"
#include "test/softcx/engine/rig.h"

namespace softcx::fuzz {
namespace {

using test::Rig;

constexpr uint64_t kWritable = 0x1000, kReadOnly = 0x2000;
constexpr uint32_t kRegion = 2048;
constexpr uint32_t kFrames = 24;

struct Setup {
    uint8_t log_count;
    uint8_t log_segments;
    uint8_t log_entries;
    uint8_t log_stride_bytes;
    uint8_t log_strides;
    uint8_t compression;
    uint16_t options;
};
constexpr uint16_t kStriding = 1, kShift = 2, kStrip = 4, kFcs = 8, kSignature = 16;
constexpr uint16_t kOwnRing = 32, kWideCqe = 64, kPoll = 128, kReset = 256;

void shape(WorkQueue& wq, const Setup& setup) {
    // What create_wq grants (model/capabilities.h).
    wq.striding = (setup.options & kStriding) != 0;
    wq.log_stride_bytes = static_cast<uint8_t>(6 + setup.log_stride_bytes % 8);
    wq.log_strides = static_cast<uint8_t>(3 + setup.log_strides % 14);
    wq.two_byte_shift = (setup.options & kShift) != 0;
    wq.vlan_strip = (setup.options & kStrip) != 0;
    wq.scatter_fcs = (setup.options & kFcs) != 0;
    wq.wqe_has_signature = (setup.options & kSignature) != 0;
}

void arrive(Wire& far, Input& input) {
    for (uint32_t i = 0; i < kFrames && input.left() != 0; ++i) {
        const uint16_t length = input.take<uint16_t>();
        std::vector<uint8_t> frame = input.take_bytes(32);
        frame.resize(std::max<size_t>(length % (kMaxFrame + 1), 1));
        const Wire::Piece piece{frame.data(), static_cast<uint32_t>(frame.size())};
        far.send({&piece, 1}, piece.length);
    }
}

}  // namespace

void run(Input& input) {
    const auto setup = input.take<Setup>();
    Rig rig{0, "pair"};
    std::string error;
    const std::unique_ptr<Wire> far = open_wire("pair", 1, &error);
    const auto cq =
        rig.make_cq(1u << setup.log_entries % 7, (setup.options & kWideCqe) != 0 ? 128 : 64);
    cq->cq->compression = (setup.options & kWideCqe) != 0 ? 0 : uint8_t(setup.compression & 7);
    if ((cq->cq->compression & (cq->cq->compression - 1)) != 0)
        cq->cq->compression = 0;
    // A WQE has room for the leading segments that its shape asks for.
    const auto wq = rig.make_wq(*cq, 1u << setup.log_count % 6, 4u << setup.log_segments % 4);
    shape(*wq->wq, setup);
    std::vector<uint8_t> writable(kRegion), read_only(kRegion, 0x5a);
    rig.make_mr(writable.data(), writable.size())->iova = kWritable;
    rig.make_mr(read_only.data(), read_only.size(), 0)->iova = kReadOnly;
    WorkQueue& ring = *wq->wq;
    QueuePair* qp =
        (setup.options & kOwnRing) != 0 ? rig.make_receiver(*wq) : rig.make_rss_qp({wq->wq});
    rig.make_flow(qp);

    const auto posted = input.take<uint16_t>();
    const std::vector<uint8_t> bytes = input.take_bytes(wq->ring.size());
    std::copy(bytes.begin(), bytes.end(), wq->ring.begin());
    __atomic_store_n(&wq->doorbell[0], big_endian(uint32_t{posted}), __ATOMIC_RELEASE);
    arrive(*far, input);
    for (int turn = 0; turn < 4; ++turn) {
        rig.step(16);
        if ((setup.options & kPoll) != 0)
            while (cq->poll())
                ;
    }
    if (ring.state == WqState::kError) {
        require(ring.consumer_index == posted, "a ring in ERR has flushed what was posted");
        const PortCounters& counters = rig.counters();
        require(counters.client_errors + counters.local_length_errors +
                        counters.local_protection_errors + counters.cq_overrun !=
                    0,
                "a ring that failed has a reason");
    }
    require(std::all_of(read_only.begin(), read_only.end(), [](uint8_t b) { return b == 0x5a; }),
            "a region without LOCAL_WRITE is not written");
    if ((setup.options & kReset) != 0) {
        ring.state = WqState::kReset;
        engine_reset(ring);
        rig.changed();
        ring.state = WqState::kReady;
        arrive(*far, input);
        rig.step();
    }
}

}  // namespace softcx::fuzz
