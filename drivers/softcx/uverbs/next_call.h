// SPDX-License-Identifier: BSD-3-Clause
// The definition of a C library call behind the one of this library.
#pragma once

#include <dlfcn.h>

#include <atomic>

#define SOFTCX_EXPORT extern "C" __attribute__((visibility("default")))

namespace softcx {

// The next definition of the call `name`, found at first use: there is no moment
// early enough to find them all.
template <class Function>
class Next {
  public:
    constexpr explicit Next(const char* name) : name_(name) {}
    Function* get() {
        Function* found = function_.load(std::memory_order_relaxed);
        if (found == nullptr) {
            found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
            function_.store(found, std::memory_order_relaxed);
        }
        return found;
    }

  private:
    const char* name_;
    std::atomic<Function*> function_{nullptr};
};

}  // namespace softcx
