// SPDX-License-Identifier: BSD-3-Clause
// A device with hand-built objects, and the client's side of its rings. No verbs.
#pragma once

#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/engine/prm.h"
#include "drivers/softcx/model/objects.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx::test {

using Bytes = std::vector<uint8_t>;

// What the engine told the control path, in order.
struct AsyncEvent {
    uint32_t type;
    uint64_t element;
};
extern std::vector<AsyncEvent> async_events;

inline Bytes pattern(size_t length, uint8_t seed = 1) {
    Bytes bytes(length);
    for (size_t i = 0; i < length; ++i)
        bytes[i] = static_cast<uint8_t>(seed + i * 7 + (i >> 8));
    return bytes;
}

struct ClientCq {
    CompletionQueue* cq;
    std::vector<uint8_t> ring;
    alignas(8) uint32_t doorbell[2] = {};
    uint32_t consumer_index = 0;

    // The next CQE if the device has written it.
    std::optional<Cqe> poll(bool update_doorbell = true) {
        const size_t slot = size_t{consumer_index & (cq->entries - 1)} * cq->cqe_size;
        const uint8_t* at = ring.data() + slot + cq->cqe_size - sizeof(Cqe);
        const uint8_t op_own = __atomic_load_n(at + 63, __ATOMIC_ACQUIRE);
        const bool owner = (consumer_index & cq->entries) != 0;
        if (op_own >> 4 == static_cast<uint8_t>(CqeOpcode::kInvalid) ||
            ((op_own & 1) != 0) != owner)
            return std::nullopt;
        Cqe cqe;
        std::memcpy(&cqe, at, sizeof(cqe));
        ++consumer_index;
        if (update_doorbell)
            publish();
        return cqe;
    }

    void publish() {
        __atomic_store_n(&doorbell[0], big_endian(consumer_index & kIndexMask), __ATOMIC_RELEASE);
    }

    void arm(uint32_t sequence, bool solicited_only = false) {
        const uint32_t command = (sequence & 3) << 28 | (solicited_only ? kArmSolicitedOnly : 0) |
                                 (consumer_index & kIndexMask);
        __atomic_store_n(&doorbell[1], big_endian(command), __ATOMIC_RELEASE);
    }
};

inline CqeOpcode opcode_of(const Cqe& cqe) {
    return static_cast<CqeOpcode>(cqe.op_own >> 4);
}

inline Syndrome syndrome_of(const Cqe& cqe) {
    return static_cast<Syndrome>(reinterpret_cast<const ErrorCqe&>(cqe).syndrome);
}

struct Segment {
    uint64_t address;
    uint32_t length;
    uint32_t lkey;
};

struct ClientWq {
    WorkQueue* wq;
    std::vector<uint8_t> ring;
    alignas(8) uint32_t doorbell[2] = {};
    uint16_t head = 0;

    void post(const std::vector<Segment>& segments) {
        uint8_t* at = ring.data() + size_t{head & (wq->wqe_count - 1)} * wq->stride;
        for (uint32_t i = 0; i < wq->stride / kOctoword; ++i) {
            DataSegment segment{};
            segment.lkey.set(kInvalidLkey);
            if (i < segments.size()) {
                segment.address.set(segments[i].address);
                segment.byte_count.set(segments[i].length);
                segment.lkey.set(segments[i].lkey);
            }
            std::memcpy(at + i * kOctoword, &segment, sizeof(segment));
        }
        ++head;
        __atomic_store_n(&doorbell[0], big_endian(uint32_t{head}), __ATOMIC_RELEASE);
    }
};

struct SendOptions {
    WqeOpcode opcode = WqeOpcode::kSend;
    CompletionMode completion = CompletionMode::kAlways;
    bool solicited = false;
    uint8_t checksum_flags = 0;
    uint16_t mss = 0;
    std::optional<uint16_t> vlan;
    Bytes inline_header;
    Bytes inline_data;
    std::vector<Segment> segments;
    bool ring_doorbell = true;
};

struct ClientSq {
    QueuePair* qp;
    std::vector<uint8_t> ring;
    alignas(8) uint32_t doorbell[2] = {};
    uint16_t producer = 0;

    // Returns the WQE's counter.
    uint16_t post(const SendOptions& options);
    void ring_doorbell() {
        __atomic_store_n(&doorbell[1], big_endian(uint32_t{producer}), __ATOMIC_RELEASE);
    }
    uint8_t* block(uint16_t index) {
        return ring.data() + size_t{index & (qp->sq.wqe_count - 1)} * kBasicBlock;
    }
};

// One device. Objects are made with the defaults that most tests want.
class Rig {
  public:
    explicit Rig(uint32_t index = 0, const std::string& wire = "loopback");

    Device device;
    ProtectionDomain* pd;

    ProtectionDomain* make_pd();
    MemoryRegion* make_mr(void* start, size_t length,
                          uint32_t access = IB_UVERBS_ACCESS_LOCAL_WRITE,
                          ProtectionDomain* owner = nullptr);
    std::unique_ptr<ClientCq> make_cq(uint32_t entries = 64, uint32_t cqe_size = 64);
    std::unique_ptr<ClientWq> make_wq(ClientCq& cq, uint32_t count = 16, uint32_t segments = 1,
                                      ProtectionDomain* owner = nullptr);
    std::unique_ptr<ClientSq> make_sender(ClientCq& cq, uint32_t blocks = 64);
    QueuePair* make_rss_qp(const std::vector<WorkQueue*>& table, uint64_t fields = 0,
                           const Bytes& key = {});
    // A plain QP that receives on `wq`, which becomes its own ring.
    QueuePair* make_receiver(ClientWq& wq);
    Flow* make_flow(QueuePair* qp, FlowType type = FlowType::kAllDefault);

    void changed() { device.generation.fetch_add(1); }
    uint32_t step(uint32_t budget = 256) { return engine_step(device, budget); }
    const PortCounters& counters() const { return device.port.counters; }

  private:
    uint32_t next_number_ = 0x100;
};

}  // namespace softcx::test
