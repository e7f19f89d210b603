// SPDX-License-Identifier: BSD-3-Clause
// A worker with one endpoint that does what a test tells it, and counts how each operation
// ended.
#pragma once

#include <tagwire/tagwire.h>

#include <cstdint>
#include <deque>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "test/e2e/lives/replay_nic.h"

namespace tagwire::lives {

struct ActorOptions {
    std::string ip;
    uint32_t peer_timeout_ms = 10000;
    uint64_t unexpected_bytes = 1 << 20;
};

class Actor {
  public:
    Actor(const ActorOptions& options, ReplayNic& nic, const uint8_t* mac, rte_mempool* pool);
    ~Actor();
    Actor(const Actor&) = delete;
    Actor& operator=(const Actor&) = delete;

    // A command and its answer, one line each:
    //   send IP FIRST-TAG LENGTH COUNT       (as many messages, of tags that follow each other)
    //   recv IP|any FIRST-TAG LENGTH COUNT
    //   write|read IP LENGTH COUNT           the first bytes of the peer's region
    //   add IP COUNT                         1 to the region's last 8 bytes, which it fetches
    //   record FRAMES, replay                see ReplayNic
    //   report                               JSON
    std::string obey(const std::string& line);
    void turn();

  private:
    enum class Kind : uint8_t { kSend, kReceive, kWrite, kRead, kAdd };
    struct Operation {
        Kind kind{};
        uint64_t tag = 0;
        uint32_t ended = 0;  // exactly once, or something is wrong
        std::string bytes;
    };
    struct Summary {
        uint64_t posted = 0;
        uint64_t twice = 0;
        uint64_t wrong = 0;               // received with other contents than were sent
        std::map<int, uint64_t> results;  // how many ended so: 0 or an errno
    };

    void post(Kind kind, std::istringstream& arguments);
    int start(Operation& operation, tw_addr to);
    Summary& summary_of(Kind kind);
    tw_addr peer(const std::string& ip);
    void drain();
    void ended(const tw_cq_entry& entry, int error);
    std::string report() const;

    ReplayNic& nic_;
    tw_worker* worker_ = nullptr;
    tw_av* av_ = nullptr;
    tw_cq* cq_ = nullptr;
    tw_ep* ep_ = nullptr;
    uint32_t idle_ = 0;
    std::deque<Operation> operations_;
    std::deque<Operation*> waiting_;  // to be posted; refused with EAGAIN so far
    std::map<Operation*, tw_addr> peers_;
    Summary sends_, receives_, remote_;
    std::vector<uint64_t> region_;  // that peers may read and write
    tw_mr* mr_ = nullptr;
};

}  // namespace tagwire::lives
