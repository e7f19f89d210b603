// SPDX-License-Identifier: BSD-3-Clause
// The seam between the control path (uverbs/) and the data path (engine/).
#pragma once

#include <cstdint>

#include "drivers/softcx/model/objects.h"

namespace softcx {

// Runs the device: send rings as far as their doorbell records say, then frames
// from the wire, at most `budget` of each. Returns how many packets moved. Waits for a
// command that holds Device::mutex; returns 0 at once when another thread's step does.
uint32_t engine_step(Device& device, uint32_t budget) noexcept;

// Everything that the doorbells announced is executed before a command changes
// the objects. The caller holds Device::mutex.
void engine_drain(Device& device) noexcept;

// Moving to ERR: every outstanding WQE gets a CQE "work request flushed".
void engine_flush(Device& device, WorkQueue& wq) noexcept;
void engine_flush(Device& device, QueuePair& qp) noexcept;

// After a WQ or QP went to RESET its ring starts at zero.
void engine_reset(WorkQueue& wq) noexcept;
void engine_reset(QueuePair& qp) noexcept;

// A new CQ: marks its arm record as never armed. The first arm of libmlx5 writes
// zero, which is also what it creates the record with.
void engine_prepare(CompletionQueue& cq) noexcept;

// The client armed a CQ (doorbell record [1]); raises the event at once when one is due.
void engine_check_arm(Device& device, CompletionQueue& cq) noexcept;

// The client made a new buffer of `entries` CQEs for the CQ: a CQE "resized" ends the old one,
// and the next goes to the new one. False, and nothing changes, when the CQEs that wait do not
// fit there. The caller holds Device::mutex.
bool engine_resize(Device& device, CompletionQueue& cq, uint8_t* buffer, uint32_t entries) noexcept;

// An MR is about to vanish: cached translations are dropped.
void engine_forget(Device& device, const MemoryRegion& mr) noexcept;

// The device's clock at this moment; a step reads it once.
uint64_t read_core_clock() noexcept;

// The events to the client and the clock that it sees are defined by the control path; the caller
// holds Device::mutex.

// An armed CQ got its CQE: one record to its channel, if it has one. The engine
// clears CompletionQueue::armed; the counting is done here.
void raise_completion_event(CompletionQueue& cq) noexcept;

// Asynchronous events: IB_EVENT_* of the uapi; `element` is the object's
// user_handle, or the port number for port events. The counting is done here.
void report_async_event(Device& device, uint32_t event_type, uint64_t element) noexcept;

// The clock of a step, before its first CQE.
void publish_clock(Device& device, uint64_t ticks) noexcept;

}  // namespace softcx
