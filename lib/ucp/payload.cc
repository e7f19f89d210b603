// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/payload.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tagwire::ucp {
namespace {

// ucp_dt_iov_t and iovec are the same two words.
static_assert(sizeof(ucp_dt_iov_t) == sizeof(iovec));
static_assert(offsetof(ucp_dt_iov_t, buffer) == offsetof(iovec, iov_base));
static_assert(offsetof(ucp_dt_iov_t, length) == offsetof(iovec, iov_len));

const GenericType* generic_of(ucp_datatype_t datatype) {
    return reinterpret_cast<const GenericType*>(datatype & ~uint64_t{UCP_DATATYPE_CLASS_MASK});
}

}  // namespace

ucs_status_t Payload::open_send(const void* buffer, size_t count, ucp_datatype_t datatype) {
    switch (datatype & UCP_DATATYPE_CLASS_MASK) {
        case UCP_DATATYPE_CONTIG:
            element_ = datatype >> UCP_DATATYPE_SHIFT;
            length_ = element_ * count;
            if (length_ != 0 && buffer == nullptr) [[unlikely]] {
                return UCS_ERR_INVALID_PARAM;
            }
            one_ = {const_cast<void*>(buffer), length_};
            piece_count_ = length_ != 0 ? 1 : 0;
            return UCS_OK;
        case UCP_DATATYPE_IOV:
            return open_iov(static_cast<const ucp_dt_iov_t*>(buffer), count, true);
        case UCP_DATATYPE_GENERIC:
            return open_generic(buffer, count, datatype, true);
        default:
            return UCS_ERR_INVALID_PARAM;
    }
}

ucs_status_t Payload::open_receive(void* buffer, size_t count, ucp_datatype_t datatype) {
    switch (datatype & UCP_DATATYPE_CLASS_MASK) {
        case UCP_DATATYPE_IOV:
            return open_iov(static_cast<const ucp_dt_iov_t*>(buffer), count, false);
        case UCP_DATATYPE_GENERIC:
            return open_generic(buffer, count, datatype, false);
        default:
            return open_send(buffer, count, datatype);
    }
}

ucs_status_t Payload::open_iov(const ucp_dt_iov_t* iov, size_t count, bool send) {
    if (iov == nullptr && count != 0) {
        return UCS_ERR_INVALID_PARAM;
    }
    length_ = 0;
    for (size_t i = 0; i < count; ++i) {
        if (iov[i].buffer == nullptr && iov[i].length != 0) {
            return UCS_ERR_INVALID_PARAM;
        }
        length_ += iov[i].length;
    }
    const auto* pieces = reinterpret_cast<const iovec*>(iov);
    if (count <= kPieces) {
        pieces_ = count != 0 ? pieces : nullptr;
        piece_count_ = count;
        return UCS_OK;
    }
    if (!make_bounce()) {
        return UCS_ERR_NO_MEMORY;
    }
    if (!send) {
        scatter_ = pieces;
        scatter_count_ = count;
        return UCS_OK;
    }
    auto* to = static_cast<char*>(bounce_);
    for (size_t i = 0; i < count; ++i) {
        if (iov[i].length != 0) {
            std::memcpy(to, iov[i].buffer, iov[i].length);
            to += iov[i].length;
        }
    }
    return UCS_OK;
}

// Packed when it is posted, unpacked when all of it is there.
ucs_status_t Payload::open_generic(const void* buffer, size_t count, ucp_datatype_t datatype,
                                   bool send) {
    generic_ = generic_of(datatype);
    if (generic_ == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    const ucp_generic_dt_ops_t& ops = generic_->ops;
    state_ = send ? ops.start_pack(generic_->context, buffer, count)
                  : ops.start_unpack(generic_->context, const_cast<void*>(buffer), count);
    length_ = ops.packed_size(state_);
    if (!make_bounce()) {
        ops.finish(state_);
        generic_ = nullptr;
        return UCS_ERR_NO_MEMORY;
    }
    for (size_t packed = 0; send && packed < length_;) {
        const size_t more =
            ops.pack(state_, packed, static_cast<char*>(bounce_) + packed, length_ - packed);
        if (more == 0) {
            close();
            return UCS_ERR_INVALID_PARAM;  // it promised packed_size() bytes
        }
        packed += more;
    }
    return UCS_OK;
}

bool Payload::make_bounce() {
    one_ = {nullptr, length_};
    piece_count_ = length_ != 0 ? 1 : 0;
    if (length_ == 0) {
        return true;
    }
    bounce_ = std::malloc(length_);
    one_.iov_base = bounce_;
    return bounce_ != nullptr;
}

ucs_status_t Payload::deliver(size_t length) {
    if (generic_ != nullptr) {
        // Of an empty message too, as in UCX: the program decides what it makes of it.
        return generic_->ops.unpack(state_, 0, bounce_, length);
    }
    const auto* from = static_cast<const char*>(bounce_);
    for (size_t i = 0; i < scatter_count_ && length != 0; ++i) {
        const size_t part = std::min(length, scatter_[i].iov_len);
        if (part != 0) {
            std::memcpy(scatter_[i].iov_base, from, part);
        }
        from += part;
        length -= part;
    }
    return UCS_OK;
}

ucs_status_t Payload::place(size_t offset, const void* data, size_t length) {
    if (generic_ != nullptr) {
        return generic_->ops.unpack(state_, offset, data, length);
    }
    const iovec* pieces = scatter_ != nullptr ? scatter_ : this->pieces();
    const size_t count = scatter_ != nullptr ? scatter_count_ : piece_count_;
    const auto* from = static_cast<const char*>(data);
    for (size_t i = 0; i < count && length != 0; ++i) {
        if (offset >= pieces[i].iov_len) {
            offset -= pieces[i].iov_len;
            continue;
        }
        const size_t part = std::min(length, pieces[i].iov_len - offset);
        std::memcpy(static_cast<char*>(pieces[i].iov_base) + offset, from, part);
        from += part;
        length -= part;
        offset = 0;
    }
    return UCS_OK;
}

size_t Payload::fetch(size_t offset, void* data, size_t length) const {
    iovec parts[kPieces];
    const size_t count = cut(offset, length, parts);
    auto* to = static_cast<char*>(data);
    for (size_t i = 0; i < count; ++i) {
        std::memcpy(to, parts[i].iov_base, parts[i].iov_len);
        to += parts[i].iov_len;
    }
    return static_cast<size_t>(to - static_cast<char*>(data));
}

size_t Payload::cut(size_t offset, size_t length, iovec* parts) const {
    size_t count = 0;
    for (size_t i = 0; i < piece_count_ && length != 0; ++i) {
        const iovec& piece = pieces()[i];
        if (offset >= piece.iov_len) {
            offset -= piece.iov_len;
            continue;
        }
        const size_t part = std::min(length, piece.iov_len - offset);
        parts[count++] = {static_cast<char*>(piece.iov_base) + offset, part};
        length -= part;
        offset = 0;
    }
    return count;
}

void Payload::close() {
    if (generic_ != nullptr) {
        generic_->ops.finish(state_);
        generic_ = nullptr;
    }
    std::free(bounce_);
    bounce_ = nullptr;
}

}  // namespace tagwire::ucp

ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t* ops, void* context,
                                   ucp_datatype_t* datatype) {
    static_assert(alignof(tagwire::ucp::GenericType) > UCP_DATATYPE_CLASS_MASK);
    if (ops == nullptr || datatype == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    auto* type = new (std::nothrow) tagwire::ucp::GenericType{*ops, context};
    if (type == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    *datatype = reinterpret_cast<uintptr_t>(type) | UCP_DATATYPE_GENERIC;
    return UCS_OK;
}

void ucp_dt_destroy(ucp_datatype_t datatype) {
    if ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC) {
        delete tagwire::ucp::generic_of(datatype);
    }
}
