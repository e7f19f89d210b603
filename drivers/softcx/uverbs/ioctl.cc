// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/uverbs/ioctl.h"

#include <net/if.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <unistd.h>

#include <initializer_list>
#include <mutex>
#include <span>

#include "drivers/softcx/log.h"
#include "drivers/softcx/model/machine.h"
#include "drivers/softcx/model/port.h"
#include "drivers/softcx/model/refusal.h"
#include "drivers/softcx/uverbs/attributes.h"
#include "drivers/softcx/uverbs/command.h"
#include "drivers/softcx/uverbs/counter_commands.h"
#include "drivers/softcx/uverbs/files.h"
#include "drivers/softcx/uverbs/import.h"

namespace softcx {

namespace {

// The one bridge for commands that have no attributes of their own.
int invoke_write(Context& context, const Attributes& attributes) {
    if (const int error =
            attributes.allow_only({UVERBS_ATTR_CORE_IN, UVERBS_ATTR_CORE_OUT, UVERBS_ATTR_WRITE_CMD,
                                   UVERBS_ATTR_UHW_IN, UVERBS_ATTR_UHW_OUT}))
        return error;
    uint64_t number;
    if (const int error = attributes.read(UVERBS_ATTR_WRITE_CMD, number))
        return error;
    if (number > UINT32_MAX)
        return EINVAL;
    std::span<const uint8_t> request, vendor_request;
    std::span<uint8_t> response, vendor_response;
    if (const int error = attributes.input(UVERBS_ATTR_CORE_IN, request))
        return error;
    if (const int error = attributes.output(UVERBS_ATTR_CORE_OUT, response))
        return error;
    if (const int error = attributes.input(UVERBS_ATTR_UHW_IN, vendor_request))
        return error;
    if (const int error = attributes.output(UVERBS_ATTR_UHW_OUT, vendor_response))
        return error;
    const Command command{context, request, response, vendor_request, vendor_response};
    if (const int error = execute_write_command(command, static_cast<uint32_t>(number)))
        return error;
    attributes.mark_written(UVERBS_ATTR_CORE_OUT);
    attributes.mark_written(UVERBS_ATTR_UHW_OUT);
    return 0;
}

// Zero: the device has no network device.
uint32_t netdev_index(const Device& device) {
    const std::string* name = machine().configuration.netdev_of(device.index);
    return name == nullptr ? 0 : ::if_nametoindex(name->c_str());
}

ib_uverbs_gid_entry describe_gid(const Device& device, const Gid& gid, GidType type,
                                 uint32_t index) {
    ib_uverbs_gid_entry entry{};
    static_assert(sizeof(entry.gid) == sizeof(gid));
    std::memcpy(entry.gid, gid.data(), gid.size());
    entry.gid_index = index;
    entry.port_num = kPortNumber;
    entry.gid_type = static_cast<uint32_t>(type);
    entry.netdev_ifindex = netdev_index(device);
    return entry;
}

int query_gid_entry(Context& context, const Attributes& attributes) {
    if (const int error = attributes.allow_only(
            {UVERBS_ATTR_QUERY_GID_ENTRY_PORT, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX,
             UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY}))
        return error;
    uint32_t port, index, flags = 0;
    if (const int error = attributes.read(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port))
        return error;
    if (const int error = attributes.read(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index))
        return error;
    if (const int error = attributes.read(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, flags))
        return error;
    std::span<uint8_t> response;
    if (const int error = attributes.output(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, response))
        return error;
    if (port != kPortNumber || index >= kGidTableLength || flags != 0)
        return EINVAL;
    Gid gid;
    GidType type;
    {
        const std::lock_guard lock(context.device.mutex);
        if (!gid_entry(context.device.port, index, gid, type))
            return ENODATA;
    }
    write_response(response, describe_gid(context.device, gid, type, index));
    attributes.mark_written(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY);
    return 0;
}

int query_gid_table(Context& context, const Attributes& attributes) {
    if (const int error = attributes.allow_only({UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE,
                                                 UVERBS_ATTR_QUERY_GID_TABLE_FLAGS,
                                                 UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES,
                                                 UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES}))
        return error;
    uint64_t entry_size;
    uint32_t flags = 0;
    if (const int error = attributes.read(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_size))
        return error;
    if (const int error = attributes.read(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, flags))
        return error;
    std::span<uint8_t> entries, count;
    if (const int error = attributes.output(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entries))
        return error;
    if (const int error = attributes.output(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, count))
        return error;
    if (flags != 0 || entry_size == 0 || entry_size > entries.size())
        return EINVAL;
    uint64_t found = 0;
    const std::lock_guard lock(context.device.mutex);
    for (uint32_t index = 0; index < kGidTableLength; ++index) {
        Gid gid;
        GidType type;
        if (!gid_entry(context.device.port, index, gid, type))
            continue;
        if ((found + 1) * entry_size > entries.size())
            return EINVAL;
        write_response(entries.subspan(found * entry_size, entry_size),
                       describe_gid(context.device, gid, type, index));
        ++found;
    }
    write_response(count, found);
    attributes.mark_written(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
    attributes.mark_written(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES);
    return 0;
}

int alloc_uar(Context& context, const Attributes& attributes) {
    if (const int error = attributes.allow_only(
            {MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE,
             MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH,
             MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID}))
        return error;
    uint64_t type;
    if (const int error = attributes.read(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, type))
        return error;
    std::span<uint8_t> offset, length, page_id;
    if (const int error = attributes.output(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset))
        return error;
    if (const int error = attributes.output(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, length))
        return error;
    if (const int error = attributes.output(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, page_id))
        return error;
    if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
        return EOPNOTSUPP;
    if (!attributes.has(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE))
        return EINVAL;
    const std::lock_guard lock(context.device.mutex);
    if (!context.opened)
        return EINVAL;
    if (context.next_uar_page >= kMaxUarPages)
        return ENOSPC;
    const uint32_t page = context.next_uar_page++;
    const auto page_size = static_cast<uint32_t>(::getpagesize());
    write_response(offset, uint64_t{kFirstUarPage + page} * page_size);
    write_response(length, page_size);
    write_response(page_id, page);
    for (const uint16_t id :
         {MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH,
          MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID})
        attributes.mark_written(id);
    attributes.set_handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, context.add(ObjectKind::kUar, page));
    return 0;
}

int destroy_uar(Context& context, const Attributes& attributes) {
    if (const int error = attributes.allow_only({MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE}))
        return error;
    uint32_t handle;
    if (const int error = attributes.handle(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, handle))
        return error;
    const std::lock_guard lock(context.device.mutex);
    if (context.find(ObjectKind::kUar, handle) == nullptr)
        return ENOENT;
    context.handles.erase(handle);
    return 0;
}

struct IoctlMethod {
    uint16_t object;
    uint16_t method;
    int (*execute)(Context&, const Attributes&);
};

// Everything else answers EPROTONOSUPPORT; the client library then takes the write
// form, or does without (DEVX).
constexpr IoctlMethod kMethods[] = {
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, invoke_write},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, query_gid_entry},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, query_gid_table},
    {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, query_context},
    {UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, query_pd},
    {UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, query_mr},
    {UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, alloc_async_events},
    {UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, create_counters},
    {UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, destroy_counters},
    {UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, read_counters},
    {MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, alloc_uar},
    {MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, destroy_uar},
};

// May be refused on demand. The command inside of an INVOKE_WRITE is asked itself, and
// what releases always works.
bool is_a_step(const IoctlMethod& method) {
    return method.execute != invoke_write && method.execute != destroy_uar &&
           method.execute != destroy_counters;
}

}  // namespace

int execute_ioctl(Context& context, uint64_t message) {
    if (!memory_is_mapped(message, sizeof(ib_uverbs_ioctl_hdr), true))
        return EFAULT;
    ib_uverbs_ioctl_hdr header;
    std::memcpy(static_cast<void*>(&header), reinterpret_cast<const void*>(message),
                sizeof(header));
    if (header.length != sizeof(header) + header.num_attrs * sizeof(ib_uverbs_attr) ||
        header.length > 4096)
        return EINVAL;
    if (header.reserved1 != 0 || header.reserved2 != 0)
        return EPROTONOSUPPORT;
    if (header.driver_id != RDMA_DRIVER_MLX5)
        return EINVAL;
    if (!memory_is_mapped(message, header.length, true))
        return EFAULT;
    const Attributes attributes(
        std::span(reinterpret_cast<ib_uverbs_attr*>(message + sizeof(header)), header.num_attrs));
    if (attributes.has_duplicates())
        return EINVAL;
    for (const IoctlMethod& method : kMethods)
        if (method.object == header.object_id && method.method == header.method_id) {
            if (is_a_step(method)) {
                const std::lock_guard lock(context.device.mutex);
                if (const int error = take_refusal(context.device))
                    return error;
            }
            return method.execute(context, attributes);
        }
    log(LogLevel::kDebug, "%s: ioctl object 0x%x method 0x%x: the client falls back",
        context.device.name.c_str(), header.object_id, header.method_id);
    return EPROTONOSUPPORT;
}

}  // namespace softcx
