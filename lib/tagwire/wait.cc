// SPDX-License-Identifier: BSD-3-Clause
// rte_eth_dev_conf_get is experimental in DPDK 22.11.
#define ALLOW_EXPERIMENTAL_API
#include "lib/tagwire/wait.h"

#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

namespace {

int no_descriptor(int error) noexcept {
    return fail(error, "no descriptor to sleep on: %s (ulimit -n?)", tw_strerror(error));
}

}  // namespace

int Waiter::open() noexcept {
    epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    event_ = Descriptor(epoll_.valid() ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1);
    if (!event_.valid()) {
        return no_descriptor(errno);
    }
    return watch(event_.get());
}

int Waiter::watch(int fd) noexcept {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        return no_descriptor(errno);
    }
    return 0;
}

void Waiter::signal() const noexcept {
    const int error = errno;
    eventfd_write(event_.get(), 1);
    errno = error;  // of whatever a signal handler interrupted
}

void Waiter::drain() const noexcept {
    eventfd_t value;
    eventfd_read(event_.get(), &value);
}

void RxInterrupt::use(uint16_t port, uint16_t queue) noexcept {
    has_port_ = true;
    port_ = port;
    queue_ = queue;
}

void RxInterrupt::use(const tw_nic& nic) noexcept {
    nic_ = nic;
}

// A port that was configured without RX interrupts would say aloud that it has none.
void RxInterrupt::open() noexcept {
    if (!has_port_) {
        fd_ = nic_.rx_interrupt != nullptr ? nic_.rx_fd : -1;
        return;
    }
    rte_eth_conf conf{};
    if (rte_eth_dev_conf_get(port_, &conf) != 0 || conf.intr_conf.rxq == 0) {
        return;
    }
    Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
    if (epoll.valid() &&
        rte_eth_dev_rx_intr_ctl_q(port_, queue_, epoll.get(), RTE_INTR_EVENT_ADD, nullptr) == 0) {
        epoll_ = std::move(epoll);
        fd_ = epoll_.get();
    }
}

RxInterrupt::~RxInterrupt() {
    disable();
    if (epoll_.valid() && rte_eth_dev_is_valid_port(port_) != 0) {
        rte_eth_dev_rx_intr_ctl_q(port_, queue_, epoll_.get(), RTE_INTR_EVENT_DEL, nullptr);
    }
}

int RxInterrupt::switch_to(bool on) noexcept {
    if (!has_port_) {
        return nic_.rx_interrupt(nic_.context, on ? 1 : 0);
    }
    return on ? rte_eth_dev_rx_intr_enable(port_, queue_)
              : rte_eth_dev_rx_intr_disable(port_, queue_);
}

// What came before is taken off first: the descriptor would stay readable.
bool RxInterrupt::enable() noexcept {
    if (epoll_.valid()) {
        rte_epoll_event event;
        rte_epoll_wait(epoll_.get(), &event, 1, 0);
    }
    disable();
    enabled_ = switch_to(true) == 0;
    return enabled_;
}

void RxInterrupt::disable() noexcept {
    if (enabled_) {
        switch_to(false);
        enabled_ = false;
    }
}

Waiting::~Waiting() {
    Waiter* sleeper = sleepers_.load();
    while (sleeper != nullptr) {
        Waiter* const next = sleeper->next;
        delete sleeper;
        sleeper = next;
    }
}

int Waiting::open_sources() noexcept {
    if (timer_.valid()) {
        return 0;
    }
    timer_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!timer_.valid()) {
        return no_descriptor(errno);
    }
    interrupt_.open();
    return 0;
}

int Waiting::add(Waiter& waiter) {
    if (int error = open_sources(); error != 0) {
        return error;
    }
    int error = waiter.open();
    if (error == 0) {
        error = waiter.watch(timer_.get());
    }
    if (error == 0 && interrupt_.present()) {
        error = waiter.watch(interrupt_.fd());
    }
    if (error == 0) {
        waiters_.push_back(&waiter);
    }
    return error;
}

void Waiting::remove(Waiter& waiter) noexcept {
    disarm(waiter);
    std::erase(waiters_, &waiter);
}

int Waiting::arm(Waiter& waiter) noexcept {
    disarm(waiter);
    if (armed_ != 0 && worker_.activity() != seen_activity_) {
        wake_all();  // what was before is not news for the new one, but is for the others
    }
    waiter.drain();
    const uint64_t activity = worker_.activity();
    const bool interrupt = interrupt_.present() && interrupt_.enable();
    waiter.armed = true;
    if (armed_++ == 0) {
        seen_activity_ = activity;
    }
    if (has_work(activity)) {
        disarm(waiter);
        return -EAGAIN;
    }
    period_ns_ =
        activity != last_activity_ ? kShortestPeriodNs : std::min(2 * period_ns_, kLongestPeriodNs);
    last_activity_ = activity;
    const uint64_t deadline = worker_.deadline();
    set_timer(interrupt ? deadline : std::min(deadline, worker_.now_ns() + period_ns_));
    return 0;
}

// A frame that came before the interrupt was enabled need not raise it; so until a turn finds
// none. An acknowledgement leaves a turn later than what it answers.
bool Waiting::has_work(uint64_t activity) noexcept {
    for (int i = 0; i < kTurnsBeforeSleep; ++i) {
        const uint64_t frames = worker_.received_frames();
        worker_.progress();
        if (worker_.activity() != activity) {
            return true;
        }
        if (worker_.received_frames() == frames && worker_.deadline() > worker_.now_ns()) {
            return false;
        }
    }
    return true;
}

void Waiting::disarm(Waiter& waiter) noexcept {
    if (waiter.armed) {
        waiter.armed = false;
        if (--armed_ == 0) {
            interrupt_.disable();
        }
    }
}

void Waiting::wake_all() noexcept {
    for (Waiter* waiter : waiters_) {
        if (waiter->armed) {
            waiter->armed = false;
            waiter->signal();
        }
    }
    armed_ = 0;
    interrupt_.disable();
}

void Waiting::leave() noexcept {
    if (worker_.activity() != seen_activity_) {
        wake_all();
    } else if (const uint64_t deadline = worker_.deadline(); deadline < timer_at_) {
        set_timer(deadline);
    }
}

// In the worker's clock.
void Waiting::set_timer(uint64_t time) noexcept {
    timer_at_ = time;
    itimerspec when{};
    if (time != UINT64_MAX) {
        const uint64_t clock = worker_.now_ns();
        const uint64_t delay = time > clock ? time - clock : 1;  // 0 would be never
        when.it_value.tv_sec = static_cast<time_t>(delay / 1'000'000'000);
        when.it_value.tv_nsec = static_cast<long>(delay % 1'000'000'000);
    }
    timerfd_settime(timer_.get(), 0, &when, nullptr);
}

int Waiting::user_fd(int* fd) {
    if (user_waiter_ == nullptr) {
        auto waiter = std::make_unique<Waiter>();
        if (const int error = add(*waiter); error != 0) {
            return error;
        }
        user_waiter_ = std::move(waiter);
        user_.store(user_waiter_.get());
    }
    *fd = user_waiter_->fd();
    return 0;
}

int Waiting::user_arm() noexcept {
    if (user_waiter_ == nullptr) {
        return refuse(EINVAL, "tw_worker_arm: there is no descriptor yet (tw_worker_wait_fd)");
    }
    return arm_unless(user_signalled_, *user_waiter_);
}

int Waiting::arm_unless(std::atomic<bool>& signalled, Waiter& waiter) noexcept {
    const int result = arm(waiter);
    if (!signalled.exchange(false)) {
        return result;
    }
    disarm(waiter);
    return -EAGAIN;
}

// The mark is for a signal that comes before the descriptor, or between two sleeps.
void Waiting::user_signal() noexcept {
    user_signalled_.store(true);
    if (const Waiter* waiter = user_.load(); waiter != nullptr) {
        waiter->signal();
    }
}

uint64_t Waiting::now() noexcept {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// Others come in between two turns.
void Waiting::turn() noexcept {
    worker_.progress();
    if (worker_.shared()) {
        if (armed()) {
            leave();
        }
        worker_.lock().unlock();
        worker_.lock().give_way();
        worker_.lock().lock();
    }
}

void Waiting::sleep(const Waiter& waiter, uint64_t longest_ns) noexcept {
    constexpr uint64_t kMs = 1'000'000;
    const uint64_t ms = longest_ns / kMs + (longest_ns % kMs != 0);
    const int timeout = ms > INT32_MAX ? -1 : static_cast<int>(ms);
    epoll_event event;
    if (worker_.shared()) {
        worker_.lock().unlock();
    }
    epoll_wait(waiter.fd(), &event, 1, timeout);
    if (worker_.shared()) {
        worker_.lock().lock();
    }
}

Waiter* Waiting::take_sleeper(int* error) noexcept {
    for (Waiter* waiter = sleepers_.load(); waiter != nullptr; waiter = waiter->next) {
        if (!waiter->sleeps) {
            waiter->sleeps = true;
            return waiter;
        }
    }
    Waiter* added = nullptr;
    *error = guarded([&] {
        auto waiter = std::make_unique<Waiter>();
        if (const int failure = add(*waiter); failure != 0) {
            return failure;
        }
        waiter->sleeps = true;
        waiter->next = sleepers_.load();
        added = waiter.release();
        sleepers_.store(added);
        return 0;
    });
    return added;
}

void Waiting::signal_sleepers() const noexcept {
    for (const Waiter* waiter = sleepers_.load(); waiter != nullptr; waiter = waiter->next) {
        waiter->signal();
    }
}

}  // namespace tagwire

using namespace tagwire;

int tw_worker_wait_fd(tw_worker* worker, int* fd) {
    if (worker == nullptr || fd == nullptr) {
        return refuse(EINVAL, "tw_worker_wait_fd: worker and fd cannot be NULL");
    }
    const Guard guard(*worker);
    return guarded([&] { return worker->waiting().user_fd(fd); });
}

int tw_worker_arm(tw_worker* worker) {
    if (worker == nullptr) {
        return refuse(EINVAL, "tw_worker_arm: worker cannot be NULL");
    }
    const Guard guard(*worker);
    return worker->waiting().user_arm();
}

int tw_worker_signal(tw_worker* worker) {
    if (worker == nullptr) {
        return refuse(EINVAL, "tw_worker_signal: worker cannot be NULL");
    }
    worker->waiting().user_signal();
    return 0;
}

int tw_wait_open(tw_worker* worker, tw_wait** wait) {
    if (worker == nullptr || wait == nullptr) {
        return refuse(EINVAL, "tw_wait_open: worker and wait cannot be NULL");
    }
    const Guard guard(*worker);
    return guarded([&] {
        auto opened = std::make_unique<tw_wait>(*worker);
        if (const int error = worker->waiting().add(opened->waiter); error != 0) {
            return error;
        }
        worker->child_opened();
        *wait = opened.release();
        return 0;
    });
}

int tw_wait_close(tw_wait* wait) {
    if (wait == nullptr) {
        return refuse(EINVAL, "tw_wait_close: wait cannot be NULL");
    }
    const Guard guard(wait->worker);
    wait->worker.waiting().remove(wait->waiter);
    wait->worker.child_closed();
    delete wait;
    return 0;
}

int tw_wait_fd(const tw_wait* wait, int* fd) {
    if (wait == nullptr || fd == nullptr) {
        return refuse(EINVAL, "tw_wait_fd: wait and fd cannot be NULL");
    }
    *fd = wait->waiter.fd();
    return 0;
}

int tw_wait_arm(tw_wait* wait) {
    if (wait == nullptr) {
        return refuse(EINVAL, "tw_wait_arm: wait cannot be NULL");
    }
    const Guard guard(wait->worker);
    return wait->worker.waiting().arm_unless(wait->signalled, wait->waiter);
}

int tw_wait_signal(tw_wait* wait) {
    if (wait == nullptr) {
        return refuse(EINVAL, "tw_wait_signal: wait cannot be NULL");
    }
    wait->signalled.store(true);
    wait->waiter.signal();
    return 0;
}
