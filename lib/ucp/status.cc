// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/status.h"

#include <cerrno>
#include <cstdlib>

#include "tagwire/types.h"

namespace tagwire::ucp {

ucs_status_t status_of(int error) {
    switch (std::abs(error)) {
        case 0:
            return UCS_OK;
        case TW_ETRUNC:
            return UCS_ERR_MESSAGE_TRUNCATED;
        case ECANCELED:
            return UCS_ERR_CANCELED;
        case ECONNRESET:
            return UCS_ERR_CONNECTION_RESET;
        case ETIMEDOUT:
            return UCS_ERR_ENDPOINT_TIMEOUT;
        case ECONNREFUSED:
        case EHOSTUNREACH:
        case ENETUNREACH:
            return UCS_ERR_UNREACHABLE;
        case EKEYREJECTED:
            return UCS_ERR_REJECTED;
        case ENOMEM:
            return UCS_ERR_NO_MEMORY;
        case EINVAL:
        case EAFNOSUPPORT:
            return UCS_ERR_INVALID_PARAM;
        case EACCES:
        case EFAULT:
        case ERANGE:
        case ENOKEY:
            return UCS_ERR_OUT_OF_RANGE;  // the key or the range is not what the peer mapped
        case EAGAIN:
            return UCS_ERR_NO_RESOURCE;
        case ENOSPC:
        case EMSGSIZE:
            return UCS_ERR_EXCEEDS_LIMIT;
        case ENODEV:
            return UCS_ERR_NO_DEVICE;
        case EADDRINUSE:
        case EBUSY:
            return UCS_ERR_BUSY;
        case EADDRNOTAVAIL:
            return UCS_ERR_INVALID_ADDR;
        case ENOSYS:
        case EOPNOTSUPP:
            return UCS_ERR_UNSUPPORTED;
        default:
            return UCS_ERR_IO_ERROR;
    }
}

bool is_peer_failure(ucs_status_t status) {
    return status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_ENDPOINT_TIMEOUT ||
           status == UCS_ERR_UNREACHABLE || status == UCS_ERR_REJECTED;
}

}  // namespace tagwire::ucp
