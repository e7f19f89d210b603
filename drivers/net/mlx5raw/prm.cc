// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/prm.h"

namespace tagwire::mlx5raw {

const char* syndrome_text(uint8_t syndrome) {
    switch (syndrome) {
        case 0x01:
            return "local length error";
        case 0x02:
            return "local queue pair operation error";
        case 0x04:
            return "local protection error";
        case kSyndromeFlushed:
            return "work request flushed";
        case 0x06:
            return "memory window bind error";
        case 0x10:
            return "bad response";
        case 0x11:
            return "local access error";
        case 0x12:
            return "remote invalid request";
        case 0x13:
            return "remote access error";
        case 0x14:
            return "remote operation error";
        case 0x15:
            return "transport retry counter exceeded";
        case 0x16:
            return "receiver not ready, retry counter exceeded";
        case 0x22:
            return "remote aborted";
        default:
            return "unknown syndrome";
    }
}

}  // namespace tagwire::mlx5raw
