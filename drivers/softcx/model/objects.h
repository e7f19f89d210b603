// SPDX-License-Identifier: BSD-3-Clause
// The card's objects. The control path (uverbs/) creates, modifies and destroys
// them; the data path (engine/) executes their rings. Everything is guarded by
// Device::mutex. Client memory is reached by the client's own addresses, because
// the model lives in the client's process, but only through an MR or a ring that
// the client registered.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drivers/softcx/model/device_lock.h"

namespace softcx {

using MacAddress = std::array<uint8_t, 6>;

struct ProtectionDomain {
    uint32_t pdn = 0;
    uint32_t use_count = 0;
};

struct MemoryRegion {
    uint32_t lkey = 0;
    uint32_t rkey = 0;
    ProtectionDomain* pd = nullptr;
    uint64_t start = 0;  // client address
    uint64_t length = 0;
    uint64_t iova = 0;    // address as used in WQEs (equal to start unless asked otherwise)
    uint32_t access = 0;  // IB_ACCESS_*; LOCAL_WRITE is needed to scatter
};

// A completion channel: a file descriptor that becomes readable, with one record
// (ib_uverbs_comp_event_desc) per event. Only the control path writes to it
// (raise_completion_event in engine.h): records that the client never read must
// not count when their CQ is destroyed.
struct EventQueue;

struct CompletionChannel {
    std::shared_ptr<EventQueue> events;
    uint32_t use_count = 0;
};

// Not a command that a client writes to doorbell[1] (bits 25 to 27 are zero).
inline constexpr uint32_t kNeverArmed = 0xffffffff;

struct CompletionQueue {
    uint32_t cqn = 0;
    uint64_t user_handle = 0;
    uint8_t* buffer = nullptr;
    uint32_t cqe_size = 64;                 // 64 or 128
    bool padded = false;                    // the first half of a 128-byte CQE is written too
    uint32_t entries = 0;                   // power of two
    volatile uint32_t* doorbell = nullptr;  // [0] consumer index (24 bits, big endian), [1] arm
    uint32_t producer_index = 0;
    uint8_t compression = 0;        // MLX5_IB_CQE_RES_FORMAT_* that receive CQEs shrink to; 0: none
    bool ignore_overrun = false;    // IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN
    bool injected_overrun = false;  // the next CQE finds no room
    bool overrun = false;           // a CQE had no room: the CQ is in error
    CompletionChannel* channel = nullptr;
    bool armed = false;
    uint32_t arm_sequence = kNeverArmed;  // last arm that was seen in doorbell[1]
    uint32_t solicited_index = 0;         // behind the last CQE that was solicited or in error
    // Moderation: an event waits for so many CQEs, or for so long after the first of them.
    uint16_t moderation_count = 0;   // 0, or a period of 0: none
    uint64_t moderation_period = 0;  // core clock ticks
    uint32_t held_cqes = 0;          // since the CQ was armed
    uint64_t held_since = 0;         // when a step first saw them; 0: not yet
    uint32_t events_reported = 0;    // completion events, returned by destroy
    uint32_t async_reported = 0;
    uint32_t use_count = 0;  // send and receive queues that complete to it
};

enum class WqState : uint8_t { kReset, kReady, kError };

// A receive ring: a stand-alone WQ, or the RQ inside a QP.
struct WorkQueue {
    uint32_t wqn = 0;
    uint64_t user_handle = 0;
    WqState state = WqState::kReset;
    ProtectionDomain* pd = nullptr;
    CompletionQueue* cq = nullptr;
    uint8_t* buffer = nullptr;
    uint32_t stride = 0;     // bytes of one WQE, power of two (16 per data segment)
    uint32_t wqe_count = 0;  // power of two
    bool wqe_has_signature = false;
    // Striding (multi-packet) ring: a WQE's memory is cut into strides, and a frame
    // takes as many as it needs.
    bool striding = false;
    uint8_t log_stride_bytes = 0;
    uint8_t log_strides = 0;                // per WQE
    bool two_byte_shift = false;            // frames start 2 bytes into their first stride
    uint32_t used_strides = 0;              // of the WQE at the consumer index
    volatile uint32_t* doorbell = nullptr;  // [0]: receive counter, 16 bits, big endian
    uint16_t consumer_index = 0;
    uint16_t available = 0;      // posted WQEs, as the engine last read from the doorbell
    uint32_t idle_doorbell = 0;  // the record as it was when the ring went to RESET
    uint32_t user_index = 0;     // CQE version 1 names the ring by this (srqn_uidx)
    bool vlan_strip = false;
    bool scatter_fcs = false;
    uint8_t injected_syndrome = 0;  // not 0: the next WQE completes with it (the engine clears it)
    uint32_t use_count = 0;         // indirection tables (and QPs) that name it
    uint64_t out_of_buffer = 0;
    uint32_t async_reported = 0;
};

struct IndirectionTable {
    uint32_t number = 0;
    std::vector<WorkQueue*> entries;  // power of two; a WQ may repeat
    uint32_t use_count = 0;
};

enum class QpState : uint8_t { kReset, kInit, kRtr, kRts, kSqd, kSqe, kError };

struct RssContext {
    IndirectionTable* table = nullptr;
    uint64_t fields = 0;   // MLX5_RX_HASH_*
    uint8_t function = 0;  // MLX5_RX_HASH_FUNC_TOEPLITZ
    std::array<uint8_t, 128> key{};
    uint32_t key_length = 0;
};

struct SendQueue {
    uint8_t* buffer = nullptr;
    uint32_t wqe_count = 0;  // 64-byte basic blocks, power of two; 0: no send side
    // The QP's record; [1]: send counter, 16 bits, big endian.
    volatile uint32_t* doorbell = nullptr;
    uint16_t consumer_index = 0;  // basic blocks
    CompletionQueue* cq = nullptr;
    bool signal_all = false;        // sq_sig_all: every WQE asks for a CQE
    uint8_t injected_syndrome = 0;  // as in WorkQueue
};

struct QueuePair {
    uint32_t qpn = 0;
    uint64_t user_handle = 0;
    uint32_t type = 0;  // IB_UVERBS_QPT_RAW_PACKET
    QpState state = QpState::kReset;
    ProtectionDomain* pd = nullptr;
    SendQueue sq;
    CompletionQueue* receive_cq = nullptr;  // named at creation, also without a ring; null with rss
    std::unique_ptr<WorkQueue> rq;          // own receive ring, if any
    std::unique_ptr<RssContext> rss;        // RSS QP: receives only through its WQs
    uint32_t use_count = 0;                 // flows
    uint32_t async_reported = 0;
    uint32_t user_index = 0;
};

// One header that a flow matches: value and mask in network order, as in the
// ib_uverbs_flow_spec_* structures.
enum class FlowType : uint8_t { kNormal, kAllDefault, kMulticastDefault, kSniffer };

struct FlowMatch {
    bool has_ethernet = false, has_vlan = false, has_ipv4 = false, has_ipv6 = false;
    bool has_tcp = false, has_udp = false;
    MacAddress dst_mac{}, dst_mac_mask{}, src_mac{}, src_mac_mask{};
    uint16_t ether_type = 0, ether_type_mask = 0;  // host order from here on
    uint16_t vlan_tci = 0, vlan_tci_mask = 0;
    uint32_t ipv4_src = 0, ipv4_src_mask = 0, ipv4_dst = 0, ipv4_dst_mask = 0;
    uint8_t ip_protocol = 0, ip_protocol_mask = 0, tos = 0, tos_mask = 0, ttl = 0, ttl_mask = 0;
    std::array<uint8_t, 16> ipv6_src{}, ipv6_src_mask{}, ipv6_dst{}, ipv6_dst_mask{};
    uint32_t flow_label = 0, flow_label_mask = 0;  // IPv6, 20 bits
    uint16_t l4_src = 0, l4_src_mask = 0, l4_dst = 0, l4_dst_mask = 0;

    // Bits of a value outside its mask are zero, so that equal rules compare equal.
    auto operator<=>(const FlowMatch&) const = default;
};

// A verbs counters object. Flows that name it add to its values while they exist.
struct FlowCounters {
    uint32_t number = 0;
    // Which value each place of the client's array gets (IB_COUNTER_PACKETS, _BYTES), told
    // by the first flow; empty until then.
    std::vector<std::pair<uint32_t, uint32_t>> places;  // place, description
    uint64_t packets = 0, bytes = 0;
    uint32_t use_count = 0;  // flows
};

struct Flow {
    uint32_t handle = 0;
    QueuePair* qp = nullptr;  // nullptr with drop
    FlowType type = FlowType::kNormal;
    uint16_t priority = 0;  // lower wins
    uint64_t sequence = 0;  // creation order: of rules that overlap the first takes the frame
    FlowMatch match;
    bool has_tag = false;
    uint32_t tag = 0;
    bool drop = false;
    FlowCounters* counters = nullptr;
};

// Named as in the hw_counters folder of mlx5 where it has such a counter.
struct PortCounters {
    uint64_t rx_packets = 0, rx_bytes = 0, tx_packets = 0, tx_bytes = 0;
    uint64_t rx_multicast = 0, tx_multicast = 0;  // part of the packets, broadcast too
    uint64_t out_of_buffer = 0;                   // WQ had no posted buffer
    uint64_t rx_no_flow = 0;                      // no rule took the frame
    uint64_t rx_flow_drop = 0;                    // a drop rule took it
    uint64_t rx_wq_not_ready = 0;                 // WQ in RESET or ERR
    uint64_t rx_too_long = 0;                     // frame longer than the port's MTU allows
    uint64_t rx_too_short = 0;                    // no whole Ethernet header
    uint64_t tx_wire_full = 0;                    // tail drop on the wire
    uint64_t rx_no_link = 0;                      // came while the port had none
    // By wires that lead out of the process
    uint64_t wire_rx_dropped = 0;    // the receive queue of the kernel was full
    uint64_t wire_rx_truncated = 0;  // cut before it came to the device
    uint64_t wire_rx_refused = 0;    // offload meta data that does not fit the frame
    uint64_t wire_tx_refused = 0;    // the kernel did not take it (logged once, with the reason)
    uint64_t tx_no_link = 0;         // sent while the link was down
    uint64_t link_downed = 0;
    uint64_t cq_overrun = 0;
    uint64_t local_protection_errors = 0, local_length_errors = 0, local_qp_errors = 0;
    // Error CQEs by ring: of receives (responder) and of sends (requester)
    uint64_t resp_cqe_error = 0, resp_cqe_flush_error = 0, resp_local_length_error = 0;
    uint64_t req_cqe_error = 0, req_cqe_flush_error = 0;
    // By the faults of the wire (SOFTCX_FAULTS)
    uint64_t fault_lost = 0, fault_duplicated = 0, fault_corrupted = 0, fault_reordered = 0;
    uint64_t fault_delayed = 0, fault_tail_dropped = 0;
    uint64_t client_errors = 0;  // malformed WQE, doorbell past the ring, ...
};

class Wire;
struct Context;
struct EngineState;

// The card's free-running clock, which stamps CQEs: 78.125 MHz as on ConnectX-5.
inline constexpr uint64_t kCoreClockKhz = 78125;
constexpr uint64_t core_clock_ticks(uint64_t nanoseconds) {
    return nanoseconds * 5 / 64;
}

struct Port {
    MacAddress mac{};
    uint32_t mtu = 9978;  // largest frame payload that the card passes
    bool link_up = true;  // what softcx_set_link says; the wire has a say too
    bool carrier = true;  // the wire's link, as last reported to the client
    PortCounters counters;
    std::unique_ptr<Wire> wire;
};

struct Device {
    DeviceLock mutex;
    std::atomic<bool> stepping{false};  // by the thread that holds it
    std::string name;  // mlx5_0
    uint32_t index = 0;
    uint64_t node_guid = 0;
    Port port;
    // softcx_refuse_command: how many commands still work (negative: all), and the errno then.
    struct {
        int after = -1, error = 0;
    } refusal;
    bool failed = false;  // fatal error: nothing moves until the last open file is closed
    std::atomic<bool> started{false};  // plugged into its wire: may be stepped

    // By object number; numbers are never zero and not reused soon.
    std::map<uint32_t, std::unique_ptr<ProtectionDomain>> pds;
    std::map<uint32_t, std::unique_ptr<MemoryRegion>> mrs;  // by lkey
    std::map<uint32_t, std::unique_ptr<CompletionChannel>> channels;
    std::map<uint32_t, std::unique_ptr<CompletionQueue>> cqs;
    std::map<uint32_t, std::unique_ptr<WorkQueue>> wqs;
    std::map<uint32_t, std::unique_ptr<IndirectionTable>> tables;
    std::map<uint32_t, std::unique_ptr<QueuePair>> qps;
    std::map<uint32_t, std::unique_ptr<Flow>> flows;
    std::map<uint32_t, std::unique_ptr<FlowCounters>> flow_counters;

    // Rebuilt by the control path after each change (engine/ keeps its own fast
    // structures behind `generation`).
    std::atomic<uint64_t> generation{0};
    std::shared_ptr<EngineState> engine;  // made at the first step

    // The numbers that were given last (control path only).
    struct {
        uint32_t pd = 0, mkey = 0, cq = 0, channel = 0, wq = 0, table = 0, qp = 0, flow = 0,
                 counters = 0;
    } last_numbers;
    uint64_t next_flow_sequence = 0;

    // Open files of the uverbs device (control path only).
    std::vector<Context*> contexts;
};

}  // namespace softcx
