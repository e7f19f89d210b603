// SPDX-License-Identifier: BSD-3-Clause
// The transport's log type: --log-level=tagwire.transport:debug shows every
// change of a session's state.
#pragma once

#include <rte_log.h>

namespace tagwire::transport {

extern int log_type;

}  // namespace tagwire::transport

// One call for the line: what other processes write does not get into it.
#define TAGWIRE_LOG(level, format, ...)                                                     \
    do {                                                                                    \
        if (rte_log_can_log(static_cast<uint32_t>(::tagwire::transport::log_type),          \
                            RTE_LOG_##level)) [[unlikely]] {                                \
            rte_log(RTE_LOG_##level, static_cast<uint32_t>(::tagwire::transport::log_type), \
                    "tagwire transport: " format "\n" __VA_OPT__(, ) __VA_ARGS__);          \
        }                                                                                   \
    } while (false)
