// SPDX-License-Identifier: BSD-3-Clause
#include "lib/transport/log.h"

namespace tagwire::transport {

int log_type = 0;

namespace {
// Before EAL starts, so that --log-level on its command line finds the type.
__attribute__((constructor)) void register_log_type() {
    const int type = rte_log_register_type_and_pick_level("tagwire.transport", RTE_LOG_NOTICE);
    log_type = type >= 0 ? type : RTE_LOGTYPE_USER1;
}
}  // namespace

}  // namespace tagwire::transport
