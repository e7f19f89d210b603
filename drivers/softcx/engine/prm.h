// SPDX-License-Identifier: BSD-3-Clause
// The structures that a ConnectX and its client share in memory, after the
// "Mellanox Adapters Programmer's Reference Manual" (PRM): chapters "Work Queue
// Element", "Completion Queue Element" and "Doorbell record". The same layouts are
// known to clients as mlx5_wqe_ctrl_seg, mlx5_wqe_eth_seg, mlx5_wqe_data_seg,
// mlx5_cqe64 and mlx5_err_cqe of infiniband/mlx5dv.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/softcx/engine/byte_order.h"

namespace softcx {

inline constexpr uint32_t kBasicBlock = 64;  // a send WQE is a whole number of these
inline constexpr uint32_t kOctoword = 16;    // the unit of `ds`
inline constexpr uint32_t kMaxOctowords = 63;

enum class WqeOpcode : uint8_t {
    kNop = 0x00,
    kSend = 0x0a,
    kTso = 0x0e,          // large send
    kMultiPacket = 0x29,  // enhanced multi-packet send
};

// When the client wants a CQE (control segment, CE field).
enum class CompletionMode : uint8_t {
    kOnError = 0,
    kOnFirstError = 1,  // not for flushed WQEs
    kAlways = 2,
    kAlwaysWithEvent = 3,
};

struct ControlSegment {
    Be32 opmod_idx_opcode;  // opcode modifier, basic block counter (16 bits), opcode
    Be32 qpn_ds;            // QP number, size in octowords (6 bits)
    uint8_t signature;
    uint8_t reserved[2];
    uint8_t fm_ce_se;
    Be32 immediate;

    uint16_t index() const { return static_cast<uint16_t>(opmod_idx_opcode.get() >> 8); }
    uint8_t opcode_modifier() const { return static_cast<uint8_t>(opmod_idx_opcode.get() >> 24); }
    WqeOpcode opcode() const { return static_cast<WqeOpcode>(opmod_idx_opcode.get() & 0xff); }
    uint32_t qpn() const { return qpn_ds.get() >> 8; }
    uint32_t octowords() const { return qpn_ds.get() & 0x3f; }
    CompletionMode completion() const { return static_cast<CompletionMode>(fm_ce_se >> 2 & 3); }
    bool solicited() const { return (fm_ce_se & 2) != 0; }
};
static_assert(sizeof(ControlSegment) == 16);
static_assert(offsetof(ControlSegment, fm_ce_se) == 11);

inline constexpr uint8_t kEthL3Checksum = 1 << 6;
inline constexpr uint8_t kEthL4Checksum = 1 << 7;
inline constexpr uint16_t kEthInsertVlan = 1 << 15;  // in inline_header_size, without inline header

struct EthernetSegment {
    Be32 swp_offsets;
    uint8_t checksum_flags;
    uint8_t swp_flags;
    Be16 mss;
    Be32 metadata;
    Be16 inline_header_size;  // or kEthInsertVlan, and then the tag control word follows
    uint8_t inline_header_start[2];
};
static_assert(sizeof(EthernetSegment) == 16);
static_assert(offsetof(EthernetSegment, inline_header_start) == 14);

inline constexpr uint32_t kInlineData = 0x80000000;  // in byte_count: the data follows
inline constexpr uint32_t kInvalidLkey = 0x100;      // ends a scatter list early

struct DataSegment {
    Be32 byte_count;
    Be32 lkey;
    Be64 address;
};
static_assert(sizeof(DataSegment) == 16);

enum class CqeOpcode : uint8_t {
    kRequester = 0,
    kResponderSend = 2,
    kResize = 5,  // the last CQE in a buffer that was replaced
    kRequesterError = 13,
    kResponderError = 14,
    kInvalid = 15,
};

// Completion syndromes (MLX5_CQE_SYNDROME_*).
enum class Syndrome : uint8_t {
    kNone = 0,
    kLocalLength = 0x01,
    kLocalQpOperation = 0x02,
    kLocalProtection = 0x04,
    kFlushed = 0x05,
};

inline constexpr uint8_t kCqeL2Ok = 1 << 0;  // hds_ip_ext
inline constexpr uint8_t kCqeL3Ok = 1 << 1;
inline constexpr uint8_t kCqeL4Ok = 1 << 2;

inline constexpr uint8_t kCqeVlanStripped = 1 << 0;  // l4_l3_hdr_type
inline constexpr uint8_t kCqeIpOptions = 1 << 1;
inline constexpr uint8_t kCqeL3Shift = 2;
inline constexpr uint8_t kCqeL4Shift = 4;
inline constexpr uint8_t kCqeIpFragment = 1 << 7;

enum class CqeL3 : uint8_t { kNone = 0, kIpv6 = 1, kIpv4 = 2 };
enum class CqeL4 : uint8_t { kNone = 0, kTcp = 1, kUdp = 2, kTcpEmptyAck = 3, kTcpAck = 4 };

// byte_cnt of a striding ring: bytes, strides taken, and whether these were only
// skipped because the next frame did not fit.
inline constexpr uint32_t kCqeStridesShift = 16;
inline constexpr uint32_t kCqeFiller = 1u << 31;
inline constexpr uint32_t kTwoByteShift = 2;

struct Cqe {
    uint8_t tunnel_info;
    uint8_t reserved1;
    Be16 wqe_id;
    uint8_t lro[8];
    Be32 rx_hash_result;
    uint8_t rx_hash_type;  // [1:0] IP source, [3:2] IP destination, [5:4] and [7:6] the same of L4
    uint8_t reserved17[3];
    Be16 check_sum;  // ones' complement sum of the L3 packet
    uint8_t reserved22[6];
    uint8_t hds_ip_ext;
    uint8_t l4_l3_hdr_type;
    Be16 vlan_info;
    Be32 srqn_uidx;
    Be32 metadata;
    uint8_t reserved40[4];
    Be32 byte_cnt;
    Be64 timestamp;
    Be32 sop_drop_qpn;  // requester: opcode and QP number; responder: flow tag
    Be16 wqe_counter;
    uint8_t signature;
    uint8_t op_own;  // opcode, format, solicited, owner
};
static_assert(sizeof(Cqe) == 64);
static_assert(offsetof(Cqe, rx_hash_result) == 12);
static_assert(offsetof(Cqe, check_sum) == 20);
static_assert(offsetof(Cqe, hds_ip_ext) == 28);
static_assert(offsetof(Cqe, srqn_uidx) == 32);
static_assert(offsetof(Cqe, byte_cnt) == 44);
static_assert(offsetof(Cqe, timestamp) == 48);
static_assert(offsetof(Cqe, sop_drop_qpn) == 56);
static_assert(offsetof(Cqe, op_own) == 63);

// Compressed CQEs (PRM, "CQE compression"): a title CQE with the number of CQEs in byte_cnt
// stands for as many entries of the ring. What differs is in arrays of eight mini CQEs, in
// the entry behind the title, and in every eighth one counted from the title. What the
// other entries hold means nothing.
inline constexpr uint8_t kCqeCompressed = 3 << 2;  // in op_own
inline constexpr uint32_t kMinisPerEntry = 8;

enum class MiniFormat : uint8_t {
    kNone = 0,
    kHash = 1,               // MLX5_IB_CQE_RES_FORMAT_*
    kChecksum = 2,           // no RSS hash
    kChecksumAndStride = 4,  // no RSS hash; index of the first stride
};

struct MiniCqe {
    union {
        Be32 rx_hash_result;
        struct {
            Be16 check_sum;
            Be16 stride_index;
        } sum;
    };
    Be32 byte_cnt;
};
static_assert(sizeof(MiniCqe) == 8);

struct ErrorCqe {
    uint8_t reserved0[32];
    Be32 srqn_uidx;
    uint8_t reserved36[18];
    uint8_t vendor_syndrome;
    uint8_t syndrome;
    Be32 opcode_qpn;
    Be16 wqe_counter;
    uint8_t signature;
    uint8_t op_own;
};
static_assert(sizeof(ErrorCqe) == 64);
static_assert(offsetof(ErrorCqe, syndrome) == 55);
static_assert(offsetof(ErrorCqe, op_own) == 63);

// CQ doorbell record, second word: two bits of arm sequence number, the command,
// and the consumer index.
inline constexpr uint32_t kArmSolicitedOnly = 1u << 24;
inline constexpr uint32_t kIndexMask = 0xffffff;

// enum ib_event_type of the kernel, as ibv_get_async_event(3) reports it.
inline constexpr uint32_t kEventCqError = 0;
inline constexpr uint32_t kEventQpFatal = 1;
inline constexpr uint32_t kEventPortActive = 9;
inline constexpr uint32_t kEventPortError = 10;
inline constexpr uint32_t kEventWqFatal = 19;
inline constexpr uint64_t kFirstPort = 1;  // the element of port events

}  // namespace softcx
