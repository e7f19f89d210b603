// SPDX-License-Identifier: BSD-3-Clause
// Copies between a packet and a user's vector of buffers.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tagwire::transport {

// `length` bytes from byte `offset` of the vector on.
inline void gather(const iovec* iov, uint64_t offset, uint8_t* to, uint32_t length) noexcept {
    while (length > 0) {
        while (offset >= iov->iov_len) {
            offset -= iov->iov_len;
            ++iov;
        }
        const auto part = static_cast<uint32_t>(std::min<uint64_t>(length, iov->iov_len - offset));
        std::memcpy(to, static_cast<const uint8_t*>(iov->iov_base) + offset, part);
        to += part;
        length -= part;
        offset += part;
    }
}

// To byte `offset` of the vector on, which has room for it.
inline void scatter(const iovec* iov, uint64_t offset, const uint8_t* from,
                    uint32_t length) noexcept {
    while (length > 0) {
        while (offset >= iov->iov_len) {
            offset -= iov->iov_len;
            ++iov;
        }
        const auto part = static_cast<uint32_t>(std::min<uint64_t>(length, iov->iov_len - offset));
        std::memcpy(static_cast<uint8_t*>(iov->iov_base) + offset, from, part);
        from += part;
        length -= part;
        offset += part;
    }
}

}  // namespace tagwire::transport
