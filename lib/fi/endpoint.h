// SPDX-License-Identifier: BSD-3-Clause
// Endpoints. What libfabric calls an endpoint, a transmit or receive context of a scalable
// endpoint, or a shared receive context, is a handle on an endpoint of the core; several handles
// may stand for one:
//   a scalable endpoint   one core endpoint per index, with consecutive numbers: its transmit
//                         and its receive context
//   a shared receive      one core endpoint, which all endpoints that are bound to it stand for;
//   context               they have one address. Connected endpoints have addresses of their
//                         own, and it as their receiver
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <tagwire/tagwire.h>

#include <array>
#include <memory>
#include <optional>

#include "lib/fi/av.h"
#include "lib/fi/domain.h"

namespace tagwire::fi {

struct CompletionQueue;
struct Counter;

struct Endpoint;

// Closed with the last handle.
struct CoreEndpoint {
    explicit CoreEndpoint(Domain& its_domain) : domain(its_domain) {}
    ~CoreEndpoint() { std::erase(domain.receive_contexts, this); }
    CoreEndpoint(const CoreEndpoint&) = delete;
    CoreEndpoint& operator=(const CoreEndpoint&) = delete;

    int open(const tw_ep_attr& attr);
    int bind(CompletionQueue& cq, uint64_t flags);
    int bind(Counter& counter, uint64_t flags);
    int bind(AddressVector& vector);
    int bind(std::shared_ptr<CoreEndpoint> receive_context);
    void name_sources();  // once the receive queue and the address vector are there
    int enable();
    int close();  // waits until what was sent is there, or its receiver counts as dead
    // Of a shared receive context, whose last endpoint was closed: another one with the same
    // address in its place, free of what these endpoints were bound to.
    int renew();
    // The same where connected endpoints were the last, and once what they left it is to be closed:
    // receives may be posted for those to come.
    int leave(const void* queue_or_counter);

    Domain& domain;
    tw_ep* ep = nullptr;
    AddressVector* av = nullptr;
    CompletionQueue* send_queue = nullptr;
    CompletionQueue* receive_queue = nullptr;
    uint64_t receive_queue_flags = 0;
    std::array<Counter*, 6> counters{};  // by kind, see counter_of
    bool enabled = false;
    bool half_enabled = false;   // one of a scalable endpoint's two contexts is
    bool receives_only = false;  // and its transmit context is not even open
    Endpoint* shared = nullptr;  // the shared receive context
    unsigned users = 0;          // its endpoints
    uint64_t receive_flags = 0;  // the core's, of calls without flags
    // Of a receive context: it needs no address vector, and serves so many connected endpoints.
    bool without_addresses = false;
    unsigned connections = 0;
    // Of a connected endpoint that was opened for a receive context: that, once it is bound.
    bool wants_receiver = false;
    std::shared_ptr<CoreEndpoint> receiver;

    tw_addr context_of(fi_addr_t address) const {
        return av != nullptr ? av->context_of(address) : TW_ADDR_UNSPEC;
    }
    // That counts operations of this kind (one of TW_SEND, TW_RECV, TW_READ, TW_WRITE ...).
    Counter* counter_of(uint64_t kind) const;
};

// -FI_EOPBADSTATE, of an endpoint that waits for its receive context.
int no_receive_context();

struct Endpoint {
    fid_ep fid;
    Domain* domain;
    tw_ep* ep = nullptr;  // core->ep
    AddressVector* av = nullptr;
    // Without FI_DIRECTED_RECV the source of a receive means nothing; tagged ones have a
    // capability of their own as well.
    uint64_t source_mask = 0;
    uint64_t tagged_source_mask = 0;
    // Of calls without a flags argument, if they are not the core endpoint's: see use_flags.
    uint64_t transmit_flags = 0;
    uint64_t receive_flags = 0;
    bool connected = false;    // FI_EP_MSG
    bool established = false;  // FI_CONNECTED was announced
    bool ended = false;        // FI_SHUTDOWN was
    uint32_t address_format = FI_SOCKADDR_IN;
    EventQueue* eq = nullptr;
    // Of a connection, where they differ from the core's: the accepting side has the name of its
    // listener.
    std::optional<tw_address> local_name;
    std::optional<tw_address> remote_name;
    std::shared_ptr<CoreEndpoint> core;

    tw_addr source(fi_addr_t address) const { return resolve(address | source_mask); }
    tw_addr tagged_source(fi_addr_t address) const { return resolve(address | tagged_source_mask); }
    void set_source_masks(const fi_info* info, const fi_rx_attr* rx);
    tw_addr dest(fi_addr_t address) const { return resolve(address); }
    // An address that names a receive context of a scalable endpoint has its index in its upper
    // bits.
    tw_addr resolve(fi_addr_t address) const {
        return address < kPlainAddresses || address == FI_ADDR_UNSPEC ? address
                                                                      : core->context_of(address);
    }
    // Whether an operation that failed may succeed when it is called again: catches up with
    // addresses that another process has inserted, and starts a context whose other half nobody
    // opens.
    bool mend(int result);
    void use(std::shared_ptr<CoreEndpoint> shared) {
        core = std::move(shared);
        ep = core->ep;
    }
    // Before the handle goes: closes the core's endpoint with the last one. Under the lock.
    int leave();
};

// messages.cc, remote_memory.cc, atomics.cc
extern fi_ops_msg message_ops;
extern fi_ops_tagged tagged_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;

// endpoint.cc: what fi_getopt gives. -FI_ETOOSMALL, with the room that it needs.
int give_option(size_t value, void* room, size_t* length);
// endpoint.cc, for contexts.cc
extern fi_ops_ep endpoint_ops;
extern fi_ops_cm connection_ops;
int bind_endpoint(fid* handle, fid* other, uint64_t flags);
void fill_operations(Endpoint& ep, size_t fclass, void* context);
// A core endpoint with this number, or, if `number` is 0 and taken, any other. Those of connections
// have any, or that of the passive endpoint in `info`.
int open_core_endpoint(Domain& domain, const fi_info* info, const fi_tx_attr* tx,
                       const fi_rx_attr* rx, uint16_t number, std::shared_ptr<CoreEndpoint>* core);

// alias.cc
// Gives the handle calls that have these flags in place of its core endpoint's.
void use_flags(Endpoint& ep, uint64_t transmit, uint64_t receive);
// Under the domain's lock.
int open_alias(Endpoint& ep, const struct fi_alias& wanted);

}  // namespace tagwire::fi
