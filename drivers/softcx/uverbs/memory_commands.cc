// SPDX-License-Identifier: BSD-3-Clause
// Protection domains and memory regions.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/model/life.h"
#include "drivers/softcx/uverbs/command.h"

namespace softcx {

namespace {

#ifndef MADV_POPULATE_READ
constexpr int MADV_POPULATE_READ = 22, MADV_POPULATE_WRITE = 23;
#endif

// IB_ACCESS_* that a raw packet device can take: local write, remote write, remote
// read, remote atomic, and the optional range (relaxed ordering among it).
constexpr uint32_t kLocalWrite = IB_UVERBS_ACCESS_LOCAL_WRITE;
constexpr uint32_t kNeedLocalWrite = IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC;
constexpr uint32_t kKnownAccess =
    kLocalWrite | kNeedLocalWrite | IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_OPTIONAL_RANGE;
// What belongs to features that are not announced.
constexpr uint32_t kAbsentAccess =
    IB_UVERBS_ACCESS_ON_DEMAND | IB_UVERBS_ACCESS_HUGETLB | IB_UVERBS_ACCESS_MW_BIND;

int check_access(uint32_t access) {
    if ((access & kNeedLocalWrite) != 0 && (access & kLocalWrite) == 0)
        return EINVAL;
    if ((access & kAbsentAccess) != 0)
        return EOPNOTSUPP;
    return (access & ~kKnownAccess) != 0 ? EINVAL : 0;
}

// A range of client memory, and the address by which WQEs name it.
int check_range(uint64_t start, uint64_t length, uint64_t iova, uint32_t access) {
    const auto page_mask = static_cast<uint64_t>(::getpagesize()) - 1;
    if ((start & page_mask) != (iova & page_mask))
        return EINVAL;
    if (length == 0 || start + length < start || iova + length < iova)
        return EINVAL;
    return memory_is_mapped(start, length, (access & kLocalWrite) != 0) ? 0 : EFAULT;
}

// enum ib_mr_rereg_flags of the kernel.
constexpr uint32_t kReregTranslation = 1, kReregDomain = 2, kReregAccess = 4;

bool populate(const void* page, size_t size, bool writable) {
    return ::madvise(const_cast<void*>(page), size,
                     writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
}

// EINVAL means "no such rights", and also "no such advice" before Linux 5.14: asked
// once with a page that has all rights.
bool can_populate(size_t page_size) {
    alignas(4096) static unsigned char page[4096];
    static const bool can = page_size == sizeof(page) && populate(page, sizeof(page), true);
    return can;
}

bool page_allows(uint64_t page, bool writable) {
    const auto size = static_cast<size_t>(::getpagesize());
    return !can_populate(size) || populate(reinterpret_cast<const void*>(page), size, writable);
}

}  // namespace

// The kernel pins the pages and so finds out; here every page is asked for, and the
// access rights of the first and the last (a range over differing mappings is
// caught by its ends only).
bool memory_is_mapped(uint64_t address, uint64_t length, bool writable) {
    const auto page_size = static_cast<uint64_t>(::getpagesize());
    const uint64_t first = address & ~(page_size - 1);
    if (length == 0 || address + length < address || address + length > ~uint64_t{0} - page_size)
        return false;
    const uint64_t end = (address + length + page_size - 1) & ~(page_size - 1);
    constexpr uint64_t kPagesAtOnce = 4096;
    unsigned char resident[kPagesAtOnce];
    for (uint64_t from = first; from < end;) {
        const uint64_t bytes = std::min(end - from, kPagesAtOnce * page_size);
        if (::mincore(reinterpret_cast<void*>(from), bytes, resident) != 0)
            return false;
        from += bytes;
    }
    return page_allows(first, writable) && page_allows(end - page_size, writable);
}

int alloc_pd(const Command& command) {
    Device& device = command.device();
    auto pd = std::make_unique<ProtectionDomain>();
    pd->pdn = allocate_pd_number(device);
    const uint32_t number = pd->pdn;
    device.pds.emplace(number, std::move(pd));

    ib_uverbs_alloc_pd_resp response{};
    response.pd_handle = command.context.add(ObjectKind::kProtectionDomain, number);
    write_response(command.response, response);
    write_response(command.vendor_response, mlx5_ib_alloc_pd_resp{.pdn = number});
    return 0;
}

int dealloc_pd(const Command& command) {
    ib_uverbs_dealloc_pd request;
    if (const int error = read_request(command.request, request))
        return error;
    const ProtectionDomain* pd = find_pd(command.context, request.pd_handle);
    if (pd == nullptr)
        return ENOENT;
    if (const int error = destroy_pd(command.device(), pd->pdn))
        return error;
    command.context.handles.erase(request.pd_handle);
    return 0;
}

int reg_mr(const Command& command) {
    ib_uverbs_reg_mr request;
    if (const int error = read_request(command.request, request))
        return error;
    if (const int error = check_access(request.access_flags))
        return error;
    ProtectionDomain* pd = find_pd(command.context, request.pd_handle);
    if (pd == nullptr)
        return EINVAL;
    if (const int error =
            check_range(request.start, request.length, request.hca_va, request.access_flags))
        return error;

    Device& device = command.device();
    auto mr = std::make_unique<MemoryRegion>();
    mr->lkey = allocate_mkey(device);
    mr->rkey = mr->lkey;
    mr->pd = pd;
    mr->start = request.start;
    mr->length = request.length;
    mr->iova = request.hca_va;
    mr->access = request.access_flags;
    ++pd->use_count;
    const uint32_t key = mr->lkey;
    device.mrs.emplace(key, std::move(mr));
    device.generation.fetch_add(1, std::memory_order_release);

    ib_uverbs_reg_mr_resp response{};
    response.mr_handle = command.context.add(ObjectKind::kMemoryRegion, key);
    response.lkey = key;
    response.rkey = key;
    write_response(command.response, response);
    return 0;
}

// Everything is checked before anything changes; the keys stay.
int rereg_mr(const Command& command) {
    ib_uverbs_rereg_mr request;
    if (const int error = read_request(command.request, request))
        return error;
    constexpr uint32_t kKnown = kReregTranslation | kReregDomain | kReregAccess;
    if (request.flags == 0)
        return EINVAL;
    if ((request.flags & ~kKnown) != 0)
        return EOPNOTSUPP;
    MemoryRegion* mr = find_mr(command.context, request.mr_handle);
    if (mr == nullptr)
        return EINVAL;
    MemoryRegion changed = *mr;
    if ((request.flags & kReregAccess) != 0) {
        if (const int error = check_access(request.access_flags))
            return error;
        changed.access = request.access_flags;
    }
    if ((request.flags & kReregDomain) != 0) {
        changed.pd = find_pd(command.context, request.pd_handle);
        if (changed.pd == nullptr)
            return EINVAL;
    }
    if ((request.flags & kReregTranslation) != 0) {
        changed.start = request.start;
        changed.length = request.length;
        changed.iova = request.hca_va;
    }
    if (const int error = check_range(changed.start, changed.length, changed.iova, changed.access))
        return error;

    engine_forget(command.device(), *mr);
    --mr->pd->use_count;
    ++changed.pd->use_count;
    *mr = changed;
    command.device().generation.fetch_add(1, std::memory_order_release);
    write_response(command.response, ib_uverbs_rereg_mr_resp{.lkey = mr->lkey, .rkey = mr->rkey});
    return 0;
}

int dereg_mr(const Command& command) {
    ib_uverbs_dereg_mr request;
    if (const int error = read_request(command.request, request))
        return error;
    const MemoryRegion* mr = find_mr(command.context, request.mr_handle);
    if (mr == nullptr)
        return ENOENT;
    if (const int error = destroy_mr(command.device(), mr->lkey))
        return error;
    command.context.handles.erase(request.mr_handle);
    return 0;
}

}  // namespace softcx
