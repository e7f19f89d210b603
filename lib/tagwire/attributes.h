// SPDX-License-Identifier: BSD-3-Clause
// Attribute structures carry their size, so that a program built against an
// older header keeps working: fields that it does not know keep their default.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "lib/tagwire/error.h"

namespace tagwire {

// Copies the caller's attributes over `defaults`. A newer caller is accepted when
// everything this library does not know is zero.
template <typename Attributes>
int take_attributes(const Attributes* given, Attributes* defaults, const char* name) {
    if (given == nullptr) {
        return 0;
    }
    if (given->size < sizeof(given->size)) {
        return fail(EINVAL, "%s: size is %zu; set it to sizeof(struct %s)", name, given->size,
                    name);
    }
    const auto* bytes = reinterpret_cast<const char*>(given);
    if (std::any_of(bytes + std::min(sizeof(Attributes), given->size), bytes + given->size,
                    [](char byte) { return byte != 0; })) {
        return fail(E2BIG, "%s: this library knows %zu bytes of it, and %zu are in use", name,
                    sizeof(Attributes), given->size);
    }
    std::memcpy(static_cast<void*>(defaults), given, std::min(sizeof(Attributes), given->size));
    defaults->size = sizeof(Attributes);
    return 0;
}

}  // namespace tagwire
