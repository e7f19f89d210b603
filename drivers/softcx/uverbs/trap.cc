// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/uverbs/trap.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "drivers/softcx/log.h"

namespace softcx::trap {

namespace {

using Action = struct sigaction;

constexpr size_t kMaxPages = 1024;
constexpr size_t kPage = 4096;
constexpr uint64_t kTrapFlag = 1 << 8;  // EFLAGS.TF: Intel SDM 3, 17.4.3 "Single-stepping"

// The kernel's signal set is 64 bits wide, and nothing may be written behind them in a
// signal frame.
using KernelMask = uint64_t;
constexpr KernelMask bit_of(int signal) {
    return KernelMask{1} << (signal - 1);
}
// Those that an instruction causes; they can't wait.
constexpr KernelMask kSynchronous =
    bit_of(SIGSEGV) | bit_of(SIGTRAP) | bit_of(SIGBUS) | bit_of(SIGFPE) | bit_of(SIGILL);

std::array<std::atomic<uintptr_t>, kMaxPages> pages;  // 0: free
std::atomic<size_t> page_count{0};                    // slots ever used
std::atomic<bool> installed{false};
std::atomic<Run> run_device{nullptr};

// The program's actions; each is written once and never freed, because a handler may be
// reading it.
std::atomic<const struct sigaction*> fault_action{nullptr};
std::atomic<const struct sigaction*> trap_action{nullptr};

std::atomic<const struct sigaction*>& action_of(int signal) {
    return signal == SIGSEGV ? fault_action : trap_action;
}

// Held while a page is open, over the return to the program and its one instruction.
std::atomic_flag page_lock;

void lock_pages() noexcept {
    while (page_lock.test_and_set(std::memory_order_acquire))
        ::sched_yield();
}

void unlock_pages() noexcept {
    page_lock.clear(std::memory_order_release);
}

// One instruction of this thread. It may touch two pages at most.
struct Step {
    bool active;
    uint32_t opened;
    uintptr_t page[2];
    KernelMask mask;
    uint64_t trap_flag;  // as the program had it
};
// Found without a call into the loader, which is no place to go to from a signal handler.
[[gnu::tls_model("initial-exec")]] constinit thread_local Step step{};

bool is_guarded(uintptr_t page) noexcept {
    const size_t count = page_count.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i)
        if (pages[i].load(std::memory_order_relaxed) == page)
            return true;
    return false;
}

bool protect(uintptr_t page, int protection) noexcept {
    return ::mprotect(reinterpret_cast<void*>(page), kPage, protection) == 0;
}

#if defined(__x86_64__)
uint64_t flags_of(const ucontext_t& context) noexcept {
    return static_cast<uint64_t>(context.uc_mcontext.gregs[REG_EFL]);
}
void set_flags(ucontext_t& context, uint64_t flags) noexcept {
    context.uc_mcontext.gregs[REG_EFL] = static_cast<greg_t>(flags);
}
#else
uint64_t flags_of(const ucontext_t&) noexcept {
    return 0;
}
void set_flags(ucontext_t&, uint64_t) noexcept {}
#endif

KernelMask mask_of(const ucontext_t& context) noexcept {
    KernelMask mask;
    std::memcpy(&mask, &context.uc_sigmask, sizeof(mask));
    return mask;
}

void set_mask(ucontext_t& context, KernelMask mask) noexcept {
    std::memcpy(&context.uc_sigmask, &mask, sizeof(mask));
}

void begin_step(ucontext_t& context) noexcept {
    lock_pages();
    step.active = true;
    step.opened = 0;
    step.mask = mask_of(context);
    step.trap_flag = flags_of(context) & kTrapFlag;
    set_flags(context, flags_of(context) | kTrapFlag);
    // No handler of the program may run between the store and its trap.
    set_mask(context, ~kSynchronous);
}

void end_step(ucontext_t& context) noexcept {
    for (uint32_t i = 0; i < step.opened; ++i)
        protect(step.page[i], PROT_READ);
    set_flags(context, (flags_of(context) & ~kTrapFlag) | step.trap_flag);
    set_mask(context, step.mask);
    step.active = false;
    unlock_pages();
}

// What would have happened without us. A handler of the program runs with the signals
// blocked that it asked for.
void pass_on(int signal, siginfo_t* info, void* raw) noexcept {
    std::atomic<const struct sigaction*>& kept = action_of(signal);
    const struct sigaction* action = kept.load(std::memory_order_acquire);
    const bool sent = info->si_code <= 0;  // by kill(2) or the like
    const bool has_handler =
        action != nullptr && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
    if (!has_handler) {
        if (sent && action != nullptr && action->sa_handler == SIG_IGN)
            return;
        // The instruction is executed again, and ends the program.
        installed.store(false, std::memory_order_release);
        struct sigaction deadly {};
        deadly.sa_handler = SIG_DFL;
        ::sigaction(signal, &deadly, nullptr);
        if (sent)
            ::raise(signal);
        return;
    }
    sigset_t mask = action->sa_mask;
    if ((action->sa_flags & SA_NODEFER) == 0)
        ::sigaddset(&mask, signal);
    sigset_t before;
    const KernelMask interrupted = mask_of(*static_cast<ucontext_t*>(raw));
    for (int other = 1; other <= 64; ++other)
        if ((interrupted & bit_of(other)) != 0)
            ::sigaddset(&mask, other);
    ::pthread_sigmask(SIG_SETMASK, &mask, &before);
    if ((action->sa_flags & SA_RESETHAND) != 0)
        kept.store(nullptr, std::memory_order_release);
    if ((action->sa_flags & SA_SIGINFO) != 0)
        action->sa_sigaction(signal, info, raw);
    else
        action->sa_handler(signal);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_fault(int signal, siginfo_t* info, void* raw) {
    const int saved_errno = errno;
    auto& context = *static_cast<ucontext_t*>(raw);
    const uintptr_t page = reinterpret_cast<uintptr_t>(info->si_addr) & ~(kPage - 1);
    if (info->si_code == SEGV_ACCERR && is_guarded(page) && step.opened < std::size(step.page)) {
        if (!step.active)
            begin_step(context);
        // Fails when the mapping has just gone: then the next fault is the program's own.
        if (protect(page, PROT_READ | PROT_WRITE)) {
            step.page[step.opened++] = page;
            errno = saved_errno;
            return;
        }
    }
    if (step.active)
        end_step(context);
    step.opened = 0;
    pass_on(signal, info, raw);
    errno = saved_errno;
}

void on_trap(int signal, siginfo_t* info, void* raw) {
    if (!step.active) {
        pass_on(signal, info, raw);
        return;
    }
    const int saved_errno = errno;
    end_step(*static_cast<ucontext_t*>(raw));
    step.opened = 0;
    // The page is closed again: whoever stored meanwhile has announced it before this.
    if (const Run run = run_device.load(std::memory_order_acquire))
        run();
    errno = saved_errno;
}

void reset_in_child() {
    page_lock.clear();
}

bool take_over(int signal, void (*handler)(int, siginfo_t*, void*), int flags,
               KernelMask blocked) noexcept {
    struct sigaction ours {};
    ours.sa_sigaction = handler;
    ours.sa_flags = SA_SIGINFO | flags;
    ::sigemptyset(&ours.sa_mask);
    for (int other = 1; other <= 64; ++other)
        if ((blocked & bit_of(other)) != 0)
            ::sigaddset(&ours.sa_mask, other);
    auto* before = new (std::nothrow) Action{};
    if (before == nullptr || ::sigaction(signal, &ours, before) != 0)
        return false;
    action_of(signal).store(before, std::memory_order_release);
    return true;
}

bool install(Run run) noexcept {
    run_device.store(run, std::memory_order_release);
    if (installed.load(std::memory_order_acquire))
        return true;
    // The fault handler is short, and on the alternate stack a program's own handler still
    // works after a stack overflow. The device runs on the thread's own stack.
    if (!take_over(SIGSEGV, on_fault, SA_ONSTACK, ~kSynchronous) ||
        !take_over(SIGTRAP, on_trap, 0, ~kSynchronous))
        return false;
    ::pthread_atfork(nullptr, nullptr, reset_in_child);
    installed.store(true, std::memory_order_release);
    return true;
}

bool remember(uintptr_t page) noexcept {
    for (size_t i = 0; i < kMaxPages; ++i) {
        uintptr_t free = 0;
        if (!pages[i].compare_exchange_strong(free, page))
            continue;
        size_t count = page_count.load();
        while (count < i + 1 && !page_count.compare_exchange_weak(count, i + 1))
            ;
        return true;
    }
    return false;
}

}  // namespace

bool guard(void* address, size_t length, Run run) noexcept {
    if (!kAvailable || ::getpagesize() != static_cast<int>(kPage)) {
        errno = ENOTSUP;
        return false;
    }
    if (!install(run))
        return false;
    const auto begin = reinterpret_cast<uintptr_t>(address);
    for (uintptr_t page = begin; page < begin + length; page += kPage) {
        if (!remember(page)) {
            errno = ENOSPC;
            return false;
        }
        if (!protect(page, PROT_READ))
            return false;
    }
    return true;
}

void forget(const void* address, size_t length) noexcept {
    if (!installed.load(std::memory_order_acquire))
        return;
    const auto begin = reinterpret_cast<uintptr_t>(address);
    lock_pages();
    const size_t count = page_count.load(std::memory_order_acquire);
    for (size_t i = 0; i < count; ++i) {
        const uintptr_t page = pages[i].load(std::memory_order_relaxed);
        if (page != 0 && page >= begin && page < begin + length)
            pages[i].store(0, std::memory_order_release);
    }
    unlock_pages();
}

bool keeps_action_of(int signal) noexcept {
    return (signal == SIGSEGV || signal == SIGTRAP) && installed.load(std::memory_order_acquire);
}

int exchange_action(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
    std::atomic<const struct sigaction*>& kept = action_of(signal);
    const struct sigaction* before = kept.load(std::memory_order_acquire);
    const struct sigaction nothing {};
    // Both may be the same structure.
    const struct sigaction answer = before != nullptr ? *before : nothing;
    if (action != nullptr) {
        auto* made = new (std::nothrow) Action(*action);
        if (made == nullptr) {
            errno = ENOMEM;
            return -1;
        }
        kept.store(made, std::memory_order_release);
    }
    if (old != nullptr)
        *old = answer;
    return 0;
}

}  // namespace softcx::trap
