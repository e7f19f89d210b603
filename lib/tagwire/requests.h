// SPDX-License-Identifier: BSD-3-Clause
// What a worker keeps for each operation and for each unmatched message.
#pragma once

#include "lib/match/types.h"
#include "lib/transport/transport.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class Endpoint;

struct SendRequest {
    Endpoint* endpoint;
    void* context;
    const void* buffer;
    SendRequest* next_free;
    struct alignas(4) End {  // copied as one word
        bool usual;          // tagged, and success has a completion when it comes
        bool silent;         // success has no completion
        bool completed;      // it had its completion when it was posted
    } ends;
    transport::SendOperation operation;
    uint8_t copy[TW_INJECT_SIZE];  // of the payload, with TW_INJECT
};

// Its index in the worker's pool is its slot in the endpoint's queue of posted receives.
struct ReceiveRequest {
    Endpoint* endpoint;
    void* context;
    void* buffer;
    ReceiveRequest* parent;  // the multi-receive that this one fills a part of
    ReceiveRequest* next_free;
    // In the index of contexts while it is posted.
    uint32_t next_context;
    uint32_t previous_context;
    bool plain;   // one buffer, for one message, and success has a completion
    bool posted;  // and not matched, or a multi-receive that takes more
    bool silent;  // success has no completion
    bool untagged;
    bool multi;
    uint32_t source;   // the peer, the group of a key, or any
    int cancelled;     // a multi-receive, before its last message was placed: with this errno
    bool hungry;       // in the list of those that wait for room in the completion queue
    uint32_t filling;  // messages on their way into a multi-receive
    uint32_t least;    // a multi-receive with less space than this is released
    uint64_t used;     // bytes of a multi-receive
    // Of a multi-receive only, for another look at the unexpected messages.
    uint64_t tag;
    uint64_t ignore;
    ReceiveRequest* next_hungry;
    transport::ReceiveOperation operation;
};

// Its index in the worker's pool is its slot in the endpoint's queue of unexpected messages.
struct UnexpectedMessage {
    enum class State : uint8_t {
        kQueued,   // searched by receives
        kClaimed,  // waits for the receive that claims it
        kBlocked,  // not matched yet: a completion queue is full
    };
    Endpoint* endpoint;
    transport::IncomingMessage* message;
    void* context;            // of the peek that claimed it
    match::Handle handle;     // of a claimed one
    UnexpectedMessage* next;  // blocked ones in order of arrival
    UnexpectedMessage* previous;
    UnexpectedMessage* next_free;
    State state;
};

// A call, in the form that all calls of its direction share.
struct SendCall {
    const iovec* iov;
    size_t count;
    tw_addr dest;
    uint64_t tag;
    uint64_t data;
    void* context;
    uint64_t flags;
    transport::MessageKind kind;
};
struct ReceiveCall {
    const iovec* iov;
    size_t count;
    tw_addr source;
    uint64_t tag;
    uint64_t ignore;
    void* context;
    uint64_t flags;
    transport::MessageKind kind;
};

}  // namespace tagwire
