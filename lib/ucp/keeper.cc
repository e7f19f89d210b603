// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/keeper.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

using Clock = std::chrono::steady_clock;

// Far below every timeout of the transport but a retransmission's, and too seldom to be felt.
constexpr auto kInterval = std::chrono::milliseconds(2);
// While a program sleeps until something comes.
constexpr auto kShortInterval = std::chrono::microseconds(200);
// A peer that puts and gets is served at full speed, until it has been quiet for so long.
constexpr auto kAttention = std::chrono::milliseconds(1);
// A program that takes a turn more often than that is at work.
constexpr auto kLongestTurn = std::chrono::microseconds(50);

}  // namespace

// Never destroyed: a program may leave its workers to the end of the process.
Keeper& Keeper::instance() {
    static auto* keeper = new Keeper;
    return *keeper;
}

void Keeper::add(Worker& worker) {
    const std::lock_guard<std::mutex> lock(mutex_);
    workers_.push_back(&worker);
    if (!thread_.joinable() && !stopping_) {
        // The program's signals are for the program's threads.
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread_ = std::thread([this] { run(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        std::atexit(stop);
    }
}

void Keeper::remove(Worker& worker) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(workers_, &worker);
}

// A program is about to sleep.
void Keeper::hurry() {
    if (!hurried_.exchange(true)) {
        wake_.notify_all();
    }
}

void Keeper::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    Clock::time_point active{};
    Clock::time_point last{};
    while (!stopping_) {
        const Clock::time_point now = Clock::now();
        const auto enough = static_cast<unsigned>((now - last) / kLongestTurn) + 1;
        last = now;
        bool sleeps = false;
        for (Worker* worker : workers_) {
            const Worker::Kept kept = worker->keep_alive(enough, now);
            active = kept.found ? now : active;
            sleeps = sleeps || kept.sleeps;
        }
        if (now - active < kAttention) {
            lock.unlock();
            sched_yield();
            lock.lock();
            continue;
        }
        hurried_ = sleeps;
        wake_.wait_for(lock, sleeps ? kShortInterval : kInterval,
                       [&] { return stopping_ || (hurried_ && !sleeps); });
    }
}

// Before the EAL's memory goes.
void Keeper::stop() {
    Keeper& keeper = instance();
    {
        const std::lock_guard<std::mutex> lock(keeper.mutex_);
        keeper.stopping_ = true;
    }
    keeper.wake_.notify_all();
    if (keeper.thread_.joinable()) {
        keeper.thread_.join();
    }
}

}  // namespace tagwire::ucp
