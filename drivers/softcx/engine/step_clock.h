// SPDX-License-Identifier: BSD-3-Clause
// The core clock for a thread that steps the device a million times a second: counted on with
// the processor's own counter, and read anew from the kernel's clock every millisecond.
#pragma once

#include <algorithm>
#include <cstdint>

#include "drivers/softcx/engine.h"

namespace softcx {

class StepClock {
  public:
    uint64_t read() noexcept {
#if defined(__x86_64__)
        const uint64_t passed = __builtin_ia32_rdtsc() - counter_;
        // A counter that went backwards, on another core, is far away too.
        if (passed < trusted_) [[likely]]
            return last_ = std::max(last_, base_ + (passed * rate_ >> kFraction));
        return synchronize();
#else
        return read_core_clock();
#endif
    }

#if defined(__x86_64__)
  private:
    static constexpr int kFraction = 40;
    static constexpr uint64_t kTicksToTrust = core_clock_ticks(1'000'000);
    static constexpr uint64_t kMostTicks = kTicksToTrust * 100;  // keeps the shifts in 64 bits

    uint64_t synchronize() noexcept {
        const uint64_t exact = read_core_clock();
        const uint64_t counter = __builtin_ia32_rdtsc();
        const uint64_t ticks = exact - base_;
        const uint64_t passed = counter - counter_;
        last_ = std::max(last_, exact);
        if (base_ != 0 && ticks < kTicksToTrust && passed >> kFraction == 0)
            return last_;  // too short to tell the rate
        rate_ = 0;
        trusted_ = 0;
        if (base_ != 0 && ticks <= kMostTicks && passed >> kFraction == 0) {
            rate_ = (ticks << kFraction) / passed;
            trusted_ = passed * kTicksToTrust / ticks;
        }
        base_ = exact;
        counter_ = counter;
        return last_;
    }

    uint64_t base_ = 0;     // core clock when the counter was...
    uint64_t counter_ = 0;  // ... this
    uint64_t trusted_ = 0;  // counts after which the clock is read anew
    uint64_t rate_ = 0;     // ticks of the core clock per count, fixed point
    uint64_t last_ = 0;     // what was read last: time does not go back
#endif
};

}  // namespace softcx
