// SPDX-License-Identifier: BSD-3-Clause
// A program on a simulated machine that listens and connects, and the events that it saw.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "test/tagwire/sim_peer.h"

namespace tagwire::test {

class ConnectPeer {
  public:
    explicit ConnectPeer(sim::Node& node, const PeerOptions& options = {});
    ~ConnectPeer() { die(); }

    void start();  // after die()
    void die();

    tw_pep* listen(uint32_t backlog = 0, const std::string& key = {});
    tw_address name_of(tw_pep* pep) const;
    // An endpoint that is bound and enabled; for a request, if there is one.
    tw_ep* endpoint(tw_request* request = nullptr, const std::string& key = {});
    tw_ep* connect(const tw_address& to, const std::string& param = {});
    tw_ep* accept(const tw_eq_entry& request, const std::string& param = {});
    // Once nothing of it is under way.
    bool close(tw_ep* ep);
    bool close(tw_pep* pep);

    void receive(tw_ep* ep, std::string& buffer, uint64_t tag, void* context = nullptr);
    void send(tw_ep* ep, uint64_t tag, const std::string& payload, void* context = nullptr);

    // Events of an endpoint, or of all.
    size_t count(tw_event event, const tw_ep* ep = nullptr) const;
    const tw_eq_entry* find(tw_event event, const tw_ep* ep = nullptr) const;
    const tw_eq_error* failure(const tw_ep* ep) const;
    size_t failures(const tw_ep* ep) const;

    SimPeer peer;
    tw_eq* eq = nullptr;
    std::vector<tw_eq_entry> events;
    std::vector<tw_eq_error> errors;
    bool read_events = true;
    tw_ep* receiver = nullptr;         // of endpoints to come
    uint16_t next_number = TW_EP_ANY;  // of endpoints to come; TW_EP_ANY: the first that is free

  private:
    void open();
    void drain();

    std::vector<tw_ep*> endpoints_;
    std::vector<tw_pep*> passive_;
    std::deque<std::string> payloads_;
};

inline std::string param_of(const tw_eq_entry& entry) {
    return {reinterpret_cast<const char*>(entry.param), entry.param_length};
}

// A server and a client, and a network.
class ConnectPair : public testing::Test {
  protected:
    bool run(const std::function<bool()>& done, uint64_t limit = 40 * kSecond) {
        return simulator.run_until(done, limit);
    }
    void settle() { simulator.run_for(kSecond / 100); }

    // A connection, as its two endpoints.
    void connect_pair(const std::string& param = {});
    void close_pair();

    sim::Simulator simulator{sim::seed() + 7};
    ConnectPeer server{simulator.add_node()};
    ConnectPeer client{simulator.add_node()};
    tw_pep* pep = nullptr;
    tw_ep* at_server = nullptr;
    tw_ep* at_client = nullptr;
};

}  // namespace tagwire::test
