// SPDX-License-Identifier: BSD-3-Clause
// A device between two capture files: nothing is lost, however slow the receiver is.
#include <unistd.h>

#include <algorithm>

#include "drivers/softcx/wire/pcap_file.h"
#include "test/softcx/engine/packets.h"
#include "test/softcx/engine/rig.h"

namespace softcx::test {
namespace {

class EnginePcap : public ::testing::Test {
  protected:
    static constexpr uint32_t kBuffer = 2048, kBuffers = 4;

    ~EnginePcap() override {
        ::unlink(in.c_str());
        ::unlink(out.c_str());
    }

    void write_input(size_t frames) {
        const auto writer = PcapWriter::create(in, &error);
        for (size_t i = 0; i < frames; ++i) {
            const Bytes frame = numbered(i);
            const Wire::Piece piece{frame.data(), static_cast<uint32_t>(frame.size())};
            ASSERT_EQ(writer->write({&piece, 1}, piece.length), 0u);
        }
    }

    static Bytes numbered(size_t number) {
        return make_packet({.src_port = static_cast<uint16_t>(number), .payload = pattern(100)});
    }

    void plug(const std::string& more = "") {
        rig.device.port.wire =
            open_wire("pcap:in=" + in + ",out=" + out + more, 0, rig.device.port.counters, &error);
        ASSERT_NE(rig.device.port.wire, nullptr) << error;
    }

    void post(uint32_t number) {
        wq->post({{mr->start + uint64_t{number} * kBuffer, kBuffer, mr->lkey}});
    }

    const std::string base = ::testing::TempDir() + "softcx-engine-" + std::to_string(::getpid());
    const std::string in = base + "-in.pcap", out = base + "-out.pcap";
    std::string error;
    Rig rig;
    Bytes memory = Bytes(kBuffer * kBuffers);
    MemoryRegion* mr = rig.make_mr(memory.data(), memory.size());
    std::unique_ptr<ClientCq> cq = rig.make_cq();
    std::unique_ptr<ClientWq> wq = rig.make_wq(*cq, kBuffers);
};

TEST_F(EnginePcap, FramesWaitForAReceiverAndForItsBuffers) {
    constexpr size_t kFrames = 100;
    write_input(kFrames);
    plug();
    post(0);
    rig.step();
    EXPECT_EQ(rig.counters().rx_packets, 0u) << "no rule yet";
    wq->wq->state = WqState::kReset;
    QueuePair* qp = rig.make_rss_qp({wq->wq});
    rig.make_flow(qp);
    rig.step();
    EXPECT_EQ(rig.counters().rx_packets, 0u) << "the ring is in RESET";
    wq->wq->state = WqState::kReady;
    size_t received = 0;
    for (int turn = 0; turn < 400 && received < kFrames; ++turn) {
        rig.step();
        while (const auto cqe = cq->poll()) {
            const Bytes expected = numbered(received);
            const uint8_t* got = memory.data() + (received % 2) * kBuffer;
            ASSERT_EQ(cqe->byte_cnt.get(), expected.size());
            ASSERT_TRUE(std::equal(expected.begin(), expected.end(), got)) << received;
            ++received;
            if (turn % 3 == 0)
                continue;  // a receiver that is late
            post(received % 2);
        }
        if (wq->head == received)
            post(received % 2);
    }
    EXPECT_EQ(received, kFrames);
    EXPECT_EQ(rig.counters().rx_packets, kFrames);
    EXPECT_EQ(
        rig.counters().out_of_buffer + rig.counters().rx_wq_not_ready + rig.counters().rx_no_flow,
        0u);
}

TEST_F(EnginePcap, AFrameThatNobodyWantsDoesNotHoldUpTheOthers) {
    write_input(5);
    plug();
    QueuePair* qp = rig.make_rss_qp({wq->wq});
    Flow* flow = rig.make_flow(qp, FlowType::kNormal);
    flow->match.has_udp = true;
    flow->match.l4_src = 3;
    flow->match.l4_src_mask = 0xffff;
    rig.changed();
    post(0);
    rig.step();
    EXPECT_EQ(rig.counters().rx_no_flow, 4u);
    EXPECT_TRUE(cq->poll().has_value());
}

TEST_F(EnginePcap, AFileCanBeReadSeveralTimes) {
    write_input(3);
    plug(",loop=3");
    rig.make_flow(nullptr, FlowType::kAllDefault)->drop = true;
    rig.step();
    EXPECT_EQ(rig.counters().rx_packets, 9u);
}

TEST_F(EnginePcap, WhatIsSentIsInTheOtherFile) {
    write_input(0);
    plug();
    const auto sq = rig.make_sender(*cq);
    Bytes frame = numbered(7);
    const MemoryRegion* region = rig.make_mr(frame.data(), frame.size());
    sq->post({.segments = {{region->start, static_cast<uint32_t>(frame.size()), region->lkey}}});
    rig.step();
    rig.step();  // and a pause
    const auto reader = PcapReader::open(out, &error);
    ASSERT_NE(reader, nullptr) << error;
    ASSERT_EQ(reader->next(), PcapReader::Record::kFrame);
    EXPECT_EQ(Bytes(reader->frame().begin(), reader->frame().end()), frame);
    EXPECT_EQ(reader->next(), PcapReader::Record::kEnd);
}

TEST_F(EnginePcap, RecordsThatAreCutAreCounted) {
    write_input(2);
    ASSERT_EQ(::truncate(in.c_str(), 24 + 16 + static_cast<off_t>(numbered(0).size()) + 20), 0);
    plug();
    rig.make_flow(nullptr, FlowType::kAllDefault)->drop = true;
    rig.step();
    EXPECT_EQ(rig.counters().rx_packets, 1u);
    EXPECT_EQ(rig.counters().wire_rx_truncated, 1u);
}

TEST_F(EnginePcap, OneFileCannotBeBoth) {
    write_input(1);
    EXPECT_EQ(open_wire("pcap:in=" + in + ",out=" + in, 0, rig.device.port.counters, &error),
              nullptr);
    EXPECT_NE(error.find("is the file that is read, too"), std::string::npos) << error;
    EXPECT_NE(PcapReader::open(in, &error)->next(), PcapReader::Record::kEnd) << "it is unharmed";
}

TEST(CheckWire, PcapSpecifications) {
    EXPECT_EQ(check_wire("pcap:in=a", 1), "");
    EXPECT_EQ(check_wire("pcap:in=a,out=b", 1), "");
    EXPECT_EQ(check_wire("pcap:out=b%d", 2), "");
    EXPECT_EQ(check_wire("pcap:in=a,loop=0", 1), "");
    EXPECT_NE(check_wire("pcap:in=a,out=b", 2).find("put %d into its name"), std::string::npos);
    for (const char* bad : {"pcap:", "pcap:in=", "pcap:a", "pcap:in=a,in=b", "pcap:out=b,loop=2",
                            "pcap:in=a,loop=x", "pcap:in=a,"})
        EXPECT_NE(check_wire(bad, 1).find("use files"), std::string::npos) << bad;
}

}  // namespace
}  // namespace softcx::test
