// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

int Worker::stats(tw_stat* stats, int count) const {
    MatchCounters match = counters_.closed;
    for (const Endpoint* endpoint : endpoints_) {
        if (endpoint != nullptr) {
            match += endpoint->match_counters();
        }
    }
    const tw_stat core[] = {
        {"sends_outstanding", sends_.in_use()},
        {"receives_outstanding", receives_.in_use()},
        {"unexpected_messages", unexpected_.in_use()},
        {"unexpected_messages_peak", counters_.unexpected_peak},
        {"matched_posted", counters_.matched_posted},
        {"matched_unexpected", counters_.matched_unexpected},
        {"receives_without_class", match.without_class},
        {"posted_queue_long", match.long_posted},
        {"unexpected_queue_long", match.long_unexpected},
        {"truncated", counters_.truncated},
        {"messages_lost", counters_.lost},
        {"messages_unwanted", counters_.unwanted},
        {"messages_foreign", counters_.foreign},
        {"messages_discarded", counters_.discarded},
        {"receives_blocked", counters_.blocked},
        {"send_errors", counters_.send_errors},
        {"receive_errors", counters_.receive_errors},
    };
    int total = 0;
    const auto add = [&](const tw_stat& stat) {
        if (total < count) {
            stats[total] = stat;
        }
        ++total;
    };
    for (const tw_stat& stat : core) {
        add(stat);
    }
    total += connections_.stats(total < count ? stats + total : nullptr,
                                total < count ? count - total : 0);
    total += remote_memory_->stats(total < count ? stats + total : nullptr,
                                   total < count ? count - total : 0);
    const transport::Counters& counters = transport_->counters();
    for (size_t i = 0; i < transport::kCounters; ++i) {
        const auto counter = static_cast<transport::Counter>(i);
        add({transport::name(counter), counters[counter]});
    }
    return total;
}

}  // namespace tagwire
