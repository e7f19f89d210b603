// SPDX-License-Identifier: BSD-3-Clause
// Sleeping until a worker has something to do, without losing a wake-up.
//
// Whoever wants to sleep has a Waiter: an epoll descriptor that looks at the port's RX
// interrupt and the timer, which all share, and at an eventfd of its own. It arms the
// waiter first, then looks whether there is something to do after all, and sleeps only
// when there is not. What happens from then on reaches it in one of three ways:
//   - a frame comes:            the interrupt; or the timer, when the port has none
//   - time passes:              the timer, set for the worker's next deadline
//   - another thread's call:    on its way out that call sees that somebody is armed. It
//                               signals the eventfd if an operation ended or a message
//                               came, and sets the timer earlier if there is something to send.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "lib/tagwire/descriptor.h"
#include "tagwire/wait.h"
#include "tagwire/worker.h"

namespace tagwire {

class Worker;

class Waiter {
  public:
    // 0, or a negative errno with its text.
    int open() noexcept;
    int watch(int fd) noexcept;

    int fd() const { return epoll_.get(); }
    void signal() const noexcept;  // any thread, also in a signal handler
    void drain() const noexcept;

    bool armed = false;
    bool sleeps = false;  // a blocking call has it
    Waiter* next = nullptr;

  private:
    Descriptor epoll_;
    Descriptor event_;
};

// The interrupt of a queue of an ethdev port or of the caller's nic, where there is one.
class RxInterrupt {
  public:
    // How the port or nic is asked for it is said at once; it is opened when somebody wants to
    // sleep.
    void use(uint16_t port, uint16_t queue) noexcept;
    void use(const tw_nic& nic) noexcept;
    ~RxInterrupt();

    void open() noexcept;
    int fd() const { return fd_; }
    bool present() const { return fd_ >= 0; }
    // From now on, or if a frame is there already at once, the descriptor is readable. False:
    // the port does not do it after all.
    bool enable() noexcept;
    void disable() noexcept;

  private:
    int switch_to(bool on) noexcept;

    int fd_ = -1;
    bool enabled_ = false;
    bool has_port_ = false;
    uint16_t port_ = 0;
    uint16_t queue_ = 0;
    tw_nic nic_{};
    // Of a port. Nested in those of the waiters, since EAL's epoll interface wants one of its own.
    Descriptor epoll_;
};

class Waiting {
  public:
    explicit Waiting(Worker& worker) : worker_(worker) {}
    ~Waiting();

    // What wakes for frames; without an interrupt the timer does.
    RxInterrupt& interrupt() { return interrupt_; }

    bool armed() const { return armed_ != 0; }
    int add(Waiter& waiter);
    void remove(Waiter& waiter) noexcept;
    // 0: may sleep. -EAGAIN: there is something to do.
    int arm(Waiter& waiter) noexcept;
    // As arm, and -EAGAIN after a signal, which takes it back.
    int arm_unless(std::atomic<bool>& signalled, Waiter& waiter) noexcept;
    // The end of a call while somebody is armed.
    void leave() noexcept;

    // The one of tw_worker_wait_fd.
    int user_fd(int* fd);
    int user_arm() noexcept;
    void user_signal() noexcept;  // any thread

    // Blocking calls. Makes progress, and sleeps without the lock, until `look` gives a result
    // or the time is over: then -EAGAIN. Negative: no end.
    template <typename Look>
    ssize_t wait(int timeout_ms, Look&& look) noexcept {
        const uint64_t start = now();
        const uint64_t end =
            timeout_ms < 0 ? UINT64_MAX : start + static_cast<uint64_t>(timeout_ms) * 1'000'000;
        std::optional<ssize_t> result = look();
        while (!result) {
            turn();
            result = look();
            if (result) {
                break;
            }
            const uint64_t time = now();
            if (time >= end) {
                return -EAGAIN;
            }
            if (time - start < kSpinNs) {
                continue;
            }
            int error = 0;
            Waiter* const waiter = take_sleeper(&error);
            if (waiter == nullptr) {
                return error;
            }
            if (arm(*waiter) == 0) {
                result = look();  // a signal may have come before
                if (!result) {
                    sleep(*waiter, end - time);
                }
                disarm(*waiter);
            }
            waiter->sleeps = false;
            if (!result) {
                result = look();
            }
        }
        return *result;
    }
    // All blocking calls look again. Any thread, also in a signal handler.
    void signal_sleepers() const noexcept;

  private:
    // Going to sleep and waking up costs more than an answer that is on its way.
    static constexpr uint64_t kSpinNs = 20'000;
    static constexpr uint64_t kShortestPeriodNs = 50'000;
    static constexpr uint64_t kLongestPeriodNs = 1'000'000;
    static constexpr int kTurnsBeforeSleep = 16;

    static uint64_t now() noexcept;
    void turn() noexcept;
    void sleep(const Waiter& waiter, uint64_t longest_ns) noexcept;
    Waiter* take_sleeper(int* error) noexcept;
    int open_sources() noexcept;
    bool has_work(uint64_t activity) noexcept;
    void disarm(Waiter& waiter) noexcept;
    void wake_all() noexcept;
    void set_timer(uint64_t time) noexcept;

    Worker& worker_;
    uint32_t armed_ = 0;
    uint64_t seen_activity_ = 0;  // when the armed ones were armed
    uint64_t last_activity_ = 0;  // when anyone was armed last
    uint64_t period_ns_ = kShortestPeriodNs;
    uint64_t timer_at_ = UINT64_MAX;
    Descriptor timer_;
    RxInterrupt interrupt_;
    std::vector<Waiter*> waiters_;
    std::unique_ptr<Waiter> user_waiter_;
    std::atomic<Waiter*> user_ = nullptr;
    std::atomic<bool> user_signalled_ = false;
    // Those of blocking calls. One is added at the front when none is free, and none goes: so
    // that a signal can walk the list without the lock.
    std::atomic<Waiter*> sleepers_ = nullptr;
};

}  // namespace tagwire

struct tw_wait final {
    explicit tw_wait(tagwire::Worker& owner) : worker(owner) {}
    tagwire::Worker& worker;
    tagwire::Waiter waiter;
    std::atomic<bool> signalled = false;
};
