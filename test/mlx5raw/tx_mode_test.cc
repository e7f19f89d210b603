// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/tx_mode.h"

#include <gtest/gtest.h>
#include <rte_ethdev.h>

#include "drivers/net/mlx5raw/devargs.h"

namespace tagwire::mlx5raw {
namespace {

Capabilities connectx5() {
    Capabilities caps;
    caps.multi_packet = true;
    caps.vlan_insert = true;
    caps.max_tso = 262144;
    return caps;
}

Capabilities connectx4() {
    Capabilities caps = connectx5();
    caps.multi_packet = false;
    caps.vlan_insert = false;
    caps.min_inline = 18;
    return caps;
}

struct Choice {
    const char* what;
    Capabilities caps;
    TxArguments arguments;
    uint64_t offloads;
    uint32_t queues;
    TxPath path;
    uint32_t inline_packet;
};

TEST(TxMode, FollowsDeviceArgumentsAndOffloads) {
    constexpr uint64_t kFast = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    const TxArguments none = {.vector = false};
    const Choice kChoices[] = {
        {"default", connectx5(), none, kFast, 1, TxPath::kMultiPacket, 0},
        {"few queues", connectx5(), none, 0, 7, TxPath::kMultiPacket, 0},
        {"many queues", connectx5(), none, 0, 8, TxPath::kMultiPacketInline, 128},
        {"many, but not inline",
         connectx5(),
         {.inline_mpw = 0, .vector = false},
         0,
         8,
         TxPath::kMultiPacket,
         0},
        {"inline asked for", connectx5(), {.inline_mpw = 60}, 0, 1, TxPath::kMultiPacketInline, 60},
        {"queues asked for",
         connectx5(),
         {.queues_inline = 2, .vector = false},
         0,
         2,
         TxPath::kMultiPacketInline,
         128},
        {"not multi", connectx5(), {.multi_packet = false}, kFast, 16, TxPath::kSend, 0},
        {"older card", connectx4(), none, 0, 16, TxPath::kSendInlineHeader, 0},
        {"longer header", connectx5(), {.inline_min = 58}, 0, 1, TxPath::kSendInline, 0},
        {"whole packets",
         connectx5(),
         {.multi_packet = false, .inline_max = 200},
         0,
         1,
         TxPath::kSendInline,
         0},
    };
    for (const Choice& choice : kChoices) {
        ASSERT_TRUE(check_tx_arguments(choice.arguments, choice.caps).ok()) << choice.what;
        const TxMode mode =
            choose_tx_mode(choice.arguments, choice.caps, choice.offloads, choice.queues);
        EXPECT_STREQ(tx_path_name(mode.path), tx_path_name(choice.path)) << choice.what;
        EXPECT_EQ(mode.inline_packet, choice.inline_packet) << choice.what;
    }
}

TEST(TxMode, EachOffloadPerPacketTakesTheFullPath) {
    for (const uint64_t offload : {RTE_ETH_TX_OFFLOAD_MULTI_SEGS, RTE_ETH_TX_OFFLOAD_IPV4_CKSUM,
                                   RTE_ETH_TX_OFFLOAD_UDP_CKSUM, RTE_ETH_TX_OFFLOAD_TCP_CKSUM,
                                   RTE_ETH_TX_OFFLOAD_TCP_TSO, RTE_ETH_TX_OFFLOAD_VLAN_INSERT}) {
        EXPECT_EQ(choose_tx_mode({.vector = false}, connectx5(), offload, 1).path,
                  TxPath::kMultiPacketOffloads);
        EXPECT_EQ(choose_tx_mode({.multi_packet = false}, connectx5(), offload, 1).path,
                  TxPath::kSendOffloads);
    }
}

struct Refused {
    Capabilities caps;
    TxArguments arguments;
    const char* names;  // in the message
};

TEST(TxMode, ArgumentsThatExcludeEachOtherAreRefused) {
    const Refused kRefused[] = {
        {connectx4(), {.inline_min = 0}, "txq_inline_min=0"},
        {connectx4(), {.multi_packet = true}, "txq_mpw_en=1: this device has no"},
        {connectx5(), {.multi_packet = true, .inline_min = 18}, "txq_mpw_en=1 excludes"},
        {connectx5(), {.multi_packet = false, .inline_mpw = 100}, "txq_inline_mpw=100 excludes"},
        {connectx4(), {.inline_mpw = 100}, "txq_inline_mpw=100 excludes"},
        {connectx5(), {.inline_min = 58, .inline_max = 40}, "txq_inline_max=40"},
        // The test program has no EAL, so no vectors.
        {connectx5(), {.vector = true}, "tx_vec_en=1: the CPU has no AVX2, or"},
    };
    for (const Refused& refused : kRefused) {
        const Status status = check_tx_arguments(refused.arguments, refused.caps);
        EXPECT_LT(status.code, 0) << refused.names;
        EXPECT_NE(status.message.find(refused.names), std::string::npos) << status.message;
    }
}

TEST(TxMode, SaysWhatItInlines) {
    EXPECT_EQ(choose_tx_mode({.multi_packet = false, .inline_min = 58, .inline_max = 200},
                             connectx5(), 0, 1)
                  .describe(),
              "send_inline, inline header 58, inline sends up to 200");
    EXPECT_EQ(choose_tx_mode({.inline_mpw = 64}, connectx5(), 0, 1).describe(),
              "multi_packet_inline, inline packets up to 64");
}

TEST(TxArguments, AreParsed) {
    Devargs arguments;
    ASSERT_TRUE(parse_devargs("txq_mpw_en=0,txq_inline_min=58,txq_inline_max=300,"
                              "txqs_min_inline=3,tx_vec_en=0,txq_inline_mpw=972",
                              arguments)
                    .ok());
    EXPECT_EQ(arguments.tx.multi_packet, false);
    EXPECT_EQ(arguments.tx.inline_min, 58u);
    EXPECT_EQ(arguments.tx.inline_max, 300u);
    EXPECT_EQ(arguments.tx.inline_mpw, 972u);
    EXPECT_EQ(arguments.tx.queues_inline, 3u);
    EXPECT_EQ(arguments.tx.vector, false);
}

TEST(TxArguments, OutOfRangeAreRefusedByName) {
    for (const char* text : {"txq_mpw_en=2", "tx_vec_en=7", "txq_inline_min=17",
                             "txq_inline_min=129", "txq_inline_max=13", "txq_inline_max=973",
                             "txq_inline_mpw=973", "txqs_min_inline=65536"}) {
        Devargs arguments;
        const Status status = parse_devargs(text, arguments);
        EXPECT_EQ(status.code, -EINVAL) << text;
        EXPECT_NE(status.message.find(text), std::string::npos) << status.message;
    }
}

}  // namespace
}  // namespace tagwire::mlx5raw
