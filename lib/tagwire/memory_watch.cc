// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/memory_watch.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <rte_lcore.h>
#include <rte_version.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace tagwire {
namespace {

constexpr uint64_t kEvents =
    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;

// The features that the kernel has are told once per descriptor: so one to ask,
// one to use.
int open_descriptor(uint64_t features) {
    const int flags = O_CLOEXEC | O_NONBLOCK;
    // Without the right to handle faults of the kernel, which never come here.
    int fd = static_cast<int>(syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY));
    if (fd < 0 && errno == EINVAL) {  // Linux before 5.11 does not know the flag
        fd = static_cast<int>(syscall(SYS_userfaultfd, flags));
    }
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = features;
    if (fd >= 0 && ioctl(fd, UFFDIO_API, &api) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

}  // namespace

MemoryWatch* MemoryWatch::get(const char** reason) {
    static const char* refusal = nullptr;
    // It stays: its thread reads until the process ends.
    static MemoryWatch* const watch = []() -> MemoryWatch* {
        const int fd = open_descriptor(kEvents | UFFD_FEATURE_PAGEFAULT_FLAG_WP);
        if (fd < 0) {
            refusal = errno == EPERM ? "userfaultfd is not permitted (sysctl "
                                       "vm.unprivileged_userfaultfd, or "
                                       "the container's seccomp profile)"
                                     : "the kernel has no userfaultfd with events "
                                       "and write protection "
                                       "(Linux 5.7, CONFIG_USERFAULTFD)";
            return nullptr;
        }
        auto made = std::unique_ptr<MemoryWatch>(new MemoryWatch(fd));
        if (!made->map_sentinel() || !made->start()) {
            refusal = "there is no memory or no thread for it";
            close(fd);
            return nullptr;
        }
        return made.release();
    }();
    *reason = refusal;
    return watch;
}

bool MemoryWatch::map_sentinel() {
    const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* page = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    sentinel_ = reinterpret_cast<uintptr_t>(page);
    uffdio_register request{};
    request.range = {sentinel_, size};
    request.mode = UFFDIO_REGISTER_MODE_WP;
    return ioctl(fd_, UFFDIO_REGISTER, &request) == 0;
}

// The kernel changes no protection (EAGAIN) from the moment when memory that is
// watched begins to go until the event of that was read. From then on busy_
// says that our thread is at it.
bool MemoryWatch::settled() const {
    uffdio_writeprotect nothing{};
    nothing.range = {sentinel_, static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
    return ioctl(fd_, UFFDIO_WRITEPROTECT, &nothing) == 0 && !busy_.load(std::memory_order_seq_cst);
}

// Not on the core of the caller, which may be polling there for ever.
bool MemoryWatch::start() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    cpu_set_t others;
    CPU_ZERO(&others);
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < cpus && cpu < CPU_SETSIZE; ++cpu) {
        CPU_SET(static_cast<size_t>(cpu), &others);
    }
    pthread_t thread;
    const bool started = pthread_create(
                             &thread, nullptr,
                             [](void* self) -> void* {
                                 static_cast<MemoryWatch*>(self)->read_events();
                                 return nullptr;
                             },
                             this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (started) {
        pthread_setname_np(thread, "tagwire-memory");
        pthread_setaffinity_np(thread, sizeof(others), &others);
        pthread_detach(thread);
    }
    return started;
}

bool MemoryWatch::watch(WatchedRange& range) {
    {
        const std::lock_guard lock(mutex_);
        range.gone = false;
        range.next = first_;
        first_ = &range;
    }
    // Nobody ever write-protects it: no fault comes, the events alone do.
    uffdio_register request{};
    request.range = {range.base, range.end - range.base};
    request.mode = UFFDIO_REGISTER_MODE_WP;
    if (ioctl(fd_, UFFDIO_REGISTER, &request) == 0) {
        return true;
    }
    unwatch(range);
    return false;
}

void MemoryWatch::unwatch(WatchedRange& range) {
    const std::lock_guard lock(mutex_);
    WatchedRange** at = &first_;
    while (*at != nullptr && *at != &range) {
        at = &(*at)->next;
    }
    if (*at == nullptr) {
        return;
    }
    *at = range.next;
    // Pages that another range has as well stay watched.
    for (const WatchedRange* other = first_; other != nullptr; other = other->next) {
        if (other->base < range.end && range.base < other->end) {
            return;
        }
    }
    uffdio_range pages{range.base, range.end - range.base};
    ioctl(fd_, UFFDIO_UNREGISTER,
          &pages);  // fails for what is not mapped any more
}

// Memory must not be allocated or freed here: the pages might be watched ones.
void MemoryWatch::read_events() {
    for (;;) {
        pollfd wanted{fd_, POLLIN, 0};
        if (poll(&wanted, 1, -1) < 0) {
            continue;
        }
        busy_.store(true, std::memory_order_seq_cst);
        uffd_msg message;
        while (read(fd_, &message, sizeof(message)) == sizeof(message)) {
            switch (message.event) {
                case UFFD_EVENT_UNMAP:
                case UFFD_EVENT_REMOVE:
                    mark_gone(message.arg.remove.start, message.arg.remove.end);
                    break;
                case UFFD_EVENT_REMAP:
                    mark_gone(message.arg.remap.from,
                              message.arg.remap.from + message.arg.remap.len);
                    break;
                default:
                    break;
            }
        }
        busy_.store(false, std::memory_order_seq_cst);
    }
}

void MemoryWatch::mark_gone(uintptr_t base, uintptr_t end) {
    const std::lock_guard lock(mutex_);
    for (WatchedRange* range = first_; range != nullptr; range = range->next) {
        if (range->base < end && base < range->end) {
            range->gone.store(true, std::memory_order_release);
            marks_.fetch_add(1, std::memory_order_release);
        }
    }
}

}  // namespace tagwire
