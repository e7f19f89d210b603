// SPDX-License-Identifier: BSD-3-Clause
// Why a call is refused, and what to do about it: a line in libfabric's log. Whoever refuses an
// argument says so.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_log.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tagwire::fi {

// A warning; returns `error`.
[[gnu::cold]] int refuse(int error, fi_log_subsys part, const std::string& why,
                         const char* function = __builtin_FUNCTION(), int line = __builtin_LINE());

// An object that others still use: what they are, as "its endpoints and queues".
[[gnu::cold]] int refuse_busy(fi_log_subsys part, const char* object, const char* users,
                              const char* function = __builtin_FUNCTION(),
                              int line = __builtin_LINE());

// A call that does not take these flags.
[[gnu::cold]] int refuse_flags(const char* call, uint64_t flags, uint64_t taken,
                               const char* function = __builtin_FUNCTION(),
                               int line = __builtin_LINE());

// 0 for a wait object that there is here.
int check_wait_object(fi_wait_obj object, const char* function = __builtin_FUNCTION(),
                      int line = __builtin_LINE());

// FI_GETWAIT of an object that has none.
[[gnu::cold]] int refuse_descriptor(const char* function = __builtin_FUNCTION(),
                                    int line = __builtin_LINE());

// Each bit by its name in libfabric, or in hexadecimal: "FI_RMA_PMEM, 0x8000".
std::string names_of(uint64_t bits, fi_type type);
// A value of an enumeration: "FI_EP_DGRAM", "99 (undefined)".
std::string name_of(uint32_t value, fi_type type);

// A text of the core in the words of its caller: "fi_cancel" for "tw_cancel".
std::string in_libfabric_words(std::string_view text);

}  // namespace tagwire::fi
