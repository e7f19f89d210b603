// SPDX-License-Identifier: BSD-3-Clause
// rte_vect_get_max_simd_bitwidth is not in the stable interface of DPDK 22.11, and its
// header is not made for C++: it must be first, because others include it.
#ifndef ALLOW_EXPERIMENTAL_API
#define ALLOW_EXPERIMENTAL_API
#endif
extern "C" {
#include <rte_vect.h>
}

#include <rte_cpuflags.h>
#include <rte_ethdev.h>

#include <cerrno>

#include "drivers/net/mlx5raw/tx_mode.h"
#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

// With few queues a core per queue is the bottleneck, and copying costs more than a
// pointer; with many the bus is, and copies spare the device reads.
constexpr uint32_t kQueuesToInline = 8;
constexpr uint32_t kInlinePacketDefault = 128;

constexpr uint64_t kOffloadsPerPacket =
    RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
    RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_VLAN_INSERT;

bool multi_packet(const TxArguments& arguments, const Capabilities& caps, uint32_t inline_header) {
    // A segment of a multi-packet send has no inline header.
    return arguments.multi_packet.value_or(caps.multi_packet && inline_header == 0);
}

uint32_t inline_header_of(const TxArguments& arguments, const Capabilities& caps) {
    return arguments.inline_min.value_or(caps.min_inline);
}

TxPath choose_path(bool multi, bool offloads, bool vector, const TxMode& mode) {
    if (!multi) {
        if (mode.inline_send != 0 || mode.inline_header > kInlineL2) {
            return TxPath::kSendInline;
        }
        if (mode.inline_header != 0) {
            return TxPath::kSendInlineHeader;
        }
        return offloads ? TxPath::kSendOffloads : TxPath::kSend;
    }
    if (mode.inline_packet != 0) {
        return offloads ? TxPath::kMultiPacketInlineOffloads : TxPath::kMultiPacketInline;
    }
    if (vector) {
        return offloads ? TxPath::kMultiPacketAvx2Offloads : TxPath::kMultiPacketAvx2;
    }
    return offloads ? TxPath::kMultiPacketOffloads : TxPath::kMultiPacket;
}

}  // namespace

bool have_avx2() {
    return rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX2) > 0 &&
           rte_vect_get_max_simd_bitwidth() >= RTE_VECT_SIMD_256;
}

const char* tx_path_name(TxPath path) {
    switch (path) {
        case TxPath::kSend:
            return "send";
        case TxPath::kSendOffloads:
            return "send_offloads";
        case TxPath::kSendInlineHeader:
            return "send_inline_header";
        case TxPath::kSendInline:
            return "send_inline";
        case TxPath::kMultiPacket:
            return "multi_packet";
        case TxPath::kMultiPacketOffloads:
            return "multi_packet_offloads";
        case TxPath::kMultiPacketInline:
            return "multi_packet_inline";
        case TxPath::kMultiPacketInlineOffloads:
            return "multi_packet_inline_offloads";
        case TxPath::kMultiPacketAvx2:
            return "multi_packet_avx2";
        case TxPath::kMultiPacketAvx2Offloads:
            return "multi_packet_avx2_offloads";
        case TxPath::kCount:
            break;
    }
    return "none";
}

std::string TxMode::describe() const {
    std::string text = tx_path_name(path);
    const auto add = [&text](const char* what, uint32_t bytes) {
        if (bytes != 0) {
            text += std::string(", ") + what + " " + std::to_string(bytes);
        }
    };
    add("inline header", inline_header);
    add("inline sends up to", inline_send);
    add("inline packets up to", inline_packet);
    return text;
}

Status check_tx_arguments(const TxArguments& arguments, const Capabilities& caps) {
    const uint32_t header = inline_header_of(arguments, caps);
    const bool multi = multi_packet(arguments, caps, header);
    if (header < caps.min_inline) {
        return failure(EINVAL,
                       MLX5RAW_ARG_TXQ_INLINE_MIN
                       "=%u: this device needs %u bytes of each packet "
                       "in the send WQE; leave the argument out",
                       header, caps.min_inline);
    }
    if (arguments.multi_packet.value_or(false) && !caps.multi_packet) {
        return failure(ENOTSUP, MLX5RAW_ARG_TXQ_MPW_EN
                       "=1: this device has no enhanced multi-packet send (ConnectX-5 and later "
                       "have it); leave the argument out");
    }
    if (multi && header != 0) {
        return failure(EINVAL,
                       MLX5RAW_ARG_TXQ_MPW_EN
                       "=1 excludes an inline header of %u bytes (" MLX5RAW_ARG_TXQ_INLINE_MIN
                       ", or what the device needs): packets of a multi-packet send have none; "
                       "give " MLX5RAW_ARG_TXQ_MPW_EN "=0",
                       header);
    }
    if (arguments.inline_mpw.value_or(0) != 0 && !multi) {
        return failure(EINVAL,
                       MLX5RAW_ARG_TXQ_INLINE_MPW
                       "=%u excludes " MLX5RAW_ARG_TXQ_MPW_EN
                       "=0 (given, or because the device needs an inline header or has no "
                       "multi-packet send); use " MLX5RAW_ARG_TXQ_INLINE_MAX,
                       *arguments.inline_mpw);
    }
    const uint32_t inline_max = arguments.inline_max.value_or(0);
    if (inline_max != 0 && inline_max < header) {
        return failure(EINVAL,
                       MLX5RAW_ARG_TXQ_INLINE_MAX "=%u is less than the inline header of %u bytes",
                       inline_max, header);
    }
    if (!arguments.vector.value_or(false)) {
        return {};
    }
    if (!have_avx2()) {
        return failure(ENOTSUP, MLX5RAW_ARG_TX_VEC_EN
                       "=1: the CPU has no AVX2, or --force-max-simd-bitwidth is below 256");
    }
    if (!multi) {
        return failure(EINVAL, MLX5RAW_ARG_TX_VEC_EN "=1 excludes " MLX5RAW_ARG_TXQ_MPW_EN
                                                     "=0 (given, or what the device needs): only "
                                                     "the multi-packet send has a vector path");
    }
    if (arguments.inline_mpw.value_or(0) != 0) {
        return failure(EINVAL, MLX5RAW_ARG_TX_VEC_EN "=1 excludes " MLX5RAW_ARG_TXQ_INLINE_MPW
                                                     ": the vector path writes pointers only");
    }
    return {};
}

TxMode choose_tx_mode(const TxArguments& arguments, const Capabilities& caps, uint64_t offloads,
                      uint32_t queues) {
    TxMode mode;
    mode.inline_header = inline_header_of(arguments, caps);
    mode.max_tso = caps.max_tso;
    mode.vlan_insert = caps.vlan_insert;
    mode.segments = (offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
    const bool multi = multi_packet(arguments, caps, mode.inline_header);
    mode.inline_send = arguments.inline_max.value_or(0);
    if (multi) {
        // A size that was given holds for any number of queues, and so does a vector path.
        const bool many = queues >= arguments.queues_inline.value_or(kQueuesToInline) &&
                          !arguments.vector.value_or(false);
        mode.inline_packet = arguments.inline_mpw.value_or(many ? kInlinePacketDefault : 0);
    }
    const bool vector = arguments.vector.value_or(true) && have_avx2();
    mode.path = choose_path(multi, (offloads & kOffloadsPerPacket) != 0, vector, mode);
    return mode;
}

}  // namespace tagwire::mlx5raw
