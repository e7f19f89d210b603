// SPDX-License-Identifier: BSD-3-Clause
// Address vectors, tables and maps alike: an fi_addr_t is the core's index.
#pragma once

#include <rdma/fi_domain.h>
#include <tagwire/tagwire.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "lib/fi/domain.h"
#include "lib/fi/shared_av.h"

namespace tagwire::fi {

struct EventQueue;

// Smaller addresses are the core's indexes; in larger ones the upper bits say which receive
// context of a scalable endpoint is meant (fi_rx_addr).
inline constexpr fi_addr_t kPlainAddresses = fi_addr_t{1} << 40;

// Authorization keys of a vector: their number within the core, from here on.
inline constexpr fi_addr_t kKeyAddresses = fi_addr_t{1} << 39;

struct AddressVector {
    fid_av fid;
    Domain* domain;
    tw_av* av;
    bool asynchronous;  // insertions end with an event
    EventQueue* eq;
    int context_bits;
    std::unique_ptr<SharedTable> shared;  // of a vector with a name
    size_t shared_seen = 0;

    // Inserts what another process appended since; whether there was anything.
    bool catch_up();
    // Contexts that were named, by their fi_rx_addr, and back: the source of a message is told as
    // such, too.
    std::unordered_map<fi_addr_t, tw_addr> contexts;
    std::unordered_map<tw_addr, fi_addr_t> context_names;
    fi_addr_t name_of(tw_addr index) const {
        const auto found = context_names.find(index);
        return found == context_names.end() ? index : found->second;
    }
    // Of an address that a context's belongs to.
    fi_addr_t base_of(fi_addr_t address) const {
        return address & ((fi_addr_t{1} << (64 - context_bits)) - 1);
    }
    // Of fi_av_insert_auth_key, and of addresses that were inserted with one.
    using Key = std::shared_ptr<const std::vector<uint8_t>>;
    std::unordered_map<fi_addr_t, Key> keys;
    std::unordered_map<fi_addr_t, Key> key_of;

    // The core's index of a context; FI_ADDR_NOTAVAIL when there is no such address.
    tw_addr context_of(fi_addr_t address);
};

}  // namespace tagwire::fi
