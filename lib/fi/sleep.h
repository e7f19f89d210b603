// SPDX-License-Identifier: BSD-3-Clause
// Sleeping until the worker of a domain has something to do. Each sleeping call has a descriptor of
// the worker (tagwire/wait.h) for the time, out of a pool of the domain; calls sleep without the
// domain's lock.
#pragma once

#include <tagwire/tagwire.h>

#include <chrono>
#include <mutex>
#include <vector>

namespace tagwire::fi {

struct Domain;

class SleepPool {
  public:
    // Under the domain's lock. nullptr: no descriptor is to be had.
    tw_wait* take(tw_worker* worker);
    void give(tw_wait* wait);
    // One that stays with its object; closed here.
    void add(tw_wait* wait);
    void remove(tw_wait* wait);
    // Those that sleep look again.
    void wake();
    // Before the worker is closed.
    void close();

  private:
    std::mutex mutex_;
    std::vector<tw_wait*> idle_;
    std::vector<tw_wait*> taken_;
};

// From its beginning on, what happens makes the descriptor readable. So whoever waits looks once
// more whether it is there, and then sleeps if may_sleep().
class Sleep {
  public:
    explicit Sleep(Domain& domain);
    ~Sleep();
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;

    bool may_sleep() const { return fd_ >= 0; }
    int fd() const { return fd_; }

  private:
    Domain& domain_;
    tw_wait* wait_;
    int fd_ = -1;
};

// The patience of a call: `timeout` milliseconds, negative for ever.
class Patience {
  public:
    explicit Patience(int timeout);

    bool over() const;
    // For poll(2).
    int left_ms() const;
    // Whether the call has looked often enough to go to sleep. Going to sleep and waking up costs
    // more than an answer that is on its way.
    bool tired() { return ++turns_ > kTurnsBeforeSleep; }

  private:
    static constexpr unsigned kTurnsBeforeSleep = 2000;

    bool endless_;
    std::chrono::steady_clock::time_point end_;
    unsigned turns_ = 0;
};

// Sleeps as long as Patience and the descriptor say.
void sleep_on(const Sleep& sleep, const Patience& patience);

}  // namespace tagwire::fi
