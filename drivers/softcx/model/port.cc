// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/port.h"

#include "drivers/softcx/wire/wire.h"

namespace softcx {

bool link_is_up(const Port& port) noexcept {
    return port.link_up && port.wire && port.wire->link_up();
}

uint64_t eui64(const MacAddress& mac) noexcept {
    const uint8_t bytes[8] = {
        static_cast<uint8_t>(mac[0] ^ 2), mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    uint64_t value = 0;
    for (const uint8_t byte : bytes)
        value = (value << 8) | byte;
    return value;
}

bool gid_entry(const Port& port, uint32_t index, Gid& gid, GidType& type) noexcept {
    gid.fill(0);
    type = index == 0 ? GidType::kRoceV1 : GidType::kRoceV2;
    if (index > 1)
        return false;
    gid[0] = 0xfe;
    gid[1] = 0x80;
    const uint64_t interface = eui64(port.mac);
    for (int i = 0; i < 8; ++i)
        gid[8 + i] = static_cast<uint8_t>(interface >> (56 - 8 * i));
    return true;
}

}  // namespace softcx
