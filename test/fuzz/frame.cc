// SPDX-License-Identifier: BSD-3-Clause
// One frame of arbitrary bytes through the parser, the flow match, RSS, both checksum
// directions and reception. Nothing outside the frame is read, and a checksum that the
// device wrote is one that it accepts.
#include <memory>

#include "drivers/softcx/engine/flow_table.h"
#include "drivers/softcx/engine/parse.h"
#include "drivers/softcx/engine/toeplitz.h"
#include "drivers/softcx/wire/frame_ring.h"
#include "test/fuzz/input.h"
#include "test/softcx/engine/rig.h"

namespace softcx::fuzz {
namespace {

using test::Rig;

struct Setup {
    uint64_t fields;
    uint8_t key[40];
    uint8_t headers;  // that the flow matches
    uint8_t options;
};
constexpr uint8_t kStrip = 1, kFcs = 2, kSniffer = 4;

void check_bounds(const ParsedFrame& frame) {
    require(frame.l3_offset <= frame.length && frame.l3_end <= frame.length,
            "the IP packet lies in the frame");
    if (frame.l4 != CqeL4::kNone)
        require(frame.l4_offset >= frame.l3_offset && frame.l4_offset + 8 <= frame.l3_end,
                "the L4 header lies in the IP packet");
}

void check_checksums(const ParsedFrame& frame, const std::vector<uint8_t>& original) {
    validate_checksums(frame);
    std::vector<uint8_t> copy = original;
    const auto length = static_cast<uint32_t>(copy.size());
    generate_checksums(parse_frame(copy.data(), length), copy.data(),
                       kEthL3Checksum | kEthL4Checksum);
    const ParsedFrame again = parse_frame(copy.data(), length);
    const FrameChecksums checksums = validate_checksums(again);
    if (again.l3 == CqeL3::kIpv4)
        require(checksums.l3_ok, "the IP checksum that the device made is good");
    if (again.l4 != CqeL4::kNone)
        require(checksums.l4_ok, "the L4 checksum that the device made is good");
}

FlowMatch make_match(Input& input, uint8_t headers) {
    FlowMatch match = input.take<FlowMatch>();
    match.has_ethernet = (headers & 1) != 0;
    match.has_vlan = (headers & 2) != 0;
    match.has_ipv4 = (headers & 4) != 0;
    match.has_ipv6 = (headers & 8) != 0 && !match.has_ipv4;
    match.has_tcp = (headers & 16) != 0;
    match.has_udp = (headers & 32) != 0 && !match.has_tcp;
    return match;
}

void receive(const Setup& setup, const FlowMatch& match, const std::vector<uint8_t>& bytes) {
    Rig rig{0, "pair"};
    std::string error;
    const std::unique_ptr<Wire> far = open_wire("pair", 1, &error);
    const auto cq = rig.make_cq(4);
    const auto wq = rig.make_wq(*cq, 4);
    wq->wq->vlan_strip = (setup.options & kStrip) != 0;
    wq->wq->scatter_fcs = (setup.options & kFcs) != 0;
    std::vector<uint8_t> memory(4 * 16384);
    const MemoryRegion* mr = rig.make_mr(memory.data(), memory.size());
    for (uint64_t i = 0; i < 4; ++i)
        wq->post({{mr->start + i * 16384, 16384, mr->lkey}});
    QueuePair* qp = rig.make_rss_qp({wq->wq, wq->wq}, setup.fields & 0xff,
                                    {setup.key, setup.key + sizeof(setup.key)});
    rig.make_flow(qp, FlowType::kNormal)->match = match;
    rig.make_flow(qp);
    if ((setup.options & kSniffer) != 0)
        rig.make_flow(qp, FlowType::kSniffer);
    const Wire::Piece piece{bytes.data(), static_cast<uint32_t>(bytes.size())};
    far->send({&piece, 1}, piece.length);
    rig.step();
    while (const auto cqe = cq->poll()) {
        require(test::opcode_of(*cqe) == CqeOpcode::kResponderSend, "the frame is received");
        const bool stripped = (cqe->l4_l3_hdr_type & kCqeVlanStripped) != 0;
        const size_t expected = bytes.size() - (stripped ? 4 : 0) + (wq->wq->scatter_fcs ? 4 : 0);
        require(cqe->byte_cnt.get() == expected, "the CQE has the length of what is in memory");
    }
}

}  // namespace

void run(Input& input) {
    const auto setup = input.take<Setup>();
    const FlowMatch match = make_match(input, setup.headers);
    const std::vector<uint8_t> bytes = input.take_bytes(kMaxFrame);
    if (bytes.size() >= kEthernetHeader) {
        const ParsedFrame frame = parse_frame(bytes.data(), static_cast<uint32_t>(bytes.size()));
        check_bounds(frame);
        check_checksums(frame, bytes);
        matches_headers(match, frame);
        hash_frame(Toeplitz(setup.key), setup.fields, frame);
    }
    if (!bytes.empty())
        receive(setup, match, bytes);
}

}  // namespace softcx::fuzz
