// SPDX-License-Identifier: BSD-3-Clause
// The caller's vector of buffers, checked and copied.
#pragma once

#include <cstdint>

#include "lib/tagwire/error.h"
#include "tagwire/types.h"

namespace tagwire {

// Copies what holds bytes. 0, or a negative errno.
inline int take_iov(const iovec* iov, size_t count, iovec* to, uint32_t* to_count,
                    uint64_t* total) {
    if (count == 1 && iov != nullptr && iov->iov_base != nullptr && iov->iov_len != 0) [[likely]] {
        *to = *iov;
        *to_count = 1;
        *total = iov->iov_len;
        return 0;
    }
    if (count > TW_IOV_LIMIT) {
        return refuse(EINVAL, "at most TW_IOV_LIMIT (8) entries in an iovec");
    }
    if (iov == nullptr && count != 0) {
        return refuse(EINVAL, "iov is NULL and count is not 0");
    }
    uint64_t sum = 0;
    uint32_t used = 0;
    for (size_t i = 0; i < count; ++i) {
        if (iov[i].iov_len == 0) {
            continue;
        }
        if (iov[i].iov_base == nullptr) {
            return refuse(EINVAL, "a buffer of more than 0 bytes is NULL");
        }
        if (__builtin_add_overflow(sum, iov[i].iov_len, &sum)) {
            return refuse(EINVAL, "the lengths of the buffers exceed the address space");
        }
        to[used++] = iov[i];
    }
    *to_count = used;
    *total = sum;
    return 0;
}

}  // namespace tagwire
