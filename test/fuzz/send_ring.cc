// SPDX-License-Identifier: BSD-3-Clause
// A send ring with arbitrary bytes and doorbells. Whatever they say, the device reads
// only rings and regions, consumes what was announced, and tells of each failure.
#include <algorithm>
#include <memory>

#include "drivers/softcx/wire/frame_ring.h"
#include "test/fuzz/input.h"
#include "test/softcx/engine/rig.h"

namespace softcx::fuzz {
namespace {

using test::ClientCq;
using test::ClientSq;
using test::Rig;

constexpr uint64_t kIova = 0x1000;
constexpr uint32_t kRegion = 1024;  // a large send of all segments stays quick

struct Setup {
    uint8_t log_blocks;
    uint8_t log_entries;
    uint8_t options;
    uint8_t mac_end;  // the same as in the frames: loopback inside the card
};
constexpr uint8_t kRepairHeaders = 1, kSniffer = 2, kSignalAll = 4, kWideCqe = 8, kPoll = 16;

// Counters and QP numbers as a driver sets them, so that the fuzzer gets behind these
// checks; the rest of the WQEs is as it came.
void repair_headers(ClientSq& sq) {
    const uint32_t blocks = sq.qp->sq.wqe_count;
    for (uint32_t at = 0; at < blocks;) {
        ControlSegment control;
        uint8_t* to = sq.ring.data() + size_t{at} * kBasicBlock;
        std::memcpy(&control, to, sizeof(control));
        control.opmod_idx_opcode.set((control.opmod_idx_opcode.get() & 0xff0000ff) | at << 8);
        control.qpn_ds.set(sq.qp->qpn << 8 | control.octowords());
        std::memcpy(to, &control, sizeof(control));
        at += std::max<uint32_t>(1, (control.octowords() + 3) / 4);
    }
}

void drain(ClientCq& cq, const ClientSq& sq) {
    while (const auto cqe = cq.poll()) {
        const CqeOpcode opcode = test::opcode_of(*cqe);
        require(opcode == CqeOpcode::kRequester || opcode == CqeOpcode::kRequesterError,
                "a send ring completes as a requester");
        require((cqe->sop_drop_qpn.get() & 0xffffff) == sq.qp->qpn, "the CQE names its QP");
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
    const auto sq = rig.make_sender(*cq, 1u << setup.log_blocks % 7);
    sq->qp->sq.signal_all = (setup.options & kSignalAll) != 0;
    std::vector<uint8_t> memory(kRegion, 0xa5);
    rig.make_mr(memory.data(), memory.size())->iova = kIova;
    rig.device.port.mac[5] = setup.mac_end;
    const auto receive_cq = rig.make_cq(4);
    const auto wq = rig.make_wq(*receive_cq);
    if ((setup.options & kSniffer) != 0)
        rig.make_flow(rig.make_rss_qp({wq->wq}), FlowType::kSniffer);

    const auto first = input.take<uint16_t>();
    const auto second = input.take<uint16_t>();
    const std::vector<uint8_t> bytes = input.take_bytes(sq->ring.size());
    std::copy(bytes.begin(), bytes.end(), sq->ring.begin());
    if ((setup.options & kRepairHeaders) != 0)
        repair_headers(*sq);

    for (const uint16_t announced : {first, second}) {
        sq->producer = announced;
        sq->ring_doorbell();
        for (int turn = 0; turn < 128; ++turn)
            rig.step(64);
        require(sq->qp->sq.consumer_index == announced, "what was announced is consumed");
        if ((setup.options & kPoll) != 0)
            drain(*cq, *sq);
    }
    const PortCounters& counters = rig.counters();
    if (sq->qp->state != QpState::kRts)
        require(counters.client_errors + counters.local_length_errors +
                        counters.local_protection_errors + counters.local_qp_errors +
                        counters.cq_overrun !=
                    0,
                "a QP that failed has a reason");
    for (std::span<const uint8_t> frame = far->receive(); !frame.empty(); frame = far->receive()) {
        require(frame.size() >= 60 && frame.size() <= kMaxFrame, "a frame has a frame's length");
        far->release();
    }
}

}  // namespace softcx::fuzz
