// SPDX-License-Identifier: BSD-3-Clause
// From the object maps to the flat arrays.
#include <algorithm>
#include <unordered_map>

#include "drivers/softcx/engine/compression.h"
#include "drivers/softcx/engine/state.h"

namespace softcx {

namespace {

class Rebuild {
  public:
    explicit Rebuild(EngineState& state) : state_(state), device_(state.device) {}

    void run() {
        state_.translations.build(device_.mrs);
        build_completion_ports();
        build_queues();
        build_destinations();
        build_flows();
    }

  private:
    void build_completion_ports() {
        state_.completion_ports.clear();
        state_.event_ports.clear();
        state_.compressing_ports.clear();
        state_.completion_ports.reserve(device_.cqs.size());
        for (const auto& [number, cq] : device_.cqs) {
            CompletionPort& port = state_.completion_ports.emplace_back(
                CompletionPort{cq.get(), read_doorbell(cq->doorbell) & kIndexMask});
            completion_of_[cq.get()] = &port;
            if (cq->compression != 0) {
                port.session = std::make_shared<CompressionSession>();
                state_.compressing_ports.push_back(&port);
            }
            if (cq->channel != nullptr)
                state_.event_ports.push_back(&port);
        }
    }

    void add_receive_port(WorkQueue& wq, QueuePair* qp) {
        // A WQE of a striding ring starts with a "next" segment, as in a linked list.
        const uint32_t first =
            (wq.wqe_has_signature ? kOctoword : 0) + (wq.striding ? kOctoword : 0);
        ReceivePort& port = state_.receive_ports.emplace_back(
            ReceivePort{.wq = &wq,
                        .qp = qp,
                        .completions = completion_of_.at(wq.cq),
                        .memory = {&state_.translations, wq.pd},
                        .user_index = qp != nullptr ? qp->user_index : wq.user_index,
                        .first_segment = first,
                        .segments = (wq.stride - first) / kOctoword});
        receive_of_[&wq] = &port;
    }

    void build_queues() {
        state_.send_ports.clear();
        state_.receive_ports.clear();
        // The ports are pointed at: the arrays must not move while they fill.
        state_.send_ports.reserve(device_.qps.size());
        state_.receive_ports.reserve(device_.wqs.size() + device_.qps.size());
        for (const auto& [number, wq] : device_.wqs)
            add_receive_port(*wq, nullptr);
        for (const auto& [number, qp] : device_.qps) {
            if (qp->rq != nullptr && qp->rq->wqe_count != 0)
                add_receive_port(*qp->rq, qp.get());
            if (qp->sq.wqe_count != 0)
                state_.send_ports.push_back({.qp = qp.get(),
                                             .completions = completion_of_.at(qp->sq.cq),
                                             .memory = {&state_.translations, qp->pd}});
        }
        state_.receive_needs_flush = true;
    }

    void build_destinations() {
        state_.destinations.clear();
        state_.destinations.reserve(device_.qps.size());
        for (const auto& [number, qp] : device_.qps) {
            if (qp->rss == nullptr && qp->rq == nullptr)
                continue;
            Destination& destination = state_.destinations.emplace_back(Destination{qp.get()});
            destination_of_[qp.get()] = &destination;
            if (qp->rss == nullptr) {
                const auto found = receive_of_.find(qp->rq.get());
                destination.own = found != receive_of_.end() ? found->second : nullptr;
                continue;
            }
            const RssContext& rss = *qp->rss;
            destination.fields = rss.fields;
            destination.toeplitz = std::make_unique<Toeplitz>(
                std::span(rss.key.data(), std::min<size_t>(rss.key_length, rss.key.size())));
            for (WorkQueue* wq : rss.table->entries)
                destination.table.push_back(receive_of_.at(wq));
        }
    }

    void build_flows() {
        state_.flows.clear();
        state_.local_macs.assign(1, mac_number(device_.port.mac));
        for (const auto& [handle, flow] : device_.flows) {
            if (flow->drop) {
                state_.flows.add(*flow, nullptr);
                continue;
            }
            const auto found = destination_of_.find(flow->qp);
            if (found == destination_of_.end())
                continue;  // a QP without a receive side takes nothing
            state_.flows.add(*flow, found->second);
            add_local_mac(*flow);
        }
        state_.flows.sort();
    }

    void add_local_mac(const Flow& flow) {
        constexpr MacAddress kWhole{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
        const FlowMatch& match = flow.match;
        if (flow.type != FlowType::kNormal || !match.has_ethernet || match.dst_mac_mask != kWhole ||
            (match.dst_mac[0] & 1) != 0)
            return;
        const uint64_t number = mac_number(match.dst_mac);
        std::vector<uint64_t>& macs = state_.local_macs;
        if (std::find(macs.begin(), macs.end(), number) == macs.end())
            macs.push_back(number);
    }

    EngineState& state_;
    Device& device_;
    std::unordered_map<const CompletionQueue*, CompletionPort*> completion_of_;
    std::unordered_map<const WorkQueue*, ReceivePort*> receive_of_;
    std::unordered_map<const QueuePair*, Destination*> destination_of_;
};

}  // namespace

EngineState& engine_state(Device& device) {
    if (device.engine == nullptr)
        device.engine = std::make_shared<EngineState>(device);
    EngineState& state = *device.engine;
    const uint64_t generation = device.generation.load(std::memory_order_acquire);
    if (state.generation != generation) {
        Rebuild(state).run();
        state.generation = generation;
    }
    return state;
}

}  // namespace softcx
