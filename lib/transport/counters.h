// SPDX-License-Identifier: BSD-3-Clause
// What happened, counted. Every received frame adds one to rx_frames and one to
// exactly one of the outcomes: rx_* (used) or drop_* (dropped, with the reason).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tagwire::transport {

// X(name): outcomes of a received frame. The first block mirrors wire::Reject in its order.
#define TAGWIRE_RX_OUTCOMES(X)                                                      \
    X(drop_short_frame)                                                             \
    X(drop_not_our_mac)                                                             \
    X(drop_ether_type)                                                              \
    X(drop_ipv6)                                                                    \
    X(drop_ip_header)                                                               \
    X(drop_ip_fragment)                                                             \
    X(drop_ip_checksum)                                                             \
    X(drop_not_our_ip)                                                              \
    X(drop_ip_protocol)                                                             \
    X(drop_udp_length)                                                              \
    X(drop_udp_port)                                                                \
    X(drop_udp_checksum)                                                            \
    X(drop_version)                                                                 \
    X(drop_packet_type)                                                             \
    X(drop_flags)                                                                   \
    X(drop_extension)                                                               \
    X(drop_arp_malformed)                                                           \
    X(drop_icmp)                                                                    \
    X(drop_scattered)       /* several segments that do not fit into the first */   \
    X(drop_no_session)      /* connection id that was never given out */            \
    X(drop_stale_tag)       /* of an earlier session, or forged */                  \
    X(drop_not_established) /* data before the handshake is complete here */        \
    X(drop_wrong_source)    /* right tag, another address */                        \
    X(drop_duplicate)       /* PSN that was here before */                          \
    X(drop_out_of_window)                                                           \
    X(drop_bad_ack)         /* acknowledges what was never sent */                  \
    X(drop_over_budget)     /* no place to hold it; the sender resends */           \
    X(drop_inconsistent)    /* contradicts what was said about the message */       \
    X(drop_cookie)          /* absent is fine, wrong or expired is not */           \
    X(drop_stale_handshake) /* answer to nothing that is under way */               \
    X(drop_refused)         /* hello that was refused */                            \
    X(drop_hello_early)     /* a place for the peer is about to become free */      \
    X(drop_refused_key)     /* hello with a wrong authorization key */              \
    X(drop_foreign_reset)                                                           \
    X(drop_arp_not_for_us)                                                          \
    X(drop_arp_conflict) /* another station says that it has our address */         \
    X(drop_ping_ignored)                                                            \
    X(rx_data)                                                                      \
    X(rx_discarded) /* payload of a message that the core discarded or truncated */ \
    X(rx_grants)                                                                    \
    X(rx_acks)                                                                      \
    X(rx_probes)                                                                    \
    X(rx_handshakes)                                                                \
    X(rx_closes)                                                                    \
    X(rx_resets)                                                                    \
    X(rx_arp)                                                                       \
    X(rx_pings)

#define TAGWIRE_OTHER_COUNTERS(X)                                                           \
    X(rx_frames)                                                                            \
    X(rx_messages)      /* announced */                                                     \
    X(input_given_back) /* frames of tw_worker_input that are not ours; not in rx_frames */ \
    X(tx_frames)                                                                            \
    X(looped_frames)  /* from one endpoint of this worker to another; not in tx_frames */   \
    X(tx_data_frames) /* first transmissions of sequenced frames */                         \
    X(tx_acks)                                                                              \
    X(tx_probes)                                                                            \
    X(tx_handshakes)                                                                        \
    X(tx_messages)                                                                          \
    X(tx_announced) /* messages of which only the beginning went before a grant */          \
    X(tx_no_buffer) /* packet pool empty */                                                 \
    X(tx_nic_full)                                                                          \
    X(retransmits)                                                                          \
    X(tail_probes)                                                                          \
    X(timeouts)                                                                             \
    X(spurious_retransmits) /* told so by the receiver */                                   \
    X(credit_stalls)        /* the receiver's budget held us back */                        \
    X(held_units_peak)                                                                      \
    X(peers_up)                                                                             \
    X(peers_down)                                                                           \
    X(peer_restarts)                                                                        \
    X(peers_forgotten)      /* whose places are free for others */                          \
    X(idle_sessions_closed) /* because few places were left */                              \
    X(clock_jumps)                                                                          \
    X(loans_overdue) /* failed sends whose frames the NIC did not give back in time */

enum class Counter : uint16_t {
#define TAGWIRE_COUNTER(name) name,
    TAGWIRE_RX_OUTCOMES(TAGWIRE_COUNTER) kRxOutcomes,
    kBeforeOthers = kRxOutcomes - 1,
    TAGWIRE_OTHER_COUNTERS(TAGWIRE_COUNTER) kCount
#undef TAGWIRE_COUNTER
};
inline constexpr size_t kRxOutcomes = static_cast<size_t>(Counter::kRxOutcomes);
inline constexpr size_t kCounters = static_cast<size_t>(Counter::kCount);

struct Counters {
    std::array<uint64_t, kCounters> values{};

    uint64_t& operator[](Counter counter) noexcept { return values[static_cast<size_t>(counter)]; }
    uint64_t operator[](Counter counter) const noexcept {
        return values[static_cast<size_t>(counter)];
    }

    // Sum of all outcomes; equals rx_frames after each poll().
    uint64_t outcomes() const noexcept;
};

const char* name(Counter counter) noexcept;

}  // namespace tagwire::transport
