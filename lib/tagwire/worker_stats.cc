// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

int Worker::stats(tw_stat* stats, int count) const {
    MatchCounters match = counters_.closed;
    for (const Endpoint* endpoint : endpoints_) {
        if (endpoint != nullptr) {
            match += endpoint->match_counters();
        }
    }
    const LoanCounters loans = lending_ != nullptr ? lending_->book().counters() : LoanCounters{};
    const RegistrationCounters registered =
        lending_ != nullptr ? lending_->book().registrations() : RegistrationCounters{};
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
        {"large_lent", loans.messages},
        {"large_copied", loans.copied},
        {"large_lent_now", lending_ != nullptr ? lending_->book().outstanding() : 0},
        {"registration_hits", registered.hits},
        {"registrations", registered.made},
        {"registrations_evicted", registered.evicted},
        {"registrations_invalidated", registered.invalidated},
        {"registrations_refused", registered.refused},
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

int tw_peer_stats(tw_ep* ep, tw_addr peer, tw_stat* stats, int count) {
    using namespace tagwire;
    if (ep == nullptr || count < 0 || (stats == nullptr && count != 0)) {
        return refuse(EINVAL, "tw_peer_stats: ep and stats cannot be NULL, nor count negative");
    }
    const Guard guard(ep->worker());
    if (!ep->enabled()) {
        return refuse(TW_EOPBADSTATE, "tw_peer_stats: call tw_ep_enable first");
    }
    transport::PeerId id;
    if (const int error = ep->peer_for(peer, &id); error != 0) {
        return error;
    }
    const transport::BudgetShare share = ep->worker().transport().share_of(id);
    const tw_stat all[] = {
        {"held_units", share.held},
        {"held_units_peak", share.held_peak},
        {"promised_units", share.promised},
        {"reserved_units", share.reserved},
    };
    constexpr int kCount = sizeof(all) / sizeof(all[0]);
    std::copy(all, all + std::min(count, kCount), stats);
    return kCount;
}
