// SPDX-License-Identifier: BSD-3-Clause
// Authorization keys by their digest, doc/protocol.md section 2.
#pragma once

#include <cstddef>

#include "lib/transport/siphash.h"
#include "lib/transport/transport.h"

namespace tagwire {

inline transport::KeyDigest digest_of(const void* key, size_t size) {
    constexpr transport::SipKey kPublic = {0x7461677769726520, 0x6175746820206b65};
    const transport::KeyDigest digest = transport::siphash24(kPublic, key, size);
    return digest != transport::kNoKey ? digest : 1;
}

}  // namespace tagwire
