// SPDX-License-Identifier: BSD-3-Clause
#include "app/testpmd/options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/perf/failure.h"

namespace tagwire::testpmd {
namespace {

Options parse(std::vector<std::string> arguments) {
    std::vector<char*> argv{const_cast<char*>("tagwire-testpmd")};
    for (std::string& argument : arguments) {
        argv.push_back(argument.data());
    }
    return parse_options(static_cast<int>(argv.size()), argv.data());
}

// What is wrong with the arguments.
std::string refusal(const std::vector<std::string>& arguments) {
    try {
        parse(arguments);
    } catch (const perf::Failure& failure) {
        EXPECT_EQ(failure.exit_code(), perf::ExitCode::kFailure);
        EXPECT_FALSE(failure.remedy().empty()) << failure.what();
        return failure.what();
    }
    ADD_FAILURE() << "taken";
    return "";
}

TEST(Options, HaveTestpmdsNamesAndDefaults) {
    const Options defaults = parse({});
    EXPECT_FALSE(defaults.interactive);
    EXPECT_EQ(defaults.mode.name(), "io");
    EXPECT_EQ(defaults.burst, 32);
    EXPECT_EQ(defaults.rx_queues, 1);
    EXPECT_TRUE(defaults.flush_rx);

    const Options options = parse(
        {"-i", "-a", "--rxq=2", "--txq", "2", "--rxd=512", "--txd=256", "--nb-cores=2",
         "--burst=64", "--total-num-mbufs=4096", "--portmask=0x3", "--port-topology=loop",
         "--forward-mode=mac", "--eth-peer=1,02:00:00:00:00:01", "--eth-peer=0,02:00:00:00:00:02",
         "--no-flush-rx", "--no-mlockall", "--disable-rss", "--max-pkt-len=9018"});
    EXPECT_TRUE(options.interactive);
    EXPECT_TRUE(options.auto_start);
    EXPECT_EQ(options.rx_queues, 2);
    EXPECT_EQ(options.tx_queues, 2);
    EXPECT_EQ(options.rx_descriptors, 512);
    EXPECT_EQ(options.tx_descriptors, 256);
    EXPECT_EQ(options.cores, 2u);
    EXPECT_EQ(options.burst, 64);
    EXPECT_EQ(options.mbufs, 4096u);
    EXPECT_EQ(options.portmask, 3u);
    EXPECT_EQ(options.topology, Topology::kLoop);
    EXPECT_EQ(options.mode.plain, PlainMode::kMac);
    EXPECT_EQ(options.peers.at(1).addr_bytes[5], 1);
    EXPECT_EQ(options.peers.at(0).addr_bytes[5], 2);
    EXPECT_FALSE(options.flush_rx);
    EXPECT_FALSE(options.lock_memory);
    EXPECT_FALSE(options.rss);
    EXPECT_EQ(options.mtu, 9000);
}

TEST(Options, OfTags) {
    const Options options =
        parse({"--forward-mode=taggen,io", "--tag-ip=10.1.0.1:4000", "--tag-peer=10.1.0.2,10.1.0.3",
               "--tag-peer=10.1.0.4:5", "--tag-size=8,1:4", "--tag-count=7", "--tag-window=9",
               "--tag=0x10", "--tags=3", "--tag-pairing=all", "--tag-steering=ring",
               "--tag-max-size=1M", "--tag-portmask=1", "--tag-peer-queues=4"});
    EXPECT_EQ(options.mode.tag, TagMode::kGenerate);
    EXPECT_EQ(options.mode.plain, PlainMode::kIo);
    EXPECT_EQ(options.tag.ip, "10.1.0.1:4000");
    EXPECT_EQ(options.tag.peers, (std::vector<std::string>{"10.1.0.2", "10.1.0.3", "10.1.0.4:5"}));
    EXPECT_EQ(options.tag.sizes, (std::vector<uint64_t>{8, 1, 2, 4}));
    EXPECT_EQ(options.tag.count, 7u);
    EXPECT_EQ(options.tag.window, 9u);
    EXPECT_EQ(options.tag.first_tag, 16u);
    EXPECT_EQ(options.tag.tags, 3u);
    EXPECT_EQ(options.tag.pairing, Pairing::kAll);
    EXPECT_EQ(options.tag.steering, Steering::kRing);
    EXPECT_EQ(options.tag.largest, 1u << 20);
    EXPECT_EQ(options.tag.portmask, 1u);
    EXPECT_EQ(options.tag.peer_queues, 4);
}

TEST(Options, ThatAreWrongNameTheRightOnes) {
    EXPECT_NE(refusal({"--frob"}).find("--frob"), std::string::npos);
    EXPECT_NE(refusal({"--burst=0"}).find("--burst"), std::string::npos);
    EXPECT_NE(refusal({"--forward-mode=none"}).find("Invalid none"), std::string::npos);
    EXPECT_NE(refusal({"--portmask=0xg"}).find("--portmask=0xg"), std::string::npos);
    EXPECT_NE(refusal({"--tag=-1"}).find("--tag=-1"), std::string::npos);
    EXPECT_NE(refusal({"--tag=9223372036854775808"}).find("no tag"), std::string::npos);
    EXPECT_NE(refusal({"--eth-peer=0:02:00:00:00:00:01"}).find("is no peer"), std::string::npos);
    EXPECT_NE(refusal({"--forward-mode=taggen"}).find("nobody to send to"), std::string::npos);
    EXPECT_NE(refusal({"--rxq=3"}).find("as many TX queues"), std::string::npos);
}

TEST(ForwardMode, APlainModeStandsAlone) {
    for (const std::string& name : plain_mode_names()) {
        const ForwardMode mode = parse_forward_mode(name);
        EXPECT_EQ(mode.tag, TagMode::kNone);
        EXPECT_EQ(mode.name(), name);
    }
}

TEST(ForwardMode, ATagModeAloneDropsWhatIsNoMessage) {
    for (const std::string& name : tag_mode_names()) {
        EXPECT_EQ(parse_forward_mode(name).plain, PlainMode::kRxonly);
        EXPECT_EQ(parse_forward_mode(name + ",mac").name(), name + ",mac");
    }
}

TEST(ForwardMode, OtherCombinationsAreRefused) {
    for (const char* text :
         {"", ",", "io,mac", "io,tagecho", "tagecho,", "tagecho,tagsink", "IO"}) {
        EXPECT_THROW(parse_forward_mode(text), perf::Failure) << text;
    }
}

}  // namespace
}  // namespace tagwire::testpmd
