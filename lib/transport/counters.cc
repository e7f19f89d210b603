// SPDX-License-Identifier: BSD-3-Clause
#include "lib/transport/counters.h"

#include <numeric>

#include "lib/wire/decode.h"

namespace tagwire::transport {

static_assert(static_cast<size_t>(Counter::drop_icmp) + 2 == wire::kRejects,
              "the first outcomes mirror wire::Reject");

uint64_t Counters::outcomes() const noexcept {
    return std::accumulate(values.begin(), values.begin() + kRxOutcomes, uint64_t{0});
}

const char* name(Counter counter) noexcept {
    static constexpr const char* kNames[] = {
#define TAGWIRE_COUNTER(name) #name,
        TAGWIRE_RX_OUTCOMES(TAGWIRE_COUNTER) TAGWIRE_OTHER_COUNTERS(TAGWIRE_COUNTER)
#undef TAGWIRE_COUNTER
    };
    static_assert(sizeof(kNames) / sizeof(kNames[0]) == kCounters);
    const auto index = static_cast<size_t>(counter);
    return index < kCounters ? kNames[index] : "?";
}

}  // namespace tagwire::transport
