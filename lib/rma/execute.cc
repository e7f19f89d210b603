// SPDX-License-Identifier: BSD-3-Clause
#include "lib/rma/execute.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tagwire {
namespace {

// Calls `call` with a value of the datatype.
template <typename Call>
auto with_type(tw_datatype datatype, Call&& call) {
    switch (datatype) {
        case TW_INT8:
            return call(int8_t{});
        case TW_UINT8:
            return call(uint8_t{});
        case TW_INT16:
            return call(int16_t{});
        case TW_UINT16:
            return call(uint16_t{});
        case TW_INT32:
            return call(int32_t{});
        case TW_UINT32:
            return call(uint32_t{});
        case TW_INT64:
            return call(int64_t{});
        case TW_FLOAT:
            return call(float{});
        case TW_DOUBLE:
            return call(double{});
        default:
            return call(uint64_t{});
    }
}

bool is_bitwise(tw_op op) {
    return op == TW_BOR || op == TW_BAND || op == TW_BXOR || op == TW_MSWAP;
}

// Integers wrap around, as the sums and products of unsigned ones do.
template <typename T>
T wrapped(tw_op op, T old, T operand) {
    if constexpr (std::is_integral_v<T>) {
        const auto a = static_cast<uint64_t>(old);
        const auto b = static_cast<uint64_t>(operand);
        return static_cast<T>(op == TW_SUM ? a + b : a * b);
    } else {
        return op == TW_SUM ? old + operand : old * operand;
    }
}

template <typename T>
T bitwise(tw_op op, T old, T operand, T compare) {
    if constexpr (std::is_integral_v<T>) {
        switch (op) {
            case TW_BOR:
                return static_cast<T>(old | operand);
            case TW_BAND:
                return static_cast<T>(old & operand);
            case TW_BXOR:
                return static_cast<T>(old ^ operand);
            default:
                return static_cast<T>((operand & compare) | (old & ~compare));
        }
    } else {
        return old;  // is_atomic() has refused it
    }
}

// What takes the place of `old`.
template <typename T>
T result_of(tw_op op, T old, T operand, T compare) {
    switch (op) {
        case TW_MIN:
            return std::min(old, operand);
        case TW_MAX:
            return std::max(old, operand);
        case TW_SUM:
        case TW_PROD:
            return wrapped(op, old, operand);
        case TW_LOR:
            return static_cast<T>(old != 0 || operand != 0);
        case TW_LAND:
            return static_cast<T>(old != 0 && operand != 0);
        case TW_LXOR:
            return static_cast<T>((old != 0) != (operand != 0));
        case TW_BOR:
        case TW_BAND:
        case TW_BXOR:
        case TW_MSWAP:
            return bitwise(op, old, operand, compare);
        case TW_ATOMIC_READ:
            return old;
        case TW_ATOMIC_WRITE:
            return operand;
        case TW_CSWAP:
            return compare == old ? operand : old;
        case TW_CSWAP_NE:
            return compare != old ? operand : old;
        case TW_CSWAP_LE:
            return compare <= old ? operand : old;
        case TW_CSWAP_LT:
            return compare < old ? operand : old;
        case TW_CSWAP_GE:
            return compare >= old ? operand : old;
        case TW_CSWAP_GT:
            return compare > old ? operand : old;
    }
    return old;
}

template <typename T>
T load(const uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof(value));
    return value;
}

template <typename T>
void execute(tw_op op, T* target, size_t count, AtomicOperands at) {
    for (size_t i = 0; i < count;
         ++i, at.operand += sizeof(T), at.compare += sizeof(T), at.result += sizeof(T), ++target) {
        T old;
        __atomic_load(target, &old, __ATOMIC_SEQ_CST);
        if (op != TW_ATOMIC_READ) {
            const T operand = load<T>(at.operand);
            const T compare = op >= TW_CSWAP ? load<T>(at.compare) : T{};
            T wanted = result_of(op, old, operand, compare);
            while (!__atomic_compare_exchange(target, &old, &wanted, false, __ATOMIC_SEQ_CST,
                                              __ATOMIC_SEQ_CST)) {
                wanted = result_of(op, old, operand, compare);
            }
        }
        std::memcpy(at.result, &old, sizeof(old));
    }
}

}  // namespace

size_t size_of(tw_datatype datatype) noexcept {
    if (static_cast<uint32_t>(datatype) > TW_DOUBLE) {
        return 0;
    }
    return with_type(datatype, [](auto value) { return sizeof(value); });
}

bool is_atomic(tw_datatype datatype, tw_op op, wire::AtomicForm form) noexcept {
    if (size_of(datatype) == 0 || static_cast<uint32_t>(op) > TW_MSWAP ||
        (is_bitwise(op) && datatype >= TW_FLOAT)) {
        return false;
    }
    switch (form) {
        case wire::AtomicForm::kBase:
            return op <= TW_ATOMIC_WRITE && op != TW_ATOMIC_READ;
        case wire::AtomicForm::kFetch:
            return op <= TW_ATOMIC_WRITE;
        case wire::AtomicForm::kCompare:
            return op >= TW_CSWAP;
    }
    return false;
}

void execute_atomic(tw_datatype datatype, tw_op op, void* target, size_t count,
                    const AtomicOperands& at) noexcept {
    with_type(datatype,
              [&](auto value) { execute(op, static_cast<decltype(value)*>(target), count, at); });
}

}  // namespace tagwire
