// SPDX-License-Identifier: BSD-3-Clause
// The counters in sysfs, read as a program reads them.
#include <dirent.h>

#include <fstream>
#include <set>
#include <string>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Counters : public Verbs {
  protected:
    static std::string folder() { return "/sys/class/infiniband/mlx5_0/ports/1/"; }

    static uint64_t read(const std::string& name) {
        std::ifstream file(folder() + name);
        uint64_t value = ~uint64_t{0};
        file >> value;
        return value;
    }

    static std::string line(const std::string& name) {
        std::ifstream file(folder() + name);
        std::string text;
        std::getline(file, text);
        return text;
    }

    static std::set<std::string> names(const std::string& name) {
        std::set<std::string> found;
        DIR* opened = opendir((folder() + name).c_str());
        while (const dirent* entry = opened != nullptr ? readdir(opened) : nullptr)
            if (entry->d_name[0] != '.')
                found.insert(entry->d_name);
        if (opened != nullptr)
            closedir(opened);
        return found;
    }

    // Sends broadcasts into the loopback wire.
    void send(int count) {
        std::vector<uint8_t> frame = broadcast_frame(64);
        const Owned<ibv_mr> mr = register_memory(pd_.get(), frame);
        const Owned<ibv_qp> qp = make_raw_qp(cq_.get());
        ready_to_send(qp.get());
        for (int i = 0; i < count; ++i)
            ASSERT_EQ(post_send(qp.get(), frame, mr->lkey), 0);
        run_device();
        ASSERT_EQ(completions(cq_.get()).size(), static_cast<size_t>(count));
    }
};

TEST_F(Counters, TheFoldersHaveTheFilesOfACard) {
    const std::set<std::string> hardware = names("hw_counters");
    for (const char* name : {"out_of_buffer", "out_of_sequence", "resp_cqe_error", "np_cnp_sent",
                             "rx_write_requests", "lifespan"})
        EXPECT_EQ(hardware.count(name), 1u) << name;
    const std::set<std::string> port = names("counters");
    for (const char* name : {"port_rcv_packets", "port_rcv_data", "port_xmit_packets",
                             "port_xmit_data", "port_xmit_discards", "symbol_error"})
        EXPECT_EQ(port.count(name), 1u) << name;
}

TEST_F(Counters, EveryFileHoldsANumber) {
    for (const std::string folder : {"hw_counters/", "counters/"})
        for (const std::string& name : names(folder))
            EXPECT_NE(read(folder + name), ~uint64_t{0}) << folder << name;
}

TEST_F(Counters, PortCountersFollowTheTraffic) {
    const uint64_t sent = read("counters/port_xmit_packets");
    const uint64_t words = read("counters/port_xmit_data");
    const uint64_t received = read("counters/multicast_rcv_packets");
    const uint64_t unicast = read("counters/unicast_rcv_packets");
    send(3);
    EXPECT_EQ(read("counters/port_xmit_packets"), sent + 3);
    EXPECT_EQ(read("counters/port_xmit_data"), words + 3 * 64 / 4);
    EXPECT_EQ(read("counters/multicast_rcv_packets"), received + 3);
    EXPECT_EQ(read("counters/unicast_rcv_packets"), unicast);
}

TEST_F(Counters, AFrameWithoutABufferIsCounted) {
    const uint64_t before = read("hw_counters/out_of_buffer");
    const Owned<ibv_wq> wq = make_wq();
    const Owned<ibv_rwq_ind_table> table = make_table({wq.get()});
    const Owned<ibv_qp> rss = make_rss_qp(table.get());
    const Owned<ibv_flow> flow = take_all(rss.get());
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
    send(2);
    EXPECT_EQ(read("hw_counters/out_of_buffer"), before + 2);
}

TEST_F(Counters, AFailedReceiveCountsAsAResponderError) {
    const uint64_t errors = read("hw_counters/resp_cqe_error");
    const uint64_t flushed = read("hw_counters/resp_cqe_flush_error");
    const uint64_t sends = read("hw_counters/req_cqe_error");
    const Owned<ibv_wq> wq = make_wq();
    const Owned<ibv_rwq_ind_table> table = make_table({wq.get()});
    const Owned<ibv_qp> rss = make_rss_qp(table.get());
    const Owned<ibv_flow> flow = take_all(rss.get());
    std::vector<uint8_t> memory(64);
    const Owned<ibv_mr> mr = register_memory(pd_.get(), memory);
    ASSERT_EQ(move(wq.get(), IBV_WQS_RDY), 0);
    ASSERT_EQ(post_receive(wq.get(), memory, mr->lkey + 0x100), 0);
    ASSERT_EQ(post_receive(wq.get(), memory, mr->lkey), 0);
    const std::vector<uint8_t> frame = broadcast_frame();
    std::vector<uint8_t> sent = frame;
    const Owned<ibv_mr> source = register_memory(pd_.get(), sent);
    const Owned<ibv_cq> send_cq(ibv_create_cq(context_.get(), 15, nullptr, nullptr, 0));
    const Owned<ibv_qp> qp = make_raw_qp(send_cq.get());
    ready_to_send(qp.get());
    ASSERT_EQ(post_send(qp.get(), sent, source->lkey), 0);
    run_device();
    EXPECT_EQ(read("hw_counters/resp_cqe_error"), errors + 2);
    EXPECT_EQ(read("hw_counters/resp_cqe_flush_error"), flushed + 1);
    EXPECT_EQ(read("hw_counters/req_cqe_error"), sends);
}

TEST_F(Counters, TheStateFilesFollowTheLink) {
    EXPECT_EQ(line("state"), "4: ACTIVE");
    const uint64_t downed = read("counters/link_downed");
    const uint64_t lost = read("hw_counters/tx_no_link");
    ASSERT_EQ(softcx_set_link("mlx5_0", 0), 0);
    EXPECT_EQ(line("state"), "1: DOWN");
    EXPECT_EQ(line("phys_state"), "3: Disabled");
    EXPECT_EQ(read("counters/link_downed"), downed + 1);
    send(1);
    EXPECT_EQ(read("hw_counters/tx_no_link"), lost + 1);
    ASSERT_EQ(softcx_set_link("mlx5_0", 1), 0);
    EXPECT_EQ(line("state"), "4: ACTIVE");
}

}  // namespace
}  // namespace softcx::test
