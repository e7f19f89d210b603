// SPDX-License-Identifier: BSD-3-Clause
// The guard on doorbell pages by itself: without device, verbs, or interposed calls.
#include "drivers/softcx/uverbs/trap.h"

#include <gtest/gtest.h>
#include <setjmp.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace softcx {
namespace {

constexpr size_t kPage = 4096;

// "Doorbell records": what was announced before the store, and what the device saw of it.
std::array<std::atomic<uint64_t>, 8> announced;
std::array<uint64_t, 8> seen;
std::atomic<uint64_t> runs;
std::atomic_flag running;
const volatile uint64_t* watched = nullptr;
uint64_t watched_value = 0;

void run_device() noexcept {
    while (running.test_and_set(std::memory_order_acquire))
        ;
    for (size_t i = 0; i < announced.size(); ++i)
        seen[i] = announced[i].load(std::memory_order_acquire);
    if (watched != nullptr)
        watched_value = *watched;
    runs.fetch_add(1);
    running.clear(std::memory_order_release);
}

sigjmp_buf back;
std::atomic<int> caught;
void* caught_at = nullptr;

void on_signal(int signal, siginfo_t* info, void*) {
    caught.store(signal);
    caught_at = info->si_addr;
    siglongjmp(back, 1);
}

class Trap : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!trap::kAvailable)
            GTEST_SKIP() << "trap mode is for x86-64";
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer puts handlers of its own before those of the program";
#endif
        page_ = map(PROT_READ | PROT_WRITE);
        ASSERT_TRUE(trap::guard(page_, kPage, run_device));
        runs = 0;
        caught = 0;
        watched = nullptr;
    }

    void TearDown() override {
        trap::forget(page_, kPage);
        ::munmap(page_, kPage);
        watched = nullptr;
    }

    static uint8_t* map(int protection) {
        return static_cast<uint8_t*>(
            ::mmap(nullptr, kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }

    volatile uint64_t* doorbell(size_t offset = 0x800) {
        return reinterpret_cast<volatile uint64_t*>(page_ + offset);
    }

    // As the interposed sigaction does it.
    static void handle(int signal) {
        struct sigaction action {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO;
        ASSERT_TRUE(trap::keeps_action_of(signal));
        ASSERT_EQ(trap::exchange_action(signal, &action, nullptr), 0);
    }

    uint8_t* page_ = nullptr;
};

TEST_F(Trap, TheDeviceRunsOnceForEachStoreAndSeesIt) {
    watched = doorbell();
    for (uint64_t value = 1; value <= 100; ++value) {
        *doorbell() = value;
        EXPECT_EQ(runs.load(), value);
        EXPECT_EQ(watched_value, value);
    }
}

TEST_F(Trap, ALoadIsNoDoorbell) {
    EXPECT_EQ(*doorbell(), 0u);
    EXPECT_EQ(runs.load(), 0u);
}

TEST_F(Trap, AStoreAcrossTwoPagesIsOneDoorbell) {
    auto* pages = static_cast<uint8_t*>(
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_TRUE(trap::guard(pages, 2 * kPage, run_device));
    const uint64_t value = 0x1122334455667788;
    uint8_t* across = pages + kPage - 4;
    asm volatile("movq %0, (%1)" : : "r"(value), "r"(across) : "memory");
    EXPECT_EQ(runs.load(), 1u);
    EXPECT_EQ(std::memcmp(across, &value, sizeof(value)), 0);
    trap::forget(pages, 2 * kPage);
    ::munmap(pages, 2 * kPage);
}

TEST_F(Trap, ErrnoAndTheSignalMaskStay) {
    sigset_t before, after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = 42;
    *doorbell() = 1;
    EXPECT_EQ(errno, 42);
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    EXPECT_TRUE(sigismember(&after, SIGUSR1));
    EXPECT_FALSE(sigismember(&after, SIGUSR2));
    EXPECT_FALSE(sigismember(&after, SIGTERM));
    sigemptyset(&before);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(Trap, ThreadsThatRingTogetherLoseNothing) {
    constexpr uint64_t kStores = 3000;
    for (auto& record : announced)
        record = 0;
    std::vector<std::thread> threads;
    std::atomic<bool> stale{false};
    for (size_t i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (uint64_t value = 1; value <= kStores; ++value) {
                announced[i].store(value, std::memory_order_release);
                *doorbell(0x800 + i * 64) = value;
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(seen[i], kStores) << "the last record of thread " << i;
        EXPECT_EQ(*doorbell(0x800 + i * 64), kStores);
    }
    // Fewer than stores: those that slipped through an open page had no run of their own.
    EXPECT_LE(runs.load(), 4 * kStores);
    EXPECT_GT(runs.load(), 0u);
}

TEST_F(Trap, AFaultElsewhereIsTheProgramsOwn) {
    handle(SIGSEGV);
    uint8_t* other = map(PROT_READ);
    if (sigsetjmp(back, 1) == 0)
        *const_cast<volatile uint8_t*>(other) = 1;
    EXPECT_EQ(caught.load(), SIGSEGV);
    EXPECT_EQ(caught_at, other);
    EXPECT_EQ(runs.load(), 0u);
    *doorbell() = 1;
    EXPECT_EQ(runs.load(), 1u);
    ::munmap(other, kPage);
}

// "rep movsb" reads from where nothing is, after it has stored: the step ends in a fault.
TEST_F(Trap, AnInstructionThatFaultsAfterItsStoreLeavesThePageGuarded) {
    handle(SIGSEGV);
    auto* source = static_cast<uint8_t*>(
        ::mmap(nullptr, 2 * kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(source + kPage, kPage, PROT_NONE);
    if (sigsetjmp(back, 1) == 0) {
        const uint8_t* from = source + kPage;
        uint8_t* to = page_ + 0x800;
        size_t count = 8;
        asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    }
    EXPECT_EQ(caught.load(), SIGSEGV);
    EXPECT_EQ(caught_at, source + kPage);
    *doorbell() = 1;
    EXPECT_EQ(runs.load(), 1u);
    ::munmap(source, 2 * kPage);
}

TEST_F(Trap, ABreakpointIsTheProgramsOwn) {
    handle(SIGTRAP);
    if (sigsetjmp(back, 1) == 0)
        asm volatile("int3");
    EXPECT_EQ(caught.load(), SIGTRAP);
    *doorbell() = 1;
    EXPECT_EQ(runs.load(), 1u);
}

TEST_F(Trap, TheProgramSeesTheActionsThatItSet) {
    handle(SIGSEGV);
    struct sigaction seen_action {};
    ASSERT_EQ(trap::exchange_action(SIGSEGV, nullptr, &seen_action), 0);
    EXPECT_EQ(seen_action.sa_sigaction, on_signal);
    EXPECT_FALSE(trap::keeps_action_of(SIGUSR1));
}

TEST_F(Trap, AForgottenPageIsAnOrdinaryOne) {
    uint8_t* other = map(PROT_READ | PROT_WRITE);
    ASSERT_TRUE(trap::guard(other, kPage, run_device));
    trap::forget(other, kPage);
    ::mprotect(other, kPage, PROT_READ | PROT_WRITE);
    *const_cast<volatile uint8_t*>(other) = 1;
    EXPECT_EQ(runs.load(), 0u);
    ::munmap(other, kPage);
}

using TrapDeath = Trap;

TEST_F(TrapDeath, WithoutAHandlerAFaultEndsTheProgram) {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    trap::exchange_action(SIGSEGV, &none, nullptr);
    uint8_t* other = map(PROT_READ);
    EXPECT_EXIT(*const_cast<volatile uint8_t*>(other) = 1, ::testing::KilledBySignal(SIGSEGV), "");
    ::munmap(other, kPage);
}

TEST_F(TrapDeath, AnIgnoredFaultEndsTheProgramToo) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    trap::exchange_action(SIGSEGV, &ignore, nullptr);
    uint8_t* other = map(PROT_READ);
    EXPECT_EXIT(*const_cast<volatile uint8_t*>(other) = 1, ::testing::KilledBySignal(SIGSEGV), "");
    ::munmap(other, kPage);
}

}  // namespace
}  // namespace softcx
