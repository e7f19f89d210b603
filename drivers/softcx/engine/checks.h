// SPDX-License-Identifier: BSD-3-Clause
// What a client must not do. Hardware would misbehave quietly; the model names it.
#pragma once

#include <array>
#include <cstdint>

#include "drivers/softcx/model/objects.h"

namespace softcx {

enum class ClientCheck : uint8_t {
    kDoorbellPastRing,   // more WQEs announced than the ring holds
    kWqeIndex,           // the WQE's counter is not its place in the ring
    kWqeQpn,             // the WQE names another QP
    kWqeSize,            // ds is zero, or runs past the doorbell
    kWqeSegment,         // a segment runs past the end of its WQE
    kWqeOpcode,          // an opcode that this queue can't execute
    kWqeLength,          // no frame is that short or long; a large send without segment size
    kSendNotReady,       // send WQE posted to a QP in INIT or RTR
    kKeyUnknown,         // a segment's lkey never was a region's
    kKeyDeregistered,    // the region is gone
    kKeyOtherPd,         // the region belongs to another protection domain
    kMemoryBounds,       // the segment leaves its region
    kMemoryReadOnly,     // a receive into a region without LOCAL_WRITE
    kConsumerBackwards,  // CQ consumer index behind an earlier one, or past the producer
    kReceiveInReset,     // receive WQE posted to a WQ in RESET
    kCount,
};

inline constexpr size_t kClientChecks = static_cast<size_t>(ClientCheck::kCount);

const char* client_check_name(ClientCheck check) noexcept;

// Whose error it is: "QP", "WQ" or "CQ", and its number.
struct ClientObject {
    const char* kind;
    uint32_t number;
};

// Counts the error (PortCounters::client_errors), logs it once per device and
// check, and aborts with SOFTCX_CHECKS=fatal. `detail` follows the object in the log.
void report_client_error(Device& device, ClientCheck check, ClientObject object,
                         const char* detail = "") noexcept;

}  // namespace softcx
