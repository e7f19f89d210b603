// SPDX-License-Identifier: BSD-3-Clause
// The calls of the C library that trap mode has to know of: where doorbell pages are mapped,
// and what the program wants done about the two signals that it uses. In other modes they
// only pass on.
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "drivers/softcx/log.h"
#include "drivers/softcx/model/machine.h"
#include "drivers/softcx/uverbs/files.h"
#include "drivers/softcx/uverbs/trap.h"

#define SOFTCX_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

namespace trap = softcx::trap;

template <class Function>
Function* next(std::atomic<Function*>& known, const char* name) {
    Function* found = known.load(std::memory_order_relaxed);
    if (found == nullptr) {
        found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
        known.store(found, std::memory_order_relaxed);
    }
    return found;
}

bool is_doorbell_mapping(int protection, int flags, int fd) {
    if (fd < 0 || (protection & PROT_WRITE) == 0 || (flags & MAP_SHARED) == 0 ||
        !softcx::may_be_ours(fd))
        return false;
    const softcx::Machine* machine = softcx::machine_if_any();
    return machine != nullptr && machine->configuration.mode == softcx::Mode::kTrap &&
           softcx::context_of(fd) != nullptr;
}

// The kernel's call, not the next definition: programs map memory before the loader is
// ready to look for one.
void* map_memory(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
    const long mapped = ::syscall(SYS_mmap, address, length, protection, flags, fd, offset);
    if (mapped == -1)
        return MAP_FAILED;
    void* memory = reinterpret_cast<void*>(mapped);
    if (!is_doorbell_mapping(protection, flags, fd) ||
        trap::guard(memory, length, softcx::run_doorbells))
        return memory;
    const int error = errno;
    softcx::log(softcx::LogLevel::kError, "doorbells can't be trapped (%s): use --mode thread",
                std::strerror(error));
    ::syscall(SYS_munmap, memory, length);
    errno = error;
    return MAP_FAILED;
}

// A store to a doorbell with these blocked would end the program.
const sigset_t* without_ours(const sigset_t* set, sigset_t& room, int how) {
    if (set == nullptr || how == SIG_UNBLOCK || !trap::keeps_action_of(SIGSEGV))
        return set;
    room = *set;
    ::sigdelset(&room, SIGSEGV);
    ::sigdelset(&room, SIGTRAP);
    return &room;
}

}  // namespace

SOFTCX_EXPORT void* mmap(void* address, size_t length, int protection, int flags, int fd,
                         off_t offset) noexcept {
    return map_memory(address, length, protection, flags, fd, offset);
}

SOFTCX_EXPORT void* mmap64(void* address, size_t length, int protection, int flags, int fd,
                           off64_t offset) noexcept {
    return map_memory(address, length, protection, flags, fd, offset);
}

SOFTCX_EXPORT int munmap(void* address, size_t length) noexcept {
    trap::forget(address, length);
    return static_cast<int>(::syscall(SYS_munmap, address, length));
}

SOFTCX_EXPORT int sigaction(int signal, const struct sigaction* action,
                            struct sigaction* old) noexcept {
    static std::atomic<int (*)(int, const struct sigaction*, struct sigaction*)> known;
    if (trap::keeps_action_of(signal))
        return trap::exchange_action(signal, action, old);
    return next(known, "sigaction")(signal, action, old);
}

SOFTCX_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
    static std::atomic<sighandler_t (*)(int, sighandler_t)> known;
    if (!trap::keeps_action_of(number))
        return next(known, "signal")(number, handler);
    struct sigaction action {
    }, old{};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    return trap::exchange_action(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

SOFTCX_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    static std::atomic<int (*)(int, const sigset_t*, sigset_t*)> known;
    sigset_t room;
    return next(known, "sigprocmask")(how, without_ours(set, room, how), old);
}

SOFTCX_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) noexcept {
    static std::atomic<int (*)(int, const sigset_t*, sigset_t*)> known;
    sigset_t room;
    return next(known, "pthread_sigmask")(how, without_ours(set, room, how), old);
}
