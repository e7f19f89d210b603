// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

#include "lib/ucp/log.h"
#include "lib/ucp/status.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

constexpr size_t kPackedSize = 28;
constexpr uint8_t kMagic[4] = {'T', 'W', 'R', 'K'};

uint64_t random_key() {
    static thread_local std::random_device device;
    return uint64_t{device()} << 32 | device();
}

void put_number(uint8_t* to, uint64_t value) {
    for (int i = 0; i < 8; ++i) {
        to[i] = static_cast<uint8_t>(value >> (56 - 8 * i));
    }
}

uint64_t get_number(const uint8_t* from) {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
        value = value << 8 | from[i];
    }
    return value;
}

ucs_status_t allocate(unsigned flags, Memory* memory) {
    const bool fixed = (flags & UCP_MEM_MAP_FIXED) != 0;
    void* mapped = mmap(memory->address, memory->length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (mapped == MAP_FAILED) {
        return fixed ? UCS_ERR_INVALID_PARAM : UCS_ERR_NO_MEMORY;
    }
    memory->address = mapped;
    memory->allocated = true;
    return UCS_OK;
}

}  // namespace

int Memory::open_region(Worker& worker) {
    if (length == 0) {
        return 0;  // a key that opens nothing
    }
    const iovec piece{address, length};
    tw_mr_attr attr{};
    attr.size = sizeof(attr);
    attr.iov = &piece;
    attr.iov_count = 1;
    attr.access = access;
    attr.flags = TW_MR_REQUESTED_KEY;
    attr.requested_key = key;
    tw_mr* region = nullptr;
    const int error = tw_mr_open(worker.core(), &attr, &region);
    if (error == 0) {
        regions[&worker] = region;
    }
    return error;
}

void Memory::close_region(Worker& worker) {
    const auto found = regions.find(&worker);
    if (found != regions.end()) {
        tw_mr_close(found->second);
        regions.erase(found);
    }
}

int open_regions(Worker& worker) {
    for (Memory* memory : worker.context().memory) {
        if (const int error = memory->open_region(worker); error != 0) {
            return error;
        }
    }
    return 0;
}

void close_regions(Worker& worker) {
    for (Memory* memory : worker.context().memory) {
        memory->close_region(worker);
    }
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t* params,
                         ucp_mem_h* mapped) {
    const auto given = [&](uint64_t field) { return (params->field_mask & field) != 0; };
    const unsigned flags = given(UCP_MEM_MAP_PARAM_FIELD_FLAGS) ? params->flags : 0;
    void* address = given(UCP_MEM_MAP_PARAM_FIELD_ADDRESS) ? params->address : nullptr;
    if (!given(UCP_MEM_MAP_PARAM_FIELD_LENGTH) ||
        (given(UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) &&
         params->memory_type != UCS_MEMORY_TYPE_HOST &&
         params->memory_type != UCS_MEMORY_TYPE_UNKNOWN)) {
        return UCS_ERR_INVALID_PARAM;
    }
    const bool allocates = (flags & UCP_MEM_MAP_ALLOCATE) != 0;
    if (address == nullptr && params->length != 0 &&
        (!allocates || (flags & UCP_MEM_MAP_FIXED) != 0)) {
        return UCS_ERR_INVALID_PARAM;
    }
    auto* memory = new (std::nothrow) ucp_mem{};
    if (memory == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    memory->context = context;
    memory->address = address;
    memory->length = params->length;
    memory->key = random_key();
    memory->access = TW_REMOTE_READ | TW_REMOTE_WRITE;
    if (given(UCP_MEM_MAP_PARAM_FIELD_PROT)) {
        memory->access =
            ((params->prot & UCP_MEM_MAP_PROT_REMOTE_READ) != 0 ? TW_REMOTE_READ : 0) |
            ((params->prot & UCP_MEM_MAP_PROT_REMOTE_WRITE) != 0 ? TW_REMOTE_WRITE : 0);
    }
    ucs_status_t status = UCS_OK;
    if (allocates && params->length != 0) {
        status = allocate(flags, memory);
    }
    if (status != UCS_OK) {
        delete memory;
        return status;
    }
    int error = 0;
    {
        const std::lock_guard<std::mutex> lock(context->mutex);
        context->memory.push_back(memory);
        for (Worker* worker : context->workers) {
            const Worker::Guard guard(*worker);
            error = error == 0 ? memory->open_region(*worker) : error;
        }
    }
    if (error != 0) {
        log_error("ucp_mem_map: %s", tw_last_error());
        ucp_mem_unmap(context, memory);
        return status_of(error);
    }
    *mapped = memory;
    return UCS_OK;
}

ucs_status_t ucp_mem_unmap(ucp_context_h context, ucp_mem_h memory) {
    {
        const std::lock_guard<std::mutex> lock(context->mutex);
        std::erase(context->memory, memory);
        for (Worker* worker : context->workers) {
            const Worker::Guard guard(*worker);
            memory->close_region(*worker);
        }
    }
    if (memory->allocated) {
        munmap(memory->address, memory->length);
    }
    delete memory;
    return UCS_OK;
}

ucs_status_t ucp_mem_query(const ucp_mem_h memory, ucp_mem_attr_t* attr) {
    if ((attr->field_mask & UCP_MEM_ATTR_FIELD_ADDRESS) != 0) {
        attr->address = memory->address;
    }
    if ((attr->field_mask & UCP_MEM_ATTR_FIELD_LENGTH) != 0) {
        attr->length = memory->length;
    }
    if ((attr->field_mask & UCP_MEM_ATTR_FIELD_MEM_TYPE) != 0) {
        attr->mem_type = UCS_MEMORY_TYPE_HOST;
    }
    return UCS_OK;
}

ucs_status_t ucp_mem_advise(ucp_context_h /* context */, ucp_mem_h memory,
                            ucp_mem_advise_params_t* params) {
    constexpr uint64_t kAll = UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS |
                              UCP_MEM_ADVISE_PARAM_FIELD_LENGTH | UCP_MEM_ADVISE_PARAM_FIELD_ADVICE;
    const auto from = reinterpret_cast<uintptr_t>(params->address);
    const auto begin = reinterpret_cast<uintptr_t>(memory->address);
    if ((params->field_mask & kAll) != kAll || from < begin || params->length > memory->length ||
        from - begin > memory->length - params->length) {
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;  // advice to a device that pins; there is none
}

void ucp_mem_print_info(const char* size, ucp_context_h context, FILE* stream) {
    char* end = nullptr;
    size_t length = std::strtoull(size, &end, 10);
    switch (*end | 0x20) {
        case 'k':
            length <<= 10;
            break;
        case 'm':
            length <<= 20;
            break;
        case 'g':
            length <<= 30;
            break;
        default:
            break;
    }
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.length = length;
    params.flags = UCP_MEM_MAP_ALLOCATE;
    ucp_mem_h memory = nullptr;
    if (const ucs_status_t status = ucp_mem_map(context, &params, &memory); status != UCS_OK) {
        std::fprintf(stream, "# <Failed to map memory of size %s>\n", size);
        return;
    }
    std::fprintf(stream,
                 "#\n# UCP memory allocation\n#\n#  allocated %zu at address %p with mmap\n",
                 memory->length, memory->address);
    std::fprintf(stream, "#  registered on: tagwire\n#\n");
    ucp_mem_unmap(context, memory);
}

ucs_status_t ucp_rkey_pack(ucp_context_h /* context */, ucp_mem_h memory, void** buffer,
                           size_t* size) {
    auto* bytes = static_cast<uint8_t*>(std::malloc(kPackedSize));
    if (bytes == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    std::memcpy(bytes, kMagic, sizeof(kMagic));
    put_number(bytes + 4, memory->key);
    put_number(bytes + 12, reinterpret_cast<uintptr_t>(memory->address));
    put_number(bytes + 20, memory->length);
    *buffer = bytes;
    *size = kPackedSize;
    return UCS_OK;
}

void ucp_rkey_buffer_release(void* buffer) {
    std::free(buffer);
}

ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h /* ep */, const void* buffer, ucp_rkey_h* rkey) {
    const auto* bytes = static_cast<const uint8_t*>(buffer);
    if (std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0) {
        return UCS_ERR_INVALID_PARAM;
    }
    *rkey = new (std::nothrow)
        ucp_rkey{get_number(bytes + 4), get_number(bytes + 12), get_number(bytes + 20)};
    return *rkey == nullptr ? UCS_ERR_NO_MEMORY : UCS_OK;
}

// The peer's memory is not in this process, nor can it be.
ucs_status_t ucp_rkey_ptr(ucp_rkey_h /* rkey */, uint64_t /* address */, void** /* pointer */) {
    return UCS_ERR_UNREACHABLE;
}

void ucp_rkey_destroy(ucp_rkey_h rkey) {
    delete rkey;
}
