// SPDX-License-Identifier: BSD-3-Clause
// What is kept for each operation on remote memory: at its origin a request, at its
// target a placement (of a put) or a reply (to a get or an atomic).
#pragma once

#include "lib/rma/region.h"
#include "lib/tagwire/endpoint.h"
#include "lib/wire/remote_memory.h"
#include "tagwire/atomic.h"

namespace tagwire {

// Operands of an atomic that are too many for its request.
struct Operands {
    Operands* next_free;
    uint8_t bytes[2 * TW_ATOMIC_SIZE];
};

struct RmaRequest {
    Endpoint* endpoint;
    RmaRequest* parent;  // of an operation of several parts, each with a message of its own
    void* context;
    const void* buffer;
    uint64_t flags;   // of its completion
    uint64_t length;  // of all parts
    RmaRequest* next_free;
    uint32_t sequence = 0;  // counts the lives of this slot: a late reply belongs to none
    transport::PeerId peer;
    uint32_t parts;  // that have not ended
    int status;      // the first that failed
    Counted counted;
    bool silent;         // success has no completion
    bool completed;      // it had its completion when it was posted
    bool waits = false;  // for a reply
    bool receiving;      // a reply on its way into the buffer
    bool answered;       // `status` is the reply's
    bool sent;           // the transport is done with the message, and the reply still receives
    transport::SendOperation send;
    transport::ReceiveOperation receive;
    uint8_t copy[TW_INJECT_SIZE];  // of the payload with TW_INJECT, of operands
    Operands* operands = nullptr;
    alignas(8) uint8_t head[16];  // in front of the payload
};

// A put that was accepted and is not complete.
struct Placement {
    Region* region;  // nullptr: closed since
    Endpoint* endpoint;
    transport::IncomingMessage* message;
    Placement* next;  // of the region
    Placement* previous;
    Placement* next_free;
    transport::ReceiveOperation receive;
    wire::PutData data;
};

struct Reply {
    Region* region;  // that is read while the reply is sent; else nullptr
    Endpoint* endpoint;
    Reply* next;  // of the region
    Reply* previous;
    uint8_t* rescued = nullptr;  // what was left of the region's memory when it was closed
    Reply* next_free;
    transport::SendOperation send;
    transport::ReceiveOperation receive;  // of a long atomic request
    uint8_t result[TW_ATOMIC_SIZE];
    uint8_t request[sizeof(wire::AtomicRequest) + 2 * TW_ATOMIC_SIZE];
};

}  // namespace tagwire
