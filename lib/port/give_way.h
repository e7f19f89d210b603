// SPDX-License-Identifier: BSD-3-Clause
// What a thread does that polls and finds nothing: it lets others have the core, whose messages it
// waits for, maybe.
//
// sched_yield(2) lets threads of the own session run, and of the own control group, but not those
// of others: the kernel shares a core between sessions first (sched(7), "The autogroup feature"),
// and MPICH's mpiexec gives each rank a session. With more ranks than cores each would poll until
// its time slice is over. So where there are more, a thread that lost the core for long while it
// polled naps from then on. Elsewhere it does not: others that compute would take the core for
// longer than the nap, and the peer, which has a core of its own, answers sooner.
#pragma once

#include <cstdint>

namespace tagwire::port {

// Whether a core is wanted by others that sched_yield does not reach.
class CoreShare {
  public:
    static constexpr uint64_t kLostNs = 500'000;
    static constexpr uint64_t kCrowdedNs = 200'000'000;
    // Looks that are further apart say nothing: the thread may have slept.
    static constexpr uint64_t kMemoryNs = 100'000'000;

    // At `now_ns` the thread has nothing to do, and has run for `ran_ns` since it began.
    bool crowded(uint64_t now_ns, uint64_t ran_ns) {
        const uint64_t passed = now_ns - now_ns_;
        const uint64_t ran = ran_ns - ran_ns_;
        if (now_ns_ != 0 && passed < kMemoryNs && passed > ran + kLostNs) {
            crowded_until_ns_ = now_ns + kCrowdedNs;
        }
        now_ns_ = now_ns;
        ran_ns_ = ran_ns;
        return now_ns < crowded_until_ns_;
    }

  private:
    uint64_t now_ns_ = 0;
    uint64_t ran_ns_ = 0;
    uint64_t crowded_until_ns_ = 0;
};

// More of them on this host than cores: what the launcher says of the program's processes
// (MPI_LOCALNRANKS of MPICH's and Intel's mpiexec, OMPI_COMM_WORLD_LOCAL_SIZE of Open MPI's).
bool more_ranks_than_cores();

// Yields, or naps for some 60 us where the core is crowded. Returns whether it is.
bool give_way() noexcept;

}  // namespace tagwire::port
