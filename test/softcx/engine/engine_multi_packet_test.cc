// SPDX-License-Identifier: BSD-3-Clause
// Enhanced multi-packet send: several frames in one WQE, one CQE for all of them.
#include <gtest/gtest.h>

#include "drivers/softcx/engine/state.h"
#include "test/softcx/engine/send_fixture.h"

namespace softcx::test {
namespace {

class EngineMultiPacket : public SendFixture {
  protected:
    // A WQE that is put together segment by segment.
    struct Builder {
        Bytes bytes = Bytes(sizeof(ControlSegment) + sizeof(EthernetSegment));

        EthernetSegment& ethernet() {
            return *reinterpret_cast<EthernetSegment*>(bytes.data() + sizeof(ControlSegment));
        }
        Builder& pointer(const Segment& segment) {
            DataSegment data{};
            data.byte_count.set(segment.length);
            data.lkey.set(segment.lkey);
            data.address.set(segment.address);
            const auto* raw = reinterpret_cast<const uint8_t*>(&data);
            bytes.insert(bytes.end(), raw, raw + sizeof(data));
            return *this;
        }
        Builder& inlined(const Bytes& frame) {
            uint8_t header[4];
            store_be32(header, kInlineData | static_cast<uint32_t>(frame.size()));
            bytes.insert(bytes.end(), header, header + sizeof(header));
            bytes.insert(bytes.end(), frame.begin(), frame.end());
            while (bytes.size() % 16 != 0) {
                bytes.push_back(0);
            }
            return *this;
        }
    };

    uint16_t post(Builder& wqe) {
        ControlSegment control{};
        control.opmod_idx_opcode.set(uint32_t{sq->producer} << 8 |
                                     static_cast<uint8_t>(WqeOpcode::kMultiPacket));
        control.qpn_ds.set(sq->qp->qpn << 8 | static_cast<uint32_t>(wqe.bytes.size() / kOctoword));
        control.fm_ce_se = static_cast<uint8_t>(static_cast<uint8_t>(CompletionMode::kAlways) << 2);
        std::memcpy(wqe.bytes.data(), &control, sizeof(control));
        for (size_t at = 0; at < wqe.bytes.size(); at += kOctoword)
            std::memcpy(sq->block(static_cast<uint16_t>(sq->producer + at / kBasicBlock)) +
                            at % kBasicBlock,
                        wqe.bytes.data() + at, kOctoword);
        const uint16_t index = sq->producer;
        sq->producer = static_cast<uint16_t>(sq->producer +
                                             (wqe.bytes.size() + kBasicBlock - 1) / kBasicBlock);
        sq->ring_doorbell();
        return index;
    }

    void expect_failure(Builder& wqe, Syndrome syndrome) {
        const uint16_t index = post(wqe);
        rig.step();
        const std::optional<Cqe> cqe = cq->poll();
        ASSERT_TRUE(cqe.has_value());
        EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kRequesterError);
        EXPECT_EQ(syndrome_of(*cqe), syndrome);
        EXPECT_EQ(cqe->wqe_counter.get(), index);
        EXPECT_EQ(cqe->sop_drop_qpn.get() >> 24, 0x29u);
        EXPECT_EQ(sq->qp->state, QpState::kError);
        EXPECT_TRUE(receive().empty());
    }

    bool was_reported(ClientCheck check) {
        return rig.device.engine->reported[static_cast<size_t>(check)];
    }
};

TEST_F(EngineMultiPacket, EachSegmentIsAFrameAndOneCqeIsForAll) {
    Builder wqe;
    wqe.pointer(segment(0, 64)).inlined(pattern(70, 9)).pointer(segment(100, 1500));
    const uint16_t index = post(wqe);

    EXPECT_EQ(rig.step(), 3u);

    EXPECT_EQ(receive(), Bytes(memory.begin(), memory.begin() + 64));
    EXPECT_EQ(receive(), pattern(70, 9));
    EXPECT_EQ(receive(), Bytes(memory.begin() + 100, memory.begin() + 1600));
    EXPECT_TRUE(receive().empty());
    const std::optional<Cqe> cqe = cq->poll();
    ASSERT_TRUE(cqe.has_value());
    EXPECT_EQ(opcode_of(*cqe), CqeOpcode::kRequester);
    EXPECT_EQ(cqe->wqe_counter.get(), index);
    EXPECT_EQ(cqe->byte_cnt.get(), 64u + 70 + 1500);
    EXPECT_EQ(cqe->sop_drop_qpn.get() >> 24, 0x29u);
    EXPECT_FALSE(cq->poll().has_value());
    EXPECT_EQ(rig.counters().tx_packets, 3u);
}

TEST_F(EngineMultiPacket, TheLongestWqeWrapsAroundTheRing) {
    for (int round = 0; round < 20; ++round) {
        Builder wqe;
        for (uint32_t i = 0; i < kMaxOctowords - 2; ++i)
            wqe.pointer(segment(i * 10, 60 + i));
        post(wqe);
        rig.step();
        for (uint32_t i = 0; i < kMaxOctowords - 2; ++i)
            ASSERT_EQ(receive(), Bytes(memory.begin() + i * 10, memory.begin() + i * 11 + 60));
        ASSERT_EQ(opcode_of(*cq->poll()), CqeOpcode::kRequester);
        Builder one;  // the next round starts at another place
        one.pointer(segment(0, 60));
        post(one);
        rig.step();
        ASSERT_EQ(receive().size(), 60u);
        cq->poll();
    }
}

TEST_F(EngineMultiPacket, ChecksumFlagsHoldForEachFrame) {
    Bytes first = make_packet({});
    Bytes second = make_packet({.payload = pattern(99)});
    for (Bytes* frame : {&first, &second})
        (*frame)[24] = (*frame)[25] = 0;  // IPv4 header checksum
    Builder wqe;
    wqe.ethernet().checksum_flags = kEthL3Checksum | kEthL4Checksum;
    wqe.inlined(first).inlined(second);
    post(wqe);
    rig.step();
    for (int i = 0; i < 2; ++i) {
        const Bytes frame = receive();
        EXPECT_TRUE(has_good_ipv4_checksum(frame));
        EXPECT_TRUE(has_good_l4_checksum(frame));
    }
}

TEST_F(EngineMultiPacket, ShortFramesArePadded) {
    Builder wqe;
    wqe.inlined(pattern(20)).inlined(pattern(30, 2));
    post(wqe);
    rig.step();
    EXPECT_EQ(receive().size(), 60u);
    EXPECT_EQ(receive().size(), 60u);
}

TEST_F(EngineMultiPacket, NoFrameAtAll) {
    Builder wqe;
    expect_failure(wqe, Syndrome::kLocalQpOperation);
    EXPECT_TRUE(was_reported(ClientCheck::kWqeSegment));
}

TEST_F(EngineMultiPacket, AnInlineHeader) {
    Builder wqe;
    wqe.ethernet().inline_header_size.set(2);
    wqe.pointer(segment(0, 64));
    expect_failure(wqe, Syndrome::kLocalQpOperation);
    EXPECT_TRUE(was_reported(ClientCheck::kWqeSegment));
}

TEST_F(EngineMultiPacket, InlineDataPastTheWqe) {
    Builder wqe;
    wqe.pointer(segment(0, 64)).inlined(pattern(64));
    store_be32(wqe.bytes.data() + 48, kInlineData | 100);
    expect_failure(wqe, Syndrome::kLocalQpOperation);
    EXPECT_TRUE(was_reported(ClientCheck::kWqeSegment));
}

TEST_F(EngineMultiPacket, OneFrameOutsideItsRegionFailsTheWqe) {
    Builder wqe;
    wqe.pointer(segment(0, 64)).pointer(segment(memory.size() - 63, 64));
    expect_failure(wqe, Syndrome::kLocalProtection);
}

TEST_F(EngineMultiPacket, FramesTooShort) {
    Builder wqe;
    wqe.pointer(segment(0, 64)).pointer(segment(0, 13));
    expect_failure(wqe, Syndrome::kLocalLength);
}

TEST_F(EngineMultiPacket, AnEmptyInlineFrame) {
    Builder wqe;
    wqe.inlined({});
    expect_failure(wqe, Syndrome::kLocalLength);
}

TEST_F(EngineMultiPacket, AFrameTooLong) {
    Builder wqe;
    wqe.pointer(segment(0, kMaxFrame + 1));
    expect_failure(wqe, Syndrome::kLocalLength);
}

TEST_F(EngineMultiPacket, TheFormOfOlderCards) {
    const uint16_t index =
        sq->post({.opcode = WqeOpcode::kTso, .mss = 64, .segments = {segment(0, 64)}});
    reinterpret_cast<ControlSegment*>(sq->block(index))
        ->opmod_idx_opcode.set(1u << 24 | uint32_t{index} << 8 | 0x0e);
    rig.step();
    EXPECT_EQ(syndrome_of(*cq->poll()), Syndrome::kLocalQpOperation);
    EXPECT_TRUE(was_reported(ClientCheck::kWqeOpcode));
}

}  // namespace
}  // namespace softcx::test
