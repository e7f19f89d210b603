// SPDX-License-Identifier: BSD-3-Clause
// Striding receive queues: packets that leave in the buffer that they came in.
#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/rx_paths.h"

namespace tagwire::mlx5raw {
namespace {

class Striding : public PortPair {
  protected:
    void open_striding(const std::string& arguments = "", uint16_t descriptors = 256) {
        open({.devargs = "mprq_en=1" + arguments, .queues = 1, .descriptors = descriptors});
    }

    std::vector<rte_mbuf*> receive_all(const std::vector<Frame>& frames) {
        std::vector<rte_mbuf*> packets;
        for (const Frame& frame : frames) {
            send(ports[0], 0, frame);
            settle();
            rte_mbuf* packet = nullptr;
            if (rte_eth_rx_burst(ports[1], 0, &packet, 1) == 1) {
                packets.push_back(packet);
            }
        }
        return packets;
    }

    static Frame bytes_of(const rte_mbuf* packet) {
        const auto* const data = rte_pktmbuf_mtod(packet, const uint8_t*);
        return Frame(data, data + packet->data_len);
    }
};

TEST_F(Striding, ShortPacketsAreCopiedAndLongOnesLeaveInPlace) {
    open_striding(",mprq_max_memcpy_len=200");
    const std::vector<Frame> frames = {ethernet_frame(60), ethernet_frame(200), ethernet_frame(201),
                                       ethernet_frame(1514)};
    const std::vector<rte_mbuf*> packets = receive_all(frames);
    ASSERT_EQ(packets.size(), frames.size());
    for (size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(bytes_of(packets[i]), frames[i]);
        EXPECT_EQ(RTE_MBUF_HAS_EXTBUF(packets[i]) != 0, frames[i].size() > 200) << i;
        rte_pktmbuf_free(packets[i]);
    }
}

TEST_F(Striding, TheRoomAroundAPacketIsItsOwn) {
    open_striding(",mprq_max_memcpy_len=0");
    std::vector<Frame> frames;
    for (size_t i = 0; i < 200; ++i) {
        frames.push_back(ethernet_frame(60 + 7 * i));
    }
    const std::vector<rte_mbuf*> packets = receive_all(frames);
    ASSERT_EQ(packets.size(), frames.size());
    for (rte_mbuf* packet : packets) {
        ASSERT_NE(RTE_MBUF_HAS_EXTBUF(packet), 0u);
        ASSERT_EQ(rte_pktmbuf_headroom(packet), RTE_PKTMBUF_HEADROOM);
        memset(rte_pktmbuf_mtod_offset(packet, uint8_t*, -RTE_PKTMBUF_HEADROOM), 0xee,
               RTE_PKTMBUF_HEADROOM);
        memset(rte_pktmbuf_mtod_offset(packet, uint8_t*, packet->data_len), 0xee,
               rte_pktmbuf_tailroom(packet));
    }
    for (size_t i = 0; i < frames.size(); ++i) {
        EXPECT_EQ(bytes_of(packets[i]), frames[i]) << i;
        rte_pktmbuf_free(packets[i]);
    }
}

TEST_F(Striding, PacketsThatAreKeptTurnTheOthersIntoCopies) {
    open_striding(",mprq_max_memcpy_len=0", 128);
    const Frame frame = ethernet_frame(1000);
    std::vector<rte_mbuf*> kept;
    for (int i = 0; i < 1000; ++i) {
        for (rte_mbuf* packet : receive_all({frame})) {
            kept.push_back(packet);
        }
    }
    // None was lost, but the buffers of the queue are all in packets.
    ASSERT_EQ(kept.size(), 1000u);
    EXPECT_GT(xstats_of(ports[1])["rx_q0_stride_buffer_shortages"], 0u);
    EXPECT_EQ(RTE_MBUF_HAS_EXTBUF(kept.back()), 0u);
    for (rte_mbuf* packet : kept) {
        ASSERT_EQ(bytes_of(packet), frame);
        rte_pktmbuf_free(packet);
    }
    for (int i = 0; i < 200; ++i) {
        kept = receive_all({frame});
        ASSERT_EQ(kept.size(), 1u);
        rte_pktmbuf_free(kept[0]);
    }
    kept = receive_all({frame});
    EXPECT_NE(RTE_MBUF_HAS_EXTBUF(kept.at(0)), 0u);
    rte_pktmbuf_free(kept[0]);
}

TEST_F(Striding, PacketsOutliveTheirQueue) {
    open_striding(",mprq_max_memcpy_len=0");
    const Frame frame = ethernet_frame(700);
    const std::vector<rte_mbuf*> packets = receive_all({frame, frame});
    ASSERT_EQ(packets.size(), 2u);
    close();
    for (rte_mbuf* packet : packets) {
        EXPECT_EQ(bytes_of(packet), frame);
        rte_pktmbuf_free(packet);
    }
    // The memory goes when the next queue of that kind comes.
    open_striding();
    const std::vector<rte_mbuf*> more = receive_all({frame});
    ASSERT_EQ(more.size(), 1u);
    rte_pktmbuf_free(more[0]);
}

TEST_F(Striding, PacketsAreForwardedInPlace) {
    open_striding(",mprq_max_memcpy_len=0");
    Frame frame = ethernet_frame_to(mac_of(ports[0]), 900);
    for (int i = 0; i < 300; ++i) {
        const std::vector<rte_mbuf*> packets = receive_all({ethernet_frame(900)});
        ASSERT_EQ(packets.size(), 1u);
        memcpy(rte_pktmbuf_mtod(packets[0], void*), frame.data(), 12);
        send(ports[1], 0, packets);
        settle();
        const std::vector<Received> back = receive(ports[0]);
        ASSERT_EQ(back.size(), 1u);
    }
}

TEST_F(Striding, AnErrorInTheMiddleOfABufferLeavesItsPacketsAlone) {
    open_striding(",mprq_max_memcpy_len=0");
    const Frame frame = ethernet_frame(800);
    for (int i = 0; i < 30; ++i) {
        const std::vector<rte_mbuf*> before = receive_all({frame, frame, frame});
        ASSERT_EQ(before.size(), 3u);
        ASSERT_EQ(softcx_inject_wq_error(
                      "mlx5_1", rx_queue(&rte_eth_devices[ports[1]], 0)->wq()->wq_num, 0x04),
                  0);
        EXPECT_TRUE(receive_all({frame}).empty());
        const std::vector<rte_mbuf*> after = receive_all({ethernet_frame(600)});
        ASSERT_EQ(after.size(), 1u);
        for (rte_mbuf* packet : before) {
            EXPECT_EQ(bytes_of(packet), frame);
            rte_pktmbuf_free(packet);
        }
        rte_pktmbuf_free(after[0]);
    }
}

TEST_F(Striding, JumboFramesAreRefused) {
    open({.devargs = "mprq_en=1",
          .mtu = 9000,
          .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER,
          .start = false});
    EXPECT_EQ(rte_eth_dev_start(ports[0]), -EINVAL);
}

}  // namespace
}  // namespace tagwire::mlx5raw
