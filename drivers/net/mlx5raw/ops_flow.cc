// SPDX-License-Identifier: BSD-3-Clause
// rte_flow as ethdev calls it.
#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"
#include "drivers/net/mlx5raw/priorities.h"

namespace tagwire::mlx5raw {
namespace {

int check_attributes(const rte_flow_attr* attributes, rte_flow_error* error) {
    if (attributes == nullptr) {
        return flow_failure(error, EINVAL, RTE_FLOW_ERROR_TYPE_ATTR, nullptr, "no attributes");
    }
    if (attributes->group != 0) {
        return flow_failure(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP, attributes,
                            "rules are in group 0 only");
    }
    if (attributes->priority >= kFlowPriorities) {
        return flow_failure(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY, attributes,
                            "priorities are 0 to %u", kFlowPriorities - 1u);
    }
    if (attributes->egress != 0) {
        return flow_failure(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS, attributes,
                            "rules are for received packets");
    }
    if (attributes->transfer != 0) {
        return flow_failure(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_TRANSFER, attributes,
                            "there is no switch to transfer through");
    }
    if (attributes->ingress == 0) {
        return flow_failure(error, EINVAL, RTE_FLOW_ERROR_TYPE_ATTR_INGRESS, attributes,
                            "say ingress");
    }
    return 0;
}

// nullptr, with `error` filled, when the rule cannot be.
std::unique_ptr<rte_flow> parse(const rte_eth_dev* dev, const rte_flow_attr* attributes,
                                const rte_flow_item items[], const rte_flow_action actions[],
                                rte_flow_error* error) {
    auto flow = std::make_unique<rte_flow>();
    if (check_attributes(attributes, error) != 0 ||
        parse_pattern(items, flow->pattern, error) != 0 ||
        parse_actions(actions, dev->data->nb_rx_queues, flow->actions, error) != 0) {
        return nullptr;
    }
    flow->priority = attributes->priority;
    if (port_of(dev).flows.find(flow->pattern, flow->priority) != nullptr) {
        flow_failure(error, EEXIST, RTE_FLOW_ERROR_TYPE_HANDLE, nullptr,
                     "there is a rule with this pattern and priority; destroy it first");
        return nullptr;
    }
    return flow;
}

int validate(rte_eth_dev* dev, const rte_flow_attr* attributes, const rte_flow_item items[],
             const rte_flow_action actions[], rte_flow_error* error) {
    return parse(dev, attributes, items, actions, error) != nullptr ? 0 : -rte_errno;
}

rte_flow* create(rte_eth_dev* dev, const rte_flow_attr* attributes, const rte_flow_item items[],
                 const rte_flow_action actions[], rte_flow_error* error) {
    std::unique_ptr<rte_flow> flow = parse(dev, attributes, items, actions, error);
    if (flow == nullptr) {
        return nullptr;
    }
    Port& port = port_of(dev);
    rte_flow* const handle = flow.get();
    report_flow_marks(dev, port.flows.marks() || handle->actions.tag != 0);
    if (const Status status = port.flows.add(std::move(flow)); !status.ok()) {
        report_flow_marks(dev, port.flows.marks());
        flow_failure(error, -status.code, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, "%s",
                     status.message.c_str());
        return nullptr;
    }
    return handle;
}

int destroy(rte_eth_dev* dev, rte_flow* flow, rte_flow_error* error) {
    if (!port_of(dev).flows.remove(flow)) {
        return flow_failure(error, ENOENT, RTE_FLOW_ERROR_TYPE_HANDLE, flow,
                            "the port has no such rule");
    }
    report_flow_marks(dev, port_of(dev).flows.marks());
    return 0;
}

int flush(rte_eth_dev* dev, rte_flow_error*) {
    port_of(dev).flows.clear();
    report_flow_marks(dev, false);
    return 0;
}

int query(rte_eth_dev* dev, rte_flow* flow, const rte_flow_action* action, void* data,
          rte_flow_error* error) {
    rte_flow* const known = port_of(dev).flows.find(flow);
    if (known == nullptr) {
        return flow_failure(error, ENOENT, RTE_FLOW_ERROR_TYPE_HANDLE, flow,
                            "the port has no such rule");
    }
    for (; action->type == RTE_FLOW_ACTION_TYPE_VOID; ++action) {
    }
    if (action->type != RTE_FLOW_ACTION_TYPE_COUNT || !known->actions.count) {
        return flow_failure(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, action,
                            "only the COUNT of a rule that has one can be asked for");
    }
    auto* const out = static_cast<rte_flow_query_count*>(data);
    FlowCounter::Values values;
    const Status status =
        out->reset != 0 ? known->counter.read_and_reset(values) : known->counter.read(values);
    if (!status.ok()) {
        return flow_failure(error, -status.code, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, "%s",
                            status.message.c_str());
    }
    out->hits_set = out->bytes_set = 1;
    out->hits = values.packets;
    out->bytes = values.bytes;
    return 0;
}

int isolate(rte_eth_dev* dev, int on, rte_flow_error* error) {
    Port& port = port_of(dev);
    const bool before = port.isolated;
    port.isolated = on != 0;
    if (port.isolated == before || !dev->data->dev_started) {
        return 0;
    }
    if (const Status status = apply_steering(dev); !status.ok()) {
        port.isolated = before;
        return flow_failure(error, -status.code, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, nullptr, "%s",
                            status.message.c_str());
    }
    return 0;
}

int dump(rte_eth_dev* dev, rte_flow* flow, FILE* file, rte_flow_error* error) {
    if (flow != nullptr && port_of(dev).flows.find(flow) == nullptr) {
        return flow_failure(error, ENOENT, RTE_FLOW_ERROR_TYPE_HANDLE, flow,
                            "the port has no such rule");
    }
    port_of(dev).flows.dump(flow, file);
    return 0;
}

}  // namespace

void report_flow_marks(rte_eth_dev* dev, bool on) {
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        if (RxQueue* queue = rx_queue(dev, i); queue != nullptr) {
            queue->report_flow_marks(on);
        }
    }
}

int flow_ops_get(rte_eth_dev*, const rte_flow_ops** out) {
    static const rte_flow_ops kFlowOps = {
        .validate = validate,
        .create = create,
        .destroy = destroy,
        .flush = flush,
        .query = query,
        .isolate = isolate,
        .dev_dump = dump,
    };
    *out = &kFlowOps;
    return 0;
}

}  // namespace tagwire::mlx5raw
