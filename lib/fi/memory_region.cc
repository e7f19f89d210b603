// SPDX-License-Identifier: BSD-3-Clause
// Regions that peers may access. Local buffers need none; a region that only local access was
// asked for is opened too, and no peer gets in.
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <tagwire/tagwire.h>

#include <new>

#include "lib/fi/counter.h"
#include "lib/fi/domain.h"
#include "lib/fi/flags.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

struct MemoryRegion {
    fid_mr fid;
    Domain* domain;
    tw_mr* mr;
};

int close_region(fid* handle) {
    auto& region = object_of<MemoryRegion>(handle);
    {
        const Guard guard(*region.domain);
        if (const int result = tw_mr_close(region.mr); result != 0) {
            return log_failure("the memory region does not close", result);
        }
    }
    --region.domain->children;
    delete &region;
    return 0;
}

int bind_region(fid* handle, fid* other, uint64_t flags) {
    auto& region = object_of<MemoryRegion>(handle);
    if (other->fclass == FI_CLASS_EP) {
        return 0;  // a region is open through every endpoint of the domain
    }
    if (other->fclass != FI_CLASS_CNTR) {
        return refuse(-FI_EINVAL, FI_LOG_MR, "a memory region is bound to endpoints and counters");
    }
    const Guard guard(*region.domain);
    const int result = tw_mr_bind_cntr(region.mr, object_of<Counter>(other).counter,
                                       bind_flags(flags) & (TW_REMOTE_READ | TW_REMOTE_WRITE));
    return result == 0 ? 0 : log_failure("the memory region refuses to be bound", result);
}

int control(fid*, int command, void*) {
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

fi_ops region_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_region,
    .bind = bind_region,
    .control = control,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

int register_attributes(fid* handle, const fi_mr_attr* attr, uint64_t flags, fid_mr** opened) {
    auto& domain = object_of<Domain>(handle);
    if (handle->fclass != FI_CLASS_DOMAIN || attr == nullptr || attr->iov_count == 0) {
        return refuse(-FI_EINVAL, FI_LOG_MR,
                      "memory is registered with a domain, attributes and at least one iovec");
    }
    if ((flags & ~FI_RMA_EVENT) != 0) {
        return refuse_flags("a registration", flags, FI_RMA_EVENT);
    }
    if (attr->iface != FI_HMEM_SYSTEM) {
        return refuse(-FI_EINVAL, FI_LOG_MR,
                      "memory of devices is not offered: iface is FI_HMEM_SYSTEM");
    }
    auto* region = new (std::nothrow) MemoryRegion{};
    if (region == nullptr) {
        return -FI_ENOMEM;
    }
    const uint64_t access = bind_flags(attr->access);
    // Any region may be bound to counters later.
    uint64_t core_flags = TW_RMA_EVENT;
    if (!domain.basic_memory) {
        core_flags |= TW_MR_REQUESTED_KEY | TW_MR_OFFSET;
    }
    const tw_mr_attr core{.size = sizeof(tw_mr_attr),
                          .iov = attr->mr_iov,
                          .iov_count = attr->iov_count,
                          .access = access,
                          .flags = core_flags,
                          .requested_key = domain.basic_memory ? 0 : attr->requested_key,
                          .context = attr->context};
    const Guard guard(domain);
    if (const int result = tw_mr_open(domain.worker, &core, &region->mr); result != 0) {
        delete region;
        log_failure("the memory is not registered", result);
        return result == -ENOKEY ? -FI_ENOKEY : result;
    }
    region->fid.fid.fclass = FI_CLASS_MR;
    region->fid.fid.context = attr->context;
    region->fid.fid.ops = &region_fid_ops;
    region->fid.mem_desc = region;
    region->fid.key = tw_mr_key(region->mr);
    region->domain = &domain;
    ++domain.children;
    *opened = &region->fid;
    return 0;
}

int register_vector(fid* handle, const iovec* iov, size_t count, uint64_t access, uint64_t offset,
                    uint64_t key, uint64_t flags, fid_mr** opened, void* context) {
    fi_mr_attr attr{};
    attr.mr_iov = iov;
    attr.iov_count = count;
    attr.access = access;
    attr.offset = offset;
    attr.requested_key = key;
    attr.context = context;
    return register_attributes(handle, &attr, flags, opened);
}

int register_buffer(fid* handle, const void* buffer, size_t length, uint64_t access,
                    uint64_t offset, uint64_t key, uint64_t flags, fid_mr** opened, void* context) {
    const iovec iov{.iov_base = const_cast<void*>(buffer), .iov_len = length};
    return register_vector(handle, &iov, 1, access, offset, key, flags, opened, context);
}

}  // namespace

fi_ops_mr memory_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = register_buffer,
    .regv = register_vector,
    .regattr = register_attributes,
};

}  // namespace tagwire::fi
