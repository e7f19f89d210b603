// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/rx_interrupt.h"

#include <fcntl.h>
#include <rte_io.h>

#include <cerrno>
#include <cstring>

namespace tagwire::mlx5raw {
namespace {

// PRM, "CQ doorbell": sequence number, command (zero: the next completion), index.
constexpr uint32_t kSequenceShift = 28;
constexpr uint32_t kIndexMask = 0xffffff;
constexpr uint32_t kArmRecord = 1;             // of the doorbell record's two words
constexpr uint32_t kArmRegisterOffset = 0x20;  // in the UAR page

}  // namespace

Status RxInterrupt::create(const Device& device) {
    channel_.reset(ibv_create_comp_channel(device.context()));
    if (channel_ == nullptr) {
        return failure(errno, "%s: cannot create a completion channel for RX interrupts: %s",
                       device.name(), strerror(errno));
    }
    const int flags = fcntl(channel_->fd, F_GETFL);
    if (flags < 0 || fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
        return failure(errno, "%s: the completion channel cannot be made non-blocking: %s",
                       device.name(), strerror(errno));
    }
    sequence_ = 0;
    return {};
}

void RxInterrupt::attach(const mlx5dv_cq& cq) {
    cqn_ = cq.cqn;
    arm_record_ = DoorbellRecord(cq.dbrec + kArmRecord);
    arm_register_ =
        reinterpret_cast<volatile uint64_t*>(static_cast<uint8_t*>(cq.cq_uar) + kArmRegisterOffset);
}

void RxInterrupt::arm(uint32_t consumer) {
    const uint32_t command = sequence_ << kSequenceShift | (consumer & kIndexMask);
    arm_record_.set(command);
    rte_io_wmb();  // the device compares the register with the record
    *arm_register_ = Be64::swap(uint64_t{command} << 32 | cqn_);
    rte_io_wmb();
}

bool RxInterrupt::take() {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
        sequence_ = (sequence_ + 1) & 3;
    }
    return errno == EAGAIN;
}

}  // namespace tagwire::mlx5raw
