// SPDX-License-Identifier: BSD-3-Clause
// Atomics on memory of this process, also atomic to its own threads. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/wire/remote_memory.h"
#include "tagwire/atomic.h"

namespace tagwire {

// Bytes of one element; 0: no such datatype.
size_t size_of(tw_datatype datatype) noexcept;
bool is_atomic(tw_datatype datatype, tw_op op, wire::AtomicForm form) noexcept;

struct AtomicOperands {
    const uint8_t* operand;  // any alignment
    const uint8_t* compare;
    uint8_t* result;  // what was there
};

// `target` is aligned, and is_atomic() was true.
void execute_atomic(tw_datatype datatype, tw_op op, void* target, size_t count,
                    const AtomicOperands& at) noexcept;

}  // namespace tagwire
