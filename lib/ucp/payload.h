// SPDX-License-Identifier: BSD-3-Clause
// The memory of an operation as UCP describes it (buffer, count, datatype), and as
// the core takes it: a few pieces. What does not fit goes through a copy.
#pragma once

#include <sys/uio.h>
#include <ucp/api/ucp.h>

#include <cstddef>

namespace tagwire::ucp {

// What ucp_dt_create_generic makes; a datatype is its address with the class in the low bits.
struct GenericType {
    ucp_generic_dt_ops_t ops;
    void* context;
};

class Payload {
  public:
    // The core takes TW_IOV_LIMIT pieces; a header and a trailer of ours may join them.
    static constexpr size_t kPieces = 6;

    // UCS_ERR_INVALID_PARAM: no such datatype, or a NULL buffer of more than 0 bytes.
    ucs_status_t open_send(const void* buffer, size_t count, ucp_datatype_t datatype);
    ucs_status_t open_receive(void* buffer, size_t count, ucp_datatype_t datatype);

    const iovec* pieces() const { return pieces_ != nullptr ? pieces_ : &one_; }
    size_t piece_count() const { return piece_count_; }
    size_t length() const { return length_; }  // bytes to send, or room
    // Elements may not be torn apart by a stream receive.
    bool is_generic() const { return generic_ != nullptr; }
    size_t element() const { return element_; }

    // Receives: bytes [0, length) are in the pieces; puts them where they belong.
    ucs_status_t deliver(size_t length);
    // Receives that we copy ourselves: `length` bytes for `offset`.
    ucs_status_t place(size_t offset, const void* data, size_t length);
    // Sends that we copy ourselves: up to `length` bytes from `offset` on.
    size_t fetch(size_t offset, void* data, size_t length) const;
    // Cuts [offset, offset + length) out of the pieces; at most `limit` of them.
    size_t cut(size_t offset, size_t length, iovec* pieces) const;
    void close();

  private:
    ucs_status_t open_iov(const ucp_dt_iov_t* iov, size_t count, bool send);
    ucs_status_t open_generic(const void* buffer, size_t count, ucp_datatype_t datatype, bool send);
    bool make_bounce();

    iovec one_{nullptr, 0};
    const iovec* pieces_ = nullptr;  // the caller's; NULL: one_
    size_t piece_count_ = 0;
    size_t length_ = 0;
    size_t element_ = 1;
    void* bounce_ = nullptr;
    const iovec* scatter_ = nullptr;  // the caller's pieces behind a bounce buffer
    size_t scatter_count_ = 0;
    const GenericType* generic_ = nullptr;
    void* state_ = nullptr;  // of the generic datatype
};

}  // namespace tagwire::ucp
