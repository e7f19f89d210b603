// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/flow_counter.h"

#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"

namespace tagwire::mlx5raw {
namespace {

// Places in the array that a read fills.
constexpr uint32_t kPackets = 0, kBytes = 1, kValues = 2;

Status attach(ibv_counters* counters, ibv_counter_description what, uint32_t index) {
    ibv_counter_attach_attr attributes = {};
    attributes.counter_desc = what;
    attributes.index = index;
    if (const int error = ibv_attach_counters_point_flow(counters, &attributes, nullptr);
        error != 0) {
        return failure(error, "the device cannot count %s of a flow: %s",
                       what == IBV_COUNTER_PACKETS ? "packets" : "bytes", strerror(error));
    }
    return {};
}

}  // namespace

Status FlowCounter::start(const Device& device) {
    ibv_counters_init_attr attributes = {};
    counters_.reset(ibv_create_counters(device.context(), &attributes));
    if (counters_ == nullptr) {
        return failure(errno,
                       "%s cannot count the packets of a flow (verbs counters: %s); leave COUNT "
                       "out",
                       device.name(), strerror(errno));
    }
    if (Status status = attach(counters_.get(), IBV_COUNTER_PACKETS, kPackets); !status.ok()) {
        return status;
    }
    return attach(counters_.get(), IBV_COUNTER_BYTES, kBytes);
}

void FlowCounter::pause() {
    if (counters_ == nullptr) {
        return;
    }
    Values now;
    if (const Status status = read_verbs(now); !status.ok()) {
        MLX5RAW_LOG(WARNING, "%s", status.message.c_str());
        return;
    }
    earlier_.packets += now.packets;
    earlier_.bytes += now.bytes;
}

Status FlowCounter::read_verbs(Values& out) const {
    uint64_t values[kValues] = {};
    if (const int error = ibv_read_counters(counters_.get(), values, kValues, 0); error != 0) {
        return failure(error, "cannot read the counters of a flow: %s", strerror(error));
    }
    out = {values[kPackets], values[kBytes]};
    return {};
}

Status FlowCounter::read(Values& out) const {
    Values now;
    if (counters_ != nullptr) {
        if (Status status = read_verbs(now); !status.ok()) {
            return status;
        }
    }
    out = {now.packets + earlier_.packets - reset_.packets,
           now.bytes + earlier_.bytes - reset_.bytes};
    return {};
}

Status FlowCounter::read_and_reset(Values& out) {
    Status status = read(out);
    if (status.ok()) {
        reset_.packets += out.packets;
        reset_.bytes += out.bytes;
    }
    return status;
}

}  // namespace tagwire::mlx5raw
