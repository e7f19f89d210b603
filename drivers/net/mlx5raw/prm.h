// SPDX-License-Identifier: BSD-3-Clause
// What the device reads and writes: completion entries, work queue entries, and
// the constants in them. Names follow the mlx5 Programmer's Reference Manual
// (PRM, "Completion Queue Entry", "WQE Format") and infiniband/mlx5dv.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tagwire::mlx5raw {

// An integer that lies in memory in big-endian order.
template <typename T>
struct BigEndian {
    T raw;

    static constexpr T swap(T value) {
        if constexpr (sizeof(T) == 2) {
            return __builtin_bswap16(value);
        } else if constexpr (sizeof(T) == 4) {
            return __builtin_bswap32(value);
        } else {
            return __builtin_bswap64(value);
        }
    }
    static constexpr BigEndian of(T value) { return BigEndian{swap(value)}; }
    constexpr T get() const { return swap(raw); }
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the CQE decoding tables assume a little-endian host");

using Be16 = BigEndian<uint16_t>;
using Be32 = BigEndian<uint32_t>;
using Be64 = BigEndian<uint64_t>;

// Completion queue entry, 64 bytes, as written for a received packet.
struct alignas(64) Cqe {
    uint8_t reserved0[2];
    Be16 wqe_id;
    uint8_t reserved4[8];
    Be32 rx_hash;          // Toeplitz result
    uint8_t rx_hash_type;  // zero: no hash was computed
    uint8_t reserved17[3];
    Be16 checksum;
    uint8_t reserved22[6];
    uint16_t header;  // low byte: kL2Ok..kL4Ok; high byte: see CqeClassTable
    Be16 vlan_info;
    uint8_t reserved32[12];
    Be32 byte_count;
    Be64 timestamp;
    Be32 flow_tag;  // 24 bits; high byte of a send completion: opcode of the WQE
    Be16 wqe_counter;
    uint8_t signature;
    uint8_t op_own;  // opcode << 4 | format << 2 | solicited << 1 | owner
};
static_assert(sizeof(Cqe) == 64);
static_assert(offsetof(Cqe, rx_hash) == 12 && offsetof(Cqe, header) == 28 &&
              offsetof(Cqe, byte_count) == 44 && offsetof(Cqe, wqe_counter) == 60 &&
              offsetof(Cqe, op_own) == 63);

// CQE compression (PRM, "CQE compression"): a title entry, whose byte count is the number
// of packets, stands for as many entries of the ring. What differs between them is in
// arrays of eight mini entries: the first array in the entry behind the title, the array
// k in the entry 8 * k behind it. The other entries hold nothing, not even owner bits.
struct MiniCqe {
    Be32 rx_hash;  // in the hash format
    Be32 byte_count;
};
static_assert(sizeof(MiniCqe) == 8);

inline constexpr uint8_t kCqeCompressed = 3 << 2;  // format, in op_own
inline constexpr uint32_t kMinisPerEntry = sizeof(Cqe) / sizeof(MiniCqe);

// The same entry when the completion is an error.
struct alignas(64) ErrorCqe {
    uint8_t reserved0[54];
    uint8_t vendor_syndrome;
    uint8_t syndrome;
    Be32 opcode_qpn;
    Be16 wqe_counter;
    uint8_t signature;
    uint8_t op_own;
};
static_assert(sizeof(ErrorCqe) == 64);
static_assert(offsetof(ErrorCqe, syndrome) == 55 && offsetof(ErrorCqe, op_own) == 63);

enum CqeOpcode : uint8_t {
    kCqeRequester = 0,
    kCqeResponderSend = 2,
    kCqeRequesterError = 13,
    kCqeResponderError = 14,
    kCqeInvalid = 15,
};

inline constexpr uint8_t kCqeOwnerMask = 1;
// In the place of op_own: an entry that is no completion in any round.
inline constexpr uint8_t kCqeNotWritten = kCqeInvalid << 4;
// Opcode, format and owner; the solicited bit does not matter.
inline constexpr uint8_t kCqeKindMask = 0xfd;

// First octoword of a send WQE.
struct ControlSegment {
    Be32 opmod_index_opcode;  // opcode modifier << 24 | WQE index << 8 | opcode
    Be32 qpn_ds;              // queue pair << 8 | number of octowords
    uint8_t signature;
    uint8_t reserved[2];
    uint8_t fm_ce_se;
    uint32_t immediate;
};
static_assert(sizeof(ControlSegment) == 16);

inline constexpr uint8_t kOpcodeNop = 0x00;
inline constexpr uint8_t kOpcodeSend = 0x0a;
inline constexpr uint8_t kOpcodeLargeSend = 0x0e;    // TSO
inline constexpr uint8_t kOpcodeMultiPacket = 0x29;  // enhanced: each segment is a packet
// CE, when a WQE makes a CQE. "First error only" keeps the flushed WQEs behind an
// error from filling the completion queue.
inline constexpr uint8_t kCompletionFirstError = 1 << 2;
inline constexpr uint8_t kCompletionAlways = 2 << 2;

// Second octoword of a raw Ethernet send; the inline header may extend it.
struct EthernetSegment {
    uint8_t reserved0[4];
    uint8_t checksum_flags;
    uint8_t reserved5;
    Be16 mss;
    uint32_t reserved8;
    Be16 inline_size;
    uint8_t inline_start[2];
};
static_assert(sizeof(EthernetSegment) == 16);

inline constexpr uint8_t kChecksumL3 = 1 << 6;
inline constexpr uint8_t kChecksumL4 = 1 << 7;

// Inline mode L2: an Ethernet header with one VLAN tag.
inline constexpr uint32_t kInlineL2 = 18;

// In inline_size, when there is no inline header: the device inserts a VLAN tag, whose
// control information takes the place of the header's first bytes.
inline constexpr uint16_t kInsertVlan = 1 << 15;

struct DataSegment {
    Be32 byte_count;  // zero would mean 2 GiB
    Be32 lkey;
    Be64 address;
};
static_assert(sizeof(DataSegment) == 16);

// In byte_count: the data itself follows these four bytes.
inline constexpr uint32_t kInlineData = 0x80000000;

// "No memory": ends the list of a receive WQE that has fewer segments than room.
inline constexpr uint32_t kInvalidLkey = 0x100;

inline constexpr uint32_t kBasicBlock = 64;
inline constexpr uint32_t kOctoword = 16;
inline constexpr uint32_t kMaxOctowords = 63;  // six bits of qpn_ds

struct alignas(64) BasicBlock {
    uint8_t bytes[kBasicBlock];
};

// A word of a doorbell record, which the device reads at any time.
class DoorbellRecord {
  public:
    DoorbellRecord() = default;
    explicit DoorbellRecord(void* word) : word_(static_cast<volatile uint32_t*>(word)) {}
    void set(uint32_t value) const { *word_ = Be32::swap(value); }

  private:
    volatile uint32_t* word_ = nullptr;
};

// Syndrome of an error completion in words (PRM, "Completion with Error").
const char* syndrome_text(uint8_t syndrome);

inline constexpr uint8_t kSyndromeFlushed = 0x05;

}  // namespace tagwire::mlx5raw
