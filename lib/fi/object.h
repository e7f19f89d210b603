// SPDX-License-Identifier: BSD-3-Clause
// What all objects of the provider share: from libfabric's handle to the object, and operations
// that an object does not have.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>

namespace tagwire::fi {

// Each object of ours begins with libfabric's.
template <class Object, class Handle>
Object& object_of(Handle* handle) {
    return *reinterpret_cast<Object*>(handle);
}

// An operation of any signature that is not there.
template <class Function>
struct Absent;
template <class... Arguments>
struct Absent<int (*)(Arguments...)> {
    static int call(Arguments...) { return -FI_ENOSYS; }
};
template <class... Arguments>
struct Absent<ssize_t (*)(Arguments...)> {
    static ssize_t call(Arguments...) { return -FI_ENOSYS; }
};
// Converts to whatever member of an operations table it initialises.
struct AbsentOperation {
    template <class Function>
    constexpr operator Function() const {
        return &Absent<Function>::call;
    }
};
inline constexpr AbsentOperation kAbsent;

}  // namespace tagwire::fi
