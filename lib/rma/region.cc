// SPDX-License-Identifier: BSD-3-Clause
#include "lib/rma/region.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "lib/rma/remote_memory.h"
#include "lib/tagwire/attributes.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

Region::Region(Worker& worker, const tw_mr_attr& attr, uint64_t key)
    : worker_(worker),
      iov_count_(static_cast<uint32_t>(attr.iov_count)),
      counts_((attr.flags & TW_RMA_EVENT) != 0),
      base_((attr.flags & TW_MR_OFFSET) != 0 ? 0
                                             : reinterpret_cast<uint64_t>(attr.iov[0].iov_base)),
      access_(attr.access),
      key_(key),
      context_(attr.context) {
    std::copy(attr.iov, attr.iov + attr.iov_count, iov_);
    for (uint32_t i = 0; i < iov_count_; ++i) {
        length_ += iov_[i].iov_len;
    }
}

int Region::check(uint64_t access, uint64_t address, uint64_t length) const {
    if ((access_ & access) != access) {
        return EACCES;
    }
    const uint64_t offset = address - base_;  // far beyond the length when the address is below
    return offset > length_ || length > length_ - offset ? EFAULT : 0;
}

uint32_t Region::pieces(uint64_t address, uint64_t length, iovec* to) const {
    uint64_t offset = address - base_;
    uint32_t count = 0;
    for (const iovec* from = iov_; length > 0; ++from) {
        if (offset >= from->iov_len) {
            offset -= from->iov_len;
            continue;
        }
        const uint64_t part = std::min<uint64_t>(length, from->iov_len - offset);
        to[count++] = {static_cast<uint8_t*>(from->iov_base) + offset, part};
        length -= part;
        offset = 0;
    }
    return count;
}

int Region::bind(CompletionCounter& counter, uint64_t flags) {
    if (&counter.worker() != &worker_) {
        return refuse(EINVAL, "tw_mr_bind_cntr: the counter belongs to another worker");
    }
    if (flags == 0 || (flags & ~(TW_REMOTE_READ | TW_REMOTE_WRITE)) != 0) {
        return refuse(EINVAL, "tw_mr_bind_cntr: flags are TW_REMOTE_READ, TW_REMOTE_WRITE or both");
    }
    if (!counts_) {
        return refuse(EINVAL, "tw_mr_bind_cntr: open the region with TW_RMA_EVENT");
    }
    if (((flags & TW_REMOTE_READ) != 0 && read_counter_ != nullptr) ||
        ((flags & TW_REMOTE_WRITE) != 0 && write_counter_ != nullptr)) {
        return refuse(EBUSY, "tw_mr_bind_cntr: the region has a counter for that already");
    }
    if ((flags & TW_REMOTE_READ) != 0) {
        counter.bind();
        read_counter_ = &counter;
    }
    if ((flags & TW_REMOTE_WRITE) != 0) {
        counter.bind();
        write_counter_ = &counter;
    }
    return 0;
}

void Region::unbind_counters() {
    for (CompletionCounter* counter : {read_counter_, write_counter_}) {
        if (counter != nullptr) {
            counter->unbind();
        }
    }
    read_counter_ = write_counter_ = nullptr;
}

namespace {

int check_attributes(const tw_mr_attr& attr) {
    if (attr.iov == nullptr || attr.iov_count == 0 || attr.iov_count > TW_IOV_LIMIT) {
        return refuse(EINVAL, "tw_mr_open: iov has 1 to TW_IOV_LIMIT (8) entries");
    }
    constexpr uint64_t kFlags = TW_MR_REQUESTED_KEY | TW_MR_OFFSET | TW_RMA_EVENT;
    if ((attr.flags & ~kFlags) != 0) {
        return refuse(EINVAL,
                      "tw_mr_open: flags are TW_MR_REQUESTED_KEY, TW_MR_OFFSET and TW_RMA_EVENT");
    }
    constexpr uint64_t kAccess =
        TW_REMOTE_READ | TW_REMOTE_WRITE | TW_READ | TW_WRITE | TW_SEND | TW_RECV;
    if ((attr.access & ~kAccess) != 0) {
        return refuse(EINVAL,
                      "tw_mr_open: access is TW_REMOTE_READ, TW_REMOTE_WRITE, and what needs no "
                      "region: TW_READ, TW_WRITE, TW_SEND, TW_RECV");
    }
    if (attr.iov_count > 1 && (attr.flags & TW_MR_OFFSET) == 0) {
        return refuse(EINVAL,
                      "tw_mr_open: a region of several pieces needs TW_MR_OFFSET, as its bytes "
                      "have no addresses in a row");
    }
    uint64_t total = 0;
    for (size_t i = 0; i < attr.iov_count; ++i) {
        const auto start = reinterpret_cast<uint64_t>(attr.iov[i].iov_base);
        uint64_t end;
        // The whole address space, for memory that is not known yet (MPI's dynamic windows).
        const bool everything = attr.iov_count == 1 && attr.iov[i].iov_len == SIZE_MAX;
        if (start == 0 && attr.iov[i].iov_len != 0 && !everything) {
            return refuse(EINVAL,
                          "tw_mr_open: memory of more than 0 bytes is NULL (with SIZE_MAX bytes as "
                          "the only piece it is the whole address space)");
        }
        if (__builtin_add_overflow(start, attr.iov[i].iov_len, &end) ||
            __builtin_add_overflow(total, attr.iov[i].iov_len, &total)) {
            return refuse(EINVAL, "tw_mr_open: the memory ends beyond the address space");
        }
    }
    return 0;
}

}  // namespace

}  // namespace tagwire

using namespace tagwire;

int tw_mr_open(tw_worker* worker, const tw_mr_attr* attr, tw_mr** mr) {
    if (worker == nullptr || attr == nullptr || mr == nullptr) {
        return refuse(EINVAL, "tw_mr_open: worker, attr and mr cannot be NULL");
    }
    tw_mr_attr wanted{};
    if (const int error = take_attributes(attr, &wanted, "tw_mr_attr"); error != 0) {
        return error;
    }
    if (const int error = check_attributes(wanted); error != 0) {
        return error;
    }
    const Guard guard(*worker);
    return guarded([&] {
        RemoteMemory& memory = RemoteMemory::of(*worker);
        const bool requested = (wanted.flags & TW_MR_REQUESTED_KEY) != 0;
        if (requested && memory.regions().find(wanted.requested_key) != nullptr) {
            return refuse(ENOKEY, "tw_mr_open: another region has the requested key");
        }
        const uint64_t key = requested ? wanted.requested_key : memory.new_key();
        auto opened = std::make_unique<tw_mr>(*worker, wanted, key);
        memory.regions().insert(*opened);
        worker->child_opened();
        *mr = opened.release();
        return 0;
    });
}

int tw_mr_close(tw_mr* mr) {
    if (mr == nullptr) {
        return refuse(EINVAL, "tw_mr_close: mr cannot be NULL");
    }
    Worker& worker = mr->worker();
    const Guard guard(worker);
    if (const int error = RemoteMemory::of(worker).close(*mr); error != 0) {
        return error;
    }
    mr->unbind_counters();
    worker.child_closed();
    delete mr;
    return 0;
}

uint64_t tw_mr_key(const tw_mr* mr) {
    return mr == nullptr ? 0 : mr->key();
}

void* tw_mr_context(const tw_mr* mr) {
    return mr == nullptr ? nullptr : mr->context();
}

int tw_mr_bind_cntr(tw_mr* mr, tw_cntr* cntr, uint64_t flags) {
    if (mr == nullptr || cntr == nullptr) {
        return refuse(EINVAL, "tw_mr_bind_cntr: mr and cntr cannot be NULL");
    }
    const Guard guard(mr->worker());
    return mr->bind(*cntr, flags);
}
