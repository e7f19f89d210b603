// SPDX-License-Identifier: BSD-3-Clause
// One write command as it comes through INVOKE_WRITE: the core request and response
// of the uverbs ABI, and the vendor part ("UHW") behind each. Everything here takes
// bytes of any length.
#pragma once

#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "drivers/softcx/model/context.h"

namespace softcx {

struct Command {
    Context& context;
    std::span<const uint8_t> request;
    std::span<uint8_t> response;
    std::span<const uint8_t> vendor_request;
    std::span<uint8_t> vendor_response;

    Device& device() const { return context.device; }
};

// The record of a new ring. A card reads it at doorbells only; the model looks at it all the
// time, and what a program's allocator hands out may hold anything.
inline void clear_doorbell_record(volatile uint32_t* record) {
    record[0] = 0;
    record[1] = 0;
}

inline bool all_zero(std::span<const uint8_t> bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

// A request shorter than the structure reads as zeros; a longer one must be zero
// where this kernel knows no field (EOPNOTSUPP), as uverbs_request does.
template <class Request>
int read_request(std::span<const uint8_t> bytes, Request& request) {
    static_assert(std::is_trivially_copyable_v<Request>);
    const size_t known = std::min(bytes.size(), sizeof(Request));
    request = Request{};
    if (known != 0)
        std::memcpy(static_cast<void*>(&request), bytes.data(), known);
    return all_zero(bytes.subspan(known)) ? 0 : EOPNOTSUPP;
}

// The client may know a shorter or a longer response.
template <class Response>
void write_response(std::span<uint8_t> bytes, const Response& response) {
    static_assert(std::is_trivially_copyable_v<Response>);
    const size_t known = std::min(bytes.size(), sizeof(Response));
    if (known != 0)
        std::memcpy(bytes.data(), &response, known);
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(known), bytes.end(), uint8_t{0});
}

// Executes write command `number` (with IB_USER_VERBS_CMD_FLAG_EXTENDED for the
// extended ones). Returns 0 or an errno. Takes Device::mutex.
int execute_write_command(const Command& command, uint32_t number);

// True when the client may be read (and written) over the whole range.
bool memory_is_mapped(uint64_t address, uint64_t length, bool writable);

// By file: device_commands.cc, memory_commands.cc, cq_commands.cc, cq_modify.cc, wq_commands.cc,
// qp_commands.cc, flow_commands.cc.
int get_context(const Command& command);
mlx5_ib_alloc_ucontext_resp context_properties(uint8_t cqe_version);
int query_device(const Command& command);
int query_device_ex(const Command& command);
int query_port(const Command& command);

int alloc_pd(const Command& command);
int dealloc_pd(const Command& command);
int reg_mr(const Command& command);
int rereg_mr(const Command& command);
int dereg_mr(const Command& command);

int create_comp_channel(const Command& command);
int create_cq(const Command& command);
int create_cq_ex(const Command& command);
int resize_cq(const Command& command);
int modify_cq(const Command& command);
int destroy_cq(const Command& command);

int create_wq(const Command& command);
int modify_wq(const Command& command);
int destroy_wq(const Command& command);
int create_rwq_ind_table(const Command& command);
int destroy_rwq_ind_table(const Command& command);

int create_qp(const Command& command);
int create_qp_ex(const Command& command);
int modify_qp(const Command& command);
int modify_qp_ex(const Command& command);
int query_qp(const Command& command);
int destroy_qp(const Command& command);

int create_flow(const Command& command);
int destroy_flow(const Command& command);

}  // namespace softcx
