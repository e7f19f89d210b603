// SPDX-License-Identifier: BSD-3-Clause
// An endpoint: where tagged operations are posted, and where they are matched.
#pragma once

#include <optional>
#include <vector>

#include "lib/match/posted_queue.h"
#include "lib/match/unexpected_queue.h"
#include "lib/tagwire/address_vector.h"
#include "lib/tagwire/completion_queue.h"
#include "lib/tagwire/huge_memory.h"
#include "lib/tagwire/requests.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

class Endpoint {
  public:
    Endpoint(Worker& worker, uint16_t number) : worker_(worker), number_(number) {}

    // Lifecycle (endpoint.cc).
    int bind(AddressVector& av);
    int bind(CompletionQueue& cq, uint64_t flags);
    int enable();
    int close();  // the object can be deleted after 0

    // Operations (tagged.cc).
    int send(const iovec* iov, size_t count, tw_addr dest, uint64_t tag, void* context) noexcept;
    int receive(const iovec* iov, size_t count, tw_addr source, uint64_t tag, uint64_t ignore,
                void* context) noexcept;
    int cancel(void* context) noexcept;

    // Events (matching.cc).
    void message_arrived(transport::IncomingMessage& message) noexcept;
    void forget(UnexpectedMessage& unexpected) noexcept;
    void send_done(SendRequest& request, int status) noexcept;
    void receive_done(ReceiveRequest& request, const transport::IncomingMessage& message,
                      int status) noexcept;

    Worker& worker() const { return worker_; }
    const AddressVector& address_vector() const { return *av_; }
    transport::EndpointAddress address() const;

  private:
    // Everything about a message that a completion tells; the message itself may be gone by then.
    struct Arrival {
        transport::MessageHeader header;
        transport::PeerId peer;
    };
    static Arrival arrival_of(const transport::IncomingMessage& message);

    int peer_for(tw_addr address, transport::PeerId* peer) noexcept;
    int open_peer(tw_addr address, transport::PeerId* peer) noexcept;
    void deliver(ReceiveRequest& request, transport::IncomingMessage& message) noexcept;
    void complete(ReceiveRequest& request, const Arrival& arrival, int status) noexcept;
    void complete_cancelled(ReceiveRequest& request) noexcept;
    int close_busy() const;
    void abandon_receives();
    void abandon_messages();

    Worker& worker_;
    CompletionQueue* send_cq_ = nullptr;
    CompletionQueue* receive_cq_ = nullptr;
    bool enabled_ = false;
    uint16_t number_;
    uint32_t sends_ = 0;      // not completed
    uint32_t accepting_ = 0;  // receives matched and not completed
    HugeMemory match_memory_;
    std::optional<match::PostedQueue> posted_;
    std::optional<match::UnexpectedQueue> unexpected_;
    std::vector<transport::PeerId> peers_;  // by index in the address vector
    AddressVector* av_ = nullptr;
};

}  // namespace tagwire

struct tw_ep final : tagwire::Endpoint {
    using Endpoint::Endpoint;
};
