// SPDX-License-Identifier: BSD-3-Clause
// The calls that copy a descriptor: a copy of a device file is the same device file.
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>

#include "drivers/softcx/uverbs/files.h"
#include "drivers/softcx/uverbs/next_call.h"

namespace {

using softcx::Next;

constinit Next<int(int)> next_dup{"dup"};
constinit Next<int(int, int)> next_dup2{"dup2"};
constinit Next<int(int, int, int)> next_dup3{"dup3"};
constinit Next<int(int, int, ...)> next_fcntl{"fcntl"};

int shared(int fd, int copy) {
    if (copy >= 0 && softcx::may_be_ours(fd))
        softcx::share_file(fd, copy);
    return copy;
}

// What the target descriptor stood for is closed by the call.
void replace(int fd, int target) {
    if (fd != target && softcx::may_be_ours(target) && ::fcntl(fd, F_GETFD) >= 0)
        softcx::forget_file(target);
}

int control(int fd, int command, void* argument) {
    const int result = next_fcntl.get()(fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? shared(fd, result) : result;
}

}  // namespace

SOFTCX_EXPORT int dup(int fd) noexcept {
    return shared(fd, next_dup.get()(fd));
}

SOFTCX_EXPORT int dup2(int fd, int target) noexcept {
    replace(fd, target);
    const int copy = next_dup2.get()(fd, target);
    return fd == target ? copy : shared(fd, copy);
}

SOFTCX_EXPORT int dup3(int fd, int target, int flags) noexcept {
    replace(fd, target);
    return shared(fd, next_dup3.get()(fd, target, flags));
}

SOFTCX_EXPORT int fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    return control(fd, command, argument);
}

SOFTCX_EXPORT int fcntl64(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    return control(fd, command, argument);
}
