// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/flow_table.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/flow_rules.h"
#include "drivers/net/mlx5raw/priorities.h"

namespace tagwire::mlx5raw {

Status FlowTable::start(FlowGround ground) {
    ground_ = std::make_unique<FlowGround>(std::move(ground));
    for (size_t i = 0; i < flows_.size(); ++i) {
        if (Status status = install(*flows_[i]); !status.ok()) {
            status.message = "flow rule " + std::to_string(i) + ": " + status.message;
            stop();
            return status;
        }
    }
    return {};
}

void FlowTable::stop() {
    for (const std::unique_ptr<rte_flow>& flow : flows_) {
        uninstall(*flow);
    }
    shared_.clear();
    ground_.reset();
}

Status FlowTable::add(std::unique_ptr<rte_flow> flow) {
    if (running()) {
        if (Status status = install(*flow); !status.ok()) {
            return status;
        }
    }
    flows_.push_back(std::move(flow));
    return {};
}

Status FlowTable::install(rte_flow& flow) {
    Status status = qps_for(flow, flow.qps);
    if (status.ok() && flow.actions.count) {
        status = flow.counter.start(ground_->device);
    }
    if (status.ok()) {
        status = install_rules(flow);
    }
    if (!status.ok()) {
        uninstall(flow);
    }
    return status;
}

// A rule for each hash type that its packets may have and whose QP is not that of a
// wider type, which has a rule anyway.
Status FlowTable::install_rules(rte_flow& flow) {
    const RuleActions actions = {
        .tag = flow.actions.tag, .drop = flow.actions.drop, .counters = flow.counter.verbs()};
    for (size_t i = 0; i < kHashTypeCount; ++i) {
        const auto type = static_cast<HashType>(i);
        if (!flow.pattern.may_be(type)) {
            continue;
        }
        const HashType serving = flow.qps->serving(type);
        if (serving != type && flow.pattern.may_be(serving)) {
            continue;
        }
        for (const RuleMatch& match : flow.pattern.matches()) {
            const auto priority =
                static_cast<uint16_t>(flow.priority * kPrioritiesPerSet + priority_of(type));
            Flow rule = create_rule(flow.qps->of(serving), ground_->device.port(), priority,
                                    narrowed(match, type), actions);
            if (rule == nullptr) {
                const int error = errno;
                return failure(error, "the device refuses the rule (%s part): %s%s", name_of(type),
                               strerror(error), remedy_for_rule(error));
            }
            flow.rules.push_back(std::move(rule));
        }
    }
    return {};
}

void FlowTable::uninstall(rte_flow& flow) {
    flow.counter.pause();
    flow.rules.clear();
    flow.counter.stop();
    flow.qps.reset();
}

Status FlowTable::qps_for(const rte_flow& flow, std::shared_ptr<HashQps>& out) {
    // A QUEUE rule hashes as the port does, so that packets have their hash. A rule that
    // drops needs a QP too, though nothing reaches it.
    const FlowActions& actions = flow.actions;
    SharedQps wanted = {
        .queues = actions.drop ? std::vector<uint16_t>{0} : actions.queues,
        .types = actions.drop         ? 0
                 : actions.types != 0 ? actions.types
                                      : ground_->rss.types,
        .key = actions.own_key ? actions.key : ground_->rss.key,
        .qps = {},
    };
    for (const uint16_t queue : wanted.queues) {
        if (queue >= ground_->queues.size()) {
            return failure(EINVAL, "it names queue %u of %zu; destroy it or configure more queues",
                           queue, ground_->queues.size());
        }
    }
    std::erase_if(shared_, [](const SharedQps& entry) { return entry.qps.expired(); });
    for (const SharedQps& entry : shared_) {
        if (entry.queues == wanted.queues && entry.types == wanted.types &&
            entry.key == wanted.key) {
            out = entry.qps.lock();
            return {};
        }
    }
    Status status =
        HashQps::create(ground_->device, entries_for(wanted.queues), wanted.types, wanted.key, out);
    if (status.ok()) {
        wanted.qps = out;
        shared_.push_back(std::move(wanted));
    }
    return status;
}

// Queues that are not a power of two take turns in a table of the port's size, so
// that none gets much more than another.
std::vector<ibv_wq*> FlowTable::entries_for(const std::vector<uint16_t>& queues) const {
    size_t size = queues.size();
    if (!std::has_single_bit(size)) {
        size = std::max(std::bit_ceil(size), ground_->rss.table.size());
    }
    std::vector<ibv_wq*> entries(size);
    for (size_t i = 0; i < size; ++i) {
        entries[i] = ground_->queues[queues[i % queues.size()]];
    }
    return entries;
}

bool FlowTable::remove(const rte_flow* flow) {
    return std::erase_if(flows_, [&](const std::unique_ptr<rte_flow>& entry) {
               return entry.get() == flow;
           }) != 0;
}

const rte_flow* FlowTable::find(const FlowPattern& pattern, uint32_t priority) const {
    for (const std::unique_ptr<rte_flow>& flow : flows_) {
        if (flow->priority == priority && flow->pattern == pattern) {
            return flow.get();
        }
    }
    return nullptr;
}

rte_flow* FlowTable::find(const rte_flow* flow) const {
    for (const std::unique_ptr<rte_flow>& entry : flows_) {
        if (entry.get() == flow) {
            return entry.get();
        }
    }
    return nullptr;
}

bool FlowTable::marks() const {
    return std::any_of(flows_.begin(), flows_.end(), [](const std::unique_ptr<rte_flow>& flow) {
        return flow->actions.tag != 0;
    });
}

void FlowTable::dump(const rte_flow* only, FILE* file) const {
    for (size_t i = 0; i < flows_.size(); ++i) {
        const rte_flow& flow = *flows_[i];
        if (only != nullptr && only != &flow) {
            continue;
        }
        fprintf(file, "rule %zu: priority %u, %s", i, flow.priority,
                flow.actions.drop ? "drop" : "queues");
        for (const uint16_t queue : flow.actions.queues) {
            fprintf(file, " %u", queue);
        }
        if (flow.actions.tag != 0) {
            fprintf(file, ", tag 0x%x", flow.actions.tag);
        }
        fprintf(file, ", %zu verbs rules%s\n", flow.rules.size(),
                running() ? "" : " (the port is stopped)");
    }
}

}  // namespace tagwire::mlx5raw
