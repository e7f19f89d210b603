// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/engine/checks.h"

#include <cstdlib>
#include <string_view>

#include "drivers/softcx/engine/state.h"
#include "drivers/softcx/log.h"

namespace softcx {

const char* client_check_name(ClientCheck check) noexcept {
    switch (check) {
        case ClientCheck::kDoorbellPastRing:
            return "doorbell-past-ring";
        case ClientCheck::kWqeIndex:
            return "wqe-index";
        case ClientCheck::kWqeQpn:
            return "wqe-qpn";
        case ClientCheck::kWqeSize:
            return "wqe-size";
        case ClientCheck::kWqeSegment:
            return "wqe-segment";
        case ClientCheck::kWqeOpcode:
            return "wqe-opcode";
        case ClientCheck::kWqeLength:
            return "wqe-length";
        case ClientCheck::kSendNotReady:
            return "send-not-ready";
        case ClientCheck::kKeyUnknown:
            return "lkey-unknown";
        case ClientCheck::kKeyDeregistered:
            return "lkey-deregistered";
        case ClientCheck::kKeyOtherPd:
            return "lkey-other-pd";
        case ClientCheck::kMemoryBounds:
            return "memory-bounds";
        case ClientCheck::kMemoryReadOnly:
            return "memory-read-only";
        case ClientCheck::kConsumerBackwards:
            return "cq-consumer-backwards";
        case ClientCheck::kReceiveInReset:
            return "receive-in-reset";
        case ClientCheck::kCount:
            break;
    }
    return "unknown";
}

void report_client_error(Device& device, ClientCheck check, ClientObject object,
                         const char* detail) noexcept {
    ++device.port.counters.client_errors;
    bool& reported = device.engine->reported[static_cast<size_t>(check)];
    const char* policy = std::getenv("SOFTCX_CHECKS");
    const bool fatal = policy != nullptr && std::string_view(policy) == "fatal";
    if (!reported)
        log(LogLevel::kError, "client error %s on %s, %s 0x%x%s%s", client_check_name(check),
            device.name.c_str(), object.kind, object.number, detail,
            fatal ? ": SOFTCX_CHECKS=fatal ends the program" : " (further ones are only counted)");
    reported = true;
    if (fatal)
        std::abort();
}

}  // namespace softcx
