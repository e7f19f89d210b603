// SPDX-License-Identifier: BSD-3-Clause
// A worker's address as programs exchange it (ucp_address_t): bytes without padding, numbers in
// network order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tagwire/types.h"

namespace tagwire::ucp {

struct WorkerAddress {
    static constexpr size_t kSize = 40;

    tw_address address;         // of the worker; `endpoint` unused
    uint16_t tag_endpoint = 0;  // its endpoint for tagged messages
    uint16_t channel_endpoint = 0;
    uint64_t uid = 0;  // random: a restarted worker at the same place is another one

    void encode(uint8_t* bytes) const;
    // False: not an address of this version.
    bool decode(const void* bytes);

    tw_address of_endpoint(uint16_t endpoint) const {
        tw_address result = address;
        result.endpoint = endpoint;
        return result;
    }
};

}  // namespace tagwire::ucp
