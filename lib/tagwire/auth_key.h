// SPDX-License-Identifier: BSD-3-Clause
// Authorization keys by their digest, doc/protocol.md section 2.
#pragma once

#include <cstddef>

#include "lib/tagwire/error.h"
#include "lib/transport/siphash.h"
#include "lib/transport/transport.h"
#include "tagwire/types.h"

namespace tagwire {

inline transport::KeyDigest digest_of(const void* key, size_t size) {
    constexpr transport::SipKey kPublic = {0x7461677769726520, 0x6175746820206b65};
    const transport::KeyDigest digest = transport::siphash24(kPublic, key, size);
    return digest != transport::kNoKey ? digest : 1;
}

// 0, or -EINVAL with a text.
inline int check_auth_key(const void* key, size_t size) {
    if (size > TW_AUTH_KEY_MAX || (key == nullptr) != (size == 0)) {
        return refuse(EINVAL,
                      "auth_key has 1 to TW_AUTH_KEY_MAX (64) bytes, or is NULL with auth_key_size "
                      "0");
    }
    return 0;
}

}  // namespace tagwire
