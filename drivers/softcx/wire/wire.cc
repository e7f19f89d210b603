// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/wire.h"

#include "drivers/softcx/wire/local_wire.h"

namespace softcx {

std::unique_ptr<Wire> open_wire(const std::string& specification, uint32_t device_index,
                                std::string* error) {
    if (specification == "pair")
        return open_pair_wire(device_index, error);
    if (specification == "loopback")
        return open_loopback_wire(error);
    *error = "unknown wire '" + specification + "': use pair, loopback or switch:NAME";
    return nullptr;
}

}  // namespace softcx
