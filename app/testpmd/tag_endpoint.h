// SPDX-License-Identifier: BSD-3-Clause
// A worker with one endpoint on a queue that somebody else polls: posting, and what is to be
// posted again because the library was full.
#pragma once

#include <rte_ether.h>
#include <tagwire/tagwire.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tagwire::testpmd {

// One operation and its buffer. It stays where it is as long as the endpoint.
struct Slot {
    enum class Kind : uint8_t { kControlReceive, kControlSend, kReceive, kSend };
    Kind kind{};
    uint32_t owner = 0;  // whatever the role wants to know
    uint32_t capacity = 0;
    uint32_t length = 0;
    std::byte* buffer = nullptr;
    tw_addr peer = TW_ADDR_UNSPEC;
    uint64_t tag = 0;
    uint64_t ignore = 0;    // receives
    uint64_t sequence = 0;  // sends: goes as remote CQ data
};

struct TagEndpointConfig {
    uint16_t port = 0;
    uint16_t queue = 0;
    tw_address address{};
    uint32_t operations = 0;
    double timeout_s = 10;
};

class TagEndpoint {
  public:
    explicit TagEndpoint(const TagEndpointConfig& config);  // throws perf::Failure
    ~TagEndpoint();
    TagEndpoint(const TagEndpoint&) = delete;
    TagEndpoint& operator=(const TagEndpoint&) = delete;

    // Slots with buffers of `capacity` bytes each. Throws perf::Failure without memory.
    std::vector<Slot*> make_slots(Slot::Kind kind, size_t count, uint32_t capacity);

    int insert(const tw_address& peer, tw_addr* index);
    // 0: under way, or as soon as there is room. Else a negative errno.
    int post(Slot& slot);

    uint16_t input(rte_mbuf** packets, uint16_t count) noexcept {
        return tw_worker_input(worker_, packets, count);
    }
    // One turn of the library; then what did not fit before.
    uint32_t progress();
    // 1: a completion. -1: an error. 0: neither.
    int next(tw_cq_entry* entry, tw_cq_error* error);

    // Tells the peers, then closes the endpoint: true once both are done. Nothing is posted
    // afterwards.
    bool close();
    // Without waiting for the peers.
    void abandon() { told_peers_ = true; }

    const tw_address& address() const { return config_.address; }
    std::string name() const;
    std::vector<std::pair<std::string, uint64_t>> statistics() const;

  private:
    int try_post(Slot& slot);

    TagEndpointConfig config_;
    tw_worker* worker_ = nullptr;
    tw_av* av_ = nullptr;
    tw_cq* cq_ = nullptr;
    tw_ep* ep_ = nullptr;
    bool told_peers_ = false;
    std::deque<Slot*> deferred_;
    std::deque<std::pair<Slot*, int>> refused_;  // deferred ones, with their errno
    std::vector<std::unique_ptr<Slot[]>> slots_;
    std::vector<void*> buffers_;
};

std::string address_text(const tw_address& address);

}  // namespace tagwire::testpmd
