// SPDX-License-Identifier: BSD-3-Clause
#include "test/softcx/engine/rig.h"

#include <algorithm>

namespace softcx {

namespace test {
std::vector<AsyncEvent> async_events;
}  // namespace test

// The control path's half of the seam.
void raise_completion_event(CompletionQueue& cq) noexcept {
    ++cq.events_reported;
}

void report_async_event(Device&, uint32_t event_type, uint64_t element) noexcept {
    test::async_events.push_back({event_type, element});
}

void publish_clock(Device&, uint64_t) noexcept {}

namespace test {

Rig::Rig(uint32_t index, const std::string& wire) {
    async_events.clear();
    device.name = "mlx5_" + std::to_string(index);
    device.index = index;
    device.port.mac = {0x02, 0, 0, 0, 0xcc, static_cast<uint8_t>(index)};
    std::string error;
    device.port.wire = open_wire(wire, index, &error);
    EXPECT_NE(device.port.wire, nullptr) << error;
    pd = make_pd();
}

ProtectionDomain* Rig::make_pd() {
    auto made = std::make_unique<ProtectionDomain>();
    made->pdn = next_number_++;
    ProtectionDomain* result = made.get();
    device.pds[made->pdn] = std::move(made);
    return result;
}

MemoryRegion* Rig::make_mr(void* start, size_t length, uint32_t access, ProtectionDomain* owner) {
    auto mr = std::make_unique<MemoryRegion>();
    mr->lkey = next_number_++ << 8;
    mr->pd = owner != nullptr ? owner : pd;
    mr->start = mr->iova = reinterpret_cast<uint64_t>(start);
    mr->length = length;
    mr->access = access;
    MemoryRegion* result = mr.get();
    device.mrs[mr->lkey] = std::move(mr);
    changed();
    return result;
}

std::unique_ptr<ClientCq> Rig::make_cq(uint32_t entries, uint32_t cqe_size) {
    auto client = std::make_unique<ClientCq>();
    auto cq = std::make_unique<CompletionQueue>();
    cq->cqn = next_number_++;
    cq->user_handle = cq->cqn;
    cq->entries = entries;
    cq->cqe_size = cqe_size;
    client->ring.assign(size_t{entries} * cqe_size, static_cast<uint8_t>(CqeOpcode::kInvalid) << 4);
    cq->buffer = client->ring.data();
    cq->doorbell = client->doorbell;
    client->cq = cq.get();
    engine_prepare(*cq);
    device.cqs[cq->cqn] = std::move(cq);
    changed();
    return client;
}

std::unique_ptr<ClientWq> Rig::make_wq(ClientCq& cq, uint32_t count, uint32_t segments,
                                       ProtectionDomain* owner) {
    auto client = std::make_unique<ClientWq>();
    auto wq = std::make_unique<WorkQueue>();
    wq->wqn = next_number_++;
    wq->user_handle = wq->wqn;
    wq->user_index = 0x5000 + wq->wqn;
    wq->state = WqState::kReady;
    wq->pd = owner != nullptr ? owner : pd;
    wq->cq = cq.cq;
    wq->stride = segments * kOctoword;
    wq->wqe_count = count;
    client->ring.resize(size_t{count} * wq->stride);
    wq->buffer = client->ring.data();
    wq->doorbell = client->doorbell;
    client->wq = wq.get();
    device.wqs[wq->wqn] = std::move(wq);
    changed();
    return client;
}

std::unique_ptr<ClientSq> Rig::make_sender(ClientCq& cq, uint32_t blocks) {
    auto client = std::make_unique<ClientSq>();
    auto qp = std::make_unique<QueuePair>();
    qp->qpn = next_number_++;
    qp->user_handle = qp->qpn;
    qp->user_index = 0x6000 + qp->qpn;
    qp->type = IB_UVERBS_QPT_RAW_PACKET;
    qp->state = QpState::kRts;
    qp->pd = pd;
    client->ring.resize(size_t{blocks} * kBasicBlock);
    qp->sq.buffer = client->ring.data();
    qp->sq.wqe_count = blocks;
    qp->sq.doorbell = client->doorbell;
    qp->sq.cq = cq.cq;
    client->qp = qp.get();
    device.qps[qp->qpn] = std::move(qp);
    changed();
    return client;
}

QueuePair* Rig::make_rss_qp(const std::vector<WorkQueue*>& table, uint64_t fields,
                            const Bytes& key) {
    auto indirection = std::make_unique<IndirectionTable>();
    indirection->number = next_number_++;
    indirection->entries = table;
    auto qp = std::make_unique<QueuePair>();
    qp->qpn = next_number_++;
    qp->user_handle = qp->qpn;
    qp->type = IB_UVERBS_QPT_RAW_PACKET;
    qp->pd = pd;
    qp->rss = std::make_unique<RssContext>();
    qp->rss->table = indirection.get();
    qp->rss->fields = fields;
    qp->rss->function = MLX5_RX_HASH_FUNC_TOEPLITZ;
    std::copy(key.begin(), key.end(), qp->rss->key.begin());
    qp->rss->key_length = static_cast<uint32_t>(key.size());
    QueuePair* result = qp.get();
    device.tables[indirection->number] = std::move(indirection);
    device.qps[qp->qpn] = std::move(qp);
    changed();
    return result;
}

QueuePair* Rig::make_receiver(ClientWq& wq) {
    auto qp = std::make_unique<QueuePair>();
    qp->qpn = next_number_++;
    qp->user_handle = qp->qpn;
    qp->user_index = 0x7000 + qp->qpn;
    qp->type = IB_UVERBS_QPT_RAW_PACKET;
    qp->state = QpState::kRtr;
    qp->pd = pd;
    const auto found = device.wqs.find(wq.wq->wqn);
    qp->rq = std::move(found->second);
    device.wqs.erase(found);
    QueuePair* result = qp.get();
    device.qps[qp->qpn] = std::move(qp);
    changed();
    return result;
}

Flow* Rig::make_flow(QueuePair* qp, FlowType type) {
    auto flow = std::make_unique<Flow>();
    flow->handle = next_number_++;
    flow->sequence = flow->handle;
    flow->qp = qp;
    flow->type = type;
    Flow* result = flow.get();
    device.flows[flow->handle] = std::move(flow);
    changed();
    return result;
}

uint16_t ClientSq::post(const SendOptions& options) {
    Bytes wqe(sizeof(ControlSegment));
    if (options.opcode != WqeOpcode::kNop) {
        EthernetSegment ethernet{};
        ethernet.checksum_flags = options.checksum_flags;
        ethernet.mss.set(options.mss);
        ethernet.inline_header_size.set(static_cast<uint16_t>(options.inline_header.size()));
        if (options.vlan.has_value()) {
            ethernet.inline_header_size.set(kEthInsertVlan);
            store_be16(ethernet.inline_header_start, *options.vlan);
        }
        const auto* raw = reinterpret_cast<const uint8_t*>(&ethernet);
        const size_t start = wqe.size();
        wqe.insert(wqe.end(), raw, raw + sizeof(ethernet));
        if (!options.inline_header.empty()) {
            wqe.resize(start + offsetof(EthernetSegment, inline_header_start));
            wqe.insert(wqe.end(), options.inline_header.begin(), options.inline_header.end());
            wqe.resize(std::max((wqe.size() + 15) & ~size_t{15}, start + 16));
        }
        if (!options.inline_data.empty()) {
            const size_t at = wqe.size();
            wqe.resize(at + 4);
            store_be32(wqe.data() + at,
                       kInlineData | static_cast<uint32_t>(options.inline_data.size()));
            wqe.insert(wqe.end(), options.inline_data.begin(), options.inline_data.end());
            wqe.resize((wqe.size() + 15) & ~size_t{15});
        }
        for (const Segment& part : options.segments) {
            DataSegment segment{};
            segment.address.set(part.address);
            segment.byte_count.set(part.length);
            segment.lkey.set(part.lkey);
            const auto* bytes = reinterpret_cast<const uint8_t*>(&segment);
            wqe.insert(wqe.end(), bytes, bytes + sizeof(segment));
        }
    }
    ControlSegment control{};
    control.opmod_idx_opcode.set(uint32_t{producer} << 8 | static_cast<uint8_t>(options.opcode));
    control.qpn_ds.set(qp->qpn << 8 | static_cast<uint32_t>(wqe.size() / kOctoword));
    control.fm_ce_se = static_cast<uint8_t>(static_cast<uint8_t>(options.completion) << 2 |
                                            (options.solicited ? 2 : 0));
    std::memcpy(wqe.data(), &control, sizeof(control));
    for (size_t at = 0; at < wqe.size(); at += kOctoword) {
        const auto index = static_cast<uint16_t>(producer + at / kBasicBlock);
        std::memcpy(block(index) + at % kBasicBlock, wqe.data() + at, kOctoword);
    }
    const uint16_t index = producer;
    producer = static_cast<uint16_t>(producer + (wqe.size() + kBasicBlock - 1) / kBasicBlock);
    if (options.ring_doorbell)
        ring_doorbell();
    return index;
}

}  // namespace test
}  // namespace softcx
