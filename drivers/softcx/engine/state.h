// SPDX-License-Identifier: BSD-3-Clause
// What the data path walks per packet: flat arrays, built from the object maps
// whenever Device::generation changed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/softcx/engine/checks.h"
#include "drivers/softcx/engine/flow_table.h"
#include "drivers/softcx/engine/memory.h"
#include "drivers/softcx/engine/step_clock.h"
#include "drivers/softcx/engine/toeplitz.h"
#include "drivers/softcx/model/objects.h"
#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {

struct CompressionSession;

struct CompletionPort {
    CompletionQueue* cq;
    uint32_t consumer_index;                      // as last read from the doorbell record
    std::shared_ptr<CompressionSession> session;  // null: the CQ does not compress
};

struct SendPort {
    QueuePair* qp;
    CompletionPort* completions;
    QueueMemory memory;
    bool early_post_reported = false;
};

struct ReceivePort {
    WorkQueue* wq;
    QueuePair* qp;  // the owner, when it is a QP's own ring
    CompletionPort* completions;
    QueueMemory memory;
    uint32_t user_index;
    uint32_t first_segment;  // bytes in front of the first data segment
    uint32_t segments;
    bool reset_post_reported = false;
};

// Where a flow sends its frames.
struct Destination {
    QueuePair* qp;
    ReceivePort* own = nullptr;  // plain QP with a receive ring
    uint64_t fields = 0;         // RSS QP from here on
    std::unique_ptr<Toeplitz> toeplitz;
    std::vector<ReceivePort*> table;
};

struct EngineState {
    explicit EngineState(Device& owner) : device(owner) {}

    Device& device;
    uint64_t generation = ~uint64_t{0};
    uint64_t now = 0;  // core clock, read once per step
    StepClock clock;

    TranslationTable translations;
    std::vector<CompletionPort> completion_ports;
    std::vector<CompletionPort*> event_ports;        // CQs with a channel
    std::vector<CompletionPort*> compressing_ports;  // CQs with a session
    std::vector<SendPort> send_ports;
    std::vector<ReceivePort> receive_ports;
    std::vector<Destination> destinations;
    FlowTable flows;
    std::vector<uint64_t> local_macs;  // unicast addresses that this port itself takes
    uint32_t next_send_port = 0;
    bool receive_needs_flush = false;  // some WQ is in ERR, or posted to in RESET

    std::array<bool, kClientChecks> reported{};
    // Keys of regions that are gone, the latest ones. They are not given out again soon.
    std::array<uint32_t, 256> retired_keys{};
    uint32_t next_retired_key = 0;

    // A frame that has to be contiguous or changed before it leaves, and one that
    // is changed before it is scattered.
    static constexpr uint32_t kSendScratch = 256 * 1024 + 2 * kMaxFrame;
    std::vector<uint8_t> send_scratch = std::vector<uint8_t>(kSendScratch);
    std::vector<uint8_t> segment_scratch = std::vector<uint8_t>(kMaxFrame + 64);
    std::vector<uint8_t> receive_scratch = std::vector<uint8_t>(kMaxFrame + 64);
};

// The state of a device, current with its objects.
EngineState& engine_state(Device& device);

// A MAC address as a number, first byte lowest, for masked comparison with the
// first eight bytes of a frame.
constexpr uint64_t mac_number(const MacAddress& mac) {
    uint64_t number = 0;
    for (int i = 5; i >= 0; --i)
        number = number << 8 | mac[i];
    return number;
}

// Doorbell records are written by the client's threads.
inline uint32_t read_doorbell(const volatile uint32_t* record) noexcept {
    return big_endian(__atomic_load_n(record, __ATOMIC_ACQUIRE));
}

}  // namespace softcx
