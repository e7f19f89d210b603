// SPDX-License-Identifier: BSD-3-Clause
// What a worker keeps for each operation and for each unmatched message.
#pragma once

#include "lib/transport/transport.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class Endpoint;

struct SendRequest {
    Endpoint* endpoint;
    void* context;
    const void* buffer;
    uint32_t next_free;
    transport::SendOperation operation;
};

// Its index in the worker's pool is its slot in the endpoint's queue of posted receives.
struct ReceiveRequest {
    Endpoint* endpoint;
    void* context;
    void* buffer;
    uint64_t sequence;  // of posting, worker-wide
    bool posted;        // and not matched
    uint32_t next_free;
    transport::ReceiveOperation operation;
};

// Its index in the worker's pool is its slot in the endpoint's queue of unexpected messages.
struct UnexpectedMessage {
    Endpoint* endpoint;
    transport::IncomingMessage* message;
    uint32_t next_free;
};

}  // namespace tagwire
