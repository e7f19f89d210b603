// SPDX-License-Identifier: BSD-3-Clause
// What the kinds for remote memory carry in front of their payload (doc/protocol.md, 7).
// Tag and data of their messages: put, get request, atomic request: key and address;
// replies: the id of the request, and with kHasData the status in place of a payload.
#pragma once

#include <cstddef>

#include "lib/wire/byte_order.h"

namespace tagwire::wire {

// A put whose message has kHasData: remote CQ data, then what is placed.
struct PutData {
    be64 data;
};
static_assert(sizeof(PutData) == 8);

struct GetRequest {
    be64 id;  // of the requester's choice; the reply repeats it
    be32 length;
    be32 reserved;
};
static_assert(sizeof(GetRequest) == 16);

// Operands follow, then what they are compared with.
struct AtomicRequest {
    be64 id;
    uint8_t operation;  // enum tw_op
    uint8_t datatype;   // enum tw_datatype
    uint8_t form;       // AtomicForm
    uint8_t reserved;
    be32 count;  // elements
};
static_assert(sizeof(AtomicRequest) == 16 && offsetof(AtomicRequest, count) == 12);

enum class AtomicForm : uint8_t {
    kBase = 0,     // operands; the reply is empty
    kFetch = 1,    // operands, unless it reads; the reply is what was there
    kCompare = 2,  // operands and compares; the reply is what was there
};

}  // namespace tagwire::wire
