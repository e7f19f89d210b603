// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/wire.h"

#include <string_view>

#include "drivers/softcx/wire/local_wire.h"
#include "drivers/softcx/wire/switch_wire.h"

namespace softcx {

std::unique_ptr<Wire> open_wire(const std::string& specification, uint32_t device_index,
                                std::string* error) {
    if (specification == "pair")
        return open_pair_wire(device_index, error);
    if (specification == "loopback")
        return open_loopback_wire(error);
    constexpr std::string_view kSwitch = "switch:";
    if (specification.starts_with(kSwitch))
        return open_switch_wire(specification.substr(kSwitch.size()), error);
    *error = "unknown wire '" + specification + "': use pair, loopback or switch:NAME";
    return nullptr;
}

}  // namespace softcx
