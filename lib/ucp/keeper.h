// SPDX-License-Identifier: BSD-3-Clause
// Keeps workers alive whose program does something else. A UCX program may compute for a
// minute between two calls, and its peers must not take that for death: so a thread takes a
// worker's turn when the program has taken none for a while. It lets the core work
// (acknowledgements, keep-alives, puts and gets of others); completions and callbacks wait
// for the program.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace tagwire::ucp {

class Worker;

class Keeper {
  public:
    static Keeper& instance();

    void add(Worker& worker);
    void remove(Worker& worker);
    void hurry();

  private:
    Keeper() = default;
    void run();
    static void stop();

    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<Worker*> workers_;
    std::thread thread_;
    bool stopping_ = false;
    std::atomic<bool> hurried_{false};
};

}  // namespace tagwire::ucp
