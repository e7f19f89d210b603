// SPDX-License-Identifier: BSD-3-Clause
// The transport's log type: --log-level=tagwire.transport:debug shows every
// change of a session's state.
#pragma once

#include <rte_log.h>

namespace tagwire::transport {

extern int log_type;

}  // namespace tagwire::transport

#define TAGWIRE_LOG(level, ...)                                                                    \
    do {                                                                                           \
        if (rte_log_can_log(static_cast<uint32_t>(::tagwire::transport::log_type),                 \
                            RTE_LOG_##level)) [[unlikely]] {                                       \
            rte_log(RTE_LOG_##level, static_cast<uint32_t>(::tagwire::transport::log_type),        \
                    "tagwire transport: " __VA_ARGS__);                                            \
            rte_log(RTE_LOG_##level, static_cast<uint32_t>(::tagwire::transport::log_type), "\n"); \
        }                                                                                          \
    } while (false)
