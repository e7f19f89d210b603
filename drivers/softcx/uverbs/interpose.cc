// SPDX-License-Identifier: BSD-3-Clause
// The calls of the C library that the client library makes to reach the kernel. Each
// looks whether it concerns softcx, and otherwise goes to the next definition.
// Transparent names (open, not open64) are wanted here:
#undef _FILE_OFFSET_BITS
#undef _TIME_BITS
#undef _FORTIFY_SOURCE

#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstring>

#include "drivers/softcx/model/machine.h"
#include "drivers/softcx/uverbs/files.h"
#include "drivers/softcx/uverbs/ioctl.h"
#include "drivers/softcx/uverbs/live_files.h"
#include "drivers/softcx/uverbs/next_call.h"
#include "drivers/softcx/uverbs/tree.h"

namespace {

using softcx::Next;

using OpenCall = int(const char*, int, ...);
using OpenAtCall = int(int, const char*, int, ...);
using StatCall = int(const char*, struct stat*);
using FstatCall = int(int, struct stat*);

constinit Next<OpenCall> next_open{"open"};
constinit Next<OpenAtCall> next_openat{"openat"};
constinit Next<StatCall> next_stat{"stat"};
constinit Next<StatCall> next_lstat{"lstat"};
constinit Next<FstatCall> next_fstat{"fstat"};
constinit Next<int(int, const char*, int, unsigned, struct statx*)> next_statx{"statx"};
constinit Next<int(int)> next_close{"close"};
constinit Next<int(int, int, int)> next_socket{"socket"};
constinit Next<int(int, unsigned long, ...)> next_ioctl{"ioctl"};
constinit Next<DIR*(const char*)> next_opendir{"opendir"};
constinit Next<int(const char*, int)> next_access{"access"};
constinit Next<FILE*(const char*, const char*)> next_fopen{"fopen"};
constinit Next<ssize_t(const char*, char*, size_t)> next_readlink{"readlink"};
constinit Next<char*(const char*, char*)> next_realpath{"realpath"};

// A path of softcx's own tree in place of the one that was asked for.
class Path {
  public:
    explicit Path(const char* path) : path_(path) {
        if (const char* inside = softcx::path_in_tree(path, room_, sizeof(room_)))
            path_ = inside;
    }
    // Brings a file whose content changes up to date; for the calls that open it.
    Path& fresh() {
        if (path_ == room_)
            softcx::refresh_live_file(path_);
        return *this;
    }
    operator const char*() const { return path_; }

  private:
    const char* path_;
    char room_[PATH_MAX];
};

bool needs_mode(int flags) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

int open_path(const char* path, int flags, mode_t mode) {
    const int index = softcx::device_of_node(path);
    if (index < 0)
        return next_open.get()(Path(path).fresh(), flags, mode);
    const int fd = softcx::open_device_file(static_cast<uint32_t>(index), flags);
    if (fd >= 0)
        return fd;
    errno = -fd;
    return -1;
}

int open_path_at(int folder, const char* path, int flags, mode_t mode) {
    if (path != nullptr && path[0] == '/')
        return open_path(path, flags, mode);
    return next_openat.get()(folder, path, flags, mode);
}

int stat_path(Next<StatCall>& next, const char* path, struct stat* status) {
    const int index = softcx::device_of_node(path);
    if (index < 0)
        return next.get()(Path(path), status);
    std::memset(status, 0, sizeof(*status));
    softcx::describe_device_node(static_cast<uint32_t>(index), *status);
    return 0;
}

int stat_file(int fd, struct stat* status) {
    const int result = next_fstat.get()(fd, status);
    if (result == 0 && softcx::may_be_ours(fd))
        softcx::describe_device_file(fd, *status);
    return result;
}

mode_t mode_argument(int flags, va_list arguments) {
    return needs_mode(flags) ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

__attribute__((destructor)) void leave() {
    softcx::stop_machine();
    softcx::remove_tree();
}

}  // namespace

SOFTCX_EXPORT int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    return open_path(path, flags, mode);
}

SOFTCX_EXPORT int open64(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    return open_path(path, flags | O_LARGEFILE, mode);
}

SOFTCX_EXPORT int openat(int folder, const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    return open_path_at(folder, path, flags, mode);
}

SOFTCX_EXPORT int openat64(int folder, const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_argument(flags, arguments);
    va_end(arguments);
    return open_path_at(folder, path, flags | O_LARGEFILE, mode);
}

// What a fortified build calls when it passes no mode.
SOFTCX_EXPORT int __open_2(const char* path, int flags) {
    return open_path(path, flags, 0);
}
SOFTCX_EXPORT int __open64_2(const char* path, int flags) {
    return open_path(path, flags | O_LARGEFILE, 0);
}
SOFTCX_EXPORT int __openat_2(int folder, const char* path, int flags) {
    return open_path_at(folder, path, flags, 0);
}
SOFTCX_EXPORT int __openat64_2(int folder, const char* path, int flags) {
    return open_path_at(folder, path, flags | O_LARGEFILE, 0);
}

SOFTCX_EXPORT int stat(const char* path, struct stat* status) noexcept {
    return stat_path(next_stat, path, status);
}

SOFTCX_EXPORT int lstat(const char* path, struct stat* status) noexcept {
    return stat_path(next_lstat, path, status);
}

SOFTCX_EXPORT int fstat(int fd, struct stat* status) noexcept {
    return stat_file(fd, status);
}

// The same layout on 64-bit machines.
static_assert(sizeof(struct stat) == sizeof(struct stat64));

SOFTCX_EXPORT int stat64(const char* path, struct stat64* status) noexcept {
    return stat_path(next_stat, path, reinterpret_cast<struct stat*>(status));
}

SOFTCX_EXPORT int lstat64(const char* path, struct stat64* status) noexcept {
    return stat_path(next_lstat, path, reinterpret_cast<struct stat*>(status));
}

SOFTCX_EXPORT int fstat64(int fd, struct stat64* status) noexcept {
    return stat_file(fd, reinterpret_cast<struct stat*>(status));
}

// What programs of the distribution look at files with (ls -l). A device node stays what the
// kernel says of it.
SOFTCX_EXPORT int statx(int folder, const char* path, int flags, unsigned mask,
                        struct statx* status) noexcept {
    return next_statx.get()(folder, Path(path), flags, mask, status);
}

// What a program built against glibc before 2.33 calls.
SOFTCX_EXPORT int __xstat(int, const char* path, struct stat* status) noexcept {
    return stat_path(next_stat, path, status);
}

SOFTCX_EXPORT int __lxstat(int, const char* path, struct stat* status) noexcept {
    return stat_path(next_lstat, path, status);
}

SOFTCX_EXPORT int __fxstat(int, int fd, struct stat* status) noexcept {
    return stat_file(fd, status);
}

SOFTCX_EXPORT int close(int fd) {
    if (softcx::may_be_ours(fd))
        softcx::forget_file(fd);
    return next_close.get()(fd);
}

// The client library asks netlink for devices first, and a kernel with InfiniBand
// would answer for its own; without it the library reads sysfs.
SOFTCX_EXPORT int socket(int domain, int type, int protocol) noexcept {
    if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return next_socket.get()(domain, type, protocol);
}

SOFTCX_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
    va_list arguments;
    va_start(arguments, request);
    void* argument = va_arg(arguments, void*);
    va_end(arguments);
    if (request != RDMA_VERBS_IOCTL || !softcx::may_be_ours(fd))
        return next_ioctl.get()(fd, request, argument);
    int error = EIO;  // the device of a parent process, or one that is leaving
    if (const auto context = softcx::context_of(fd); context && !softcx::machine().stopping.load())
        error = softcx::execute_ioctl(*context, reinterpret_cast<uint64_t>(argument));
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

SOFTCX_EXPORT DIR* opendir(const char* path) {
    return next_opendir.get()(Path(path));
}

SOFTCX_EXPORT int access(const char* path, int mode) noexcept {
    if (softcx::device_of_node(path) >= 0)
        return 0;
    return next_access.get()(Path(path), mode);
}

SOFTCX_EXPORT FILE* fopen(const char* path, const char* mode) {
    return next_fopen.get()(Path(path).fresh(), mode);
}

SOFTCX_EXPORT FILE* fopen64(const char* path, const char* mode) {
    return next_fopen.get()(Path(path).fresh(), mode);
}

SOFTCX_EXPORT ssize_t readlink(const char* path, char* buffer, size_t size) noexcept {
    return next_readlink.get()(Path(path), buffer, size);
}

SOFTCX_EXPORT char* realpath(const char* path, char* resolved) noexcept {
    return next_realpath.get()(Path(path), resolved);
}
