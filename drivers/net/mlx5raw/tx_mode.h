// SPDX-License-Identifier: BSD-3-Clause
// How a port sends: decided when it starts, from the configured offloads, the device
// and the user's arguments.
#pragma once

#include <cstdint>
#include <string>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/tx_arguments.h"

namespace tagwire::mlx5raw {

// Which burst function runs. Each has its xstat: tx_path_NAME.
enum class TxPath : uint8_t {
    kSend,                 // a WQE per packet
    kSendOffloads,         // ... any offload
    kSendInlineHeader,     // ... any offload, the Ethernet header in the WQE
    kSendInline,           // ... any offload, longer headers or whole packets in the WQE
    kMultiPacket,          // several packets in a WQE
    kMultiPacketOffloads,  // ... any offload
    kMultiPacketInline,    // ... short ones copied
    kMultiPacketInlineOffloads,
    kMultiPacketAvx2,
    kMultiPacketAvx2Offloads,
    kCount,
};

inline constexpr unsigned kTxPaths = static_cast<unsigned>(TxPath::kCount);

const char* tx_path_name(TxPath path);

struct TxMode {
    TxPath path = TxPath::kSend;
    uint32_t inline_header = 0;   // bytes of each packet that the device wants in the WQE
    uint32_t inline_send = 0;     // packets up to this length are copied into a send WQE
    uint32_t inline_packet = 0;   // ... into a multi-packet send
    uint32_t longest_packet = 0;  // that the port may send at once, without TSO
    uint32_t max_tso = 0;         // bytes of payload of a large send
    bool vlan_insert = false;     // by the device; otherwise in the inline header
    bool segments = false;        // RTE_ETH_TX_OFFLOAD_MULTI_SEGS is configured

    std::string describe() const;
};

// Refuses arguments that exclude each other, or that this device or CPU cannot do.
Status check_tx_arguments(const TxArguments& arguments, const Capabilities& caps);

// `queues` send queues, `offloads` of any of them.
TxMode choose_tx_mode(const TxArguments& arguments, const Capabilities& caps, uint64_t offloads,
                      uint32_t queues);

// The vector loops can run here: the CPU has AVX2 and EAL's --force-max-simd-bitwidth
// allows 256 bits.
bool have_avx2();

}  // namespace tagwire::mlx5raw
