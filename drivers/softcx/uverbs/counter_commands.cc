// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/uverbs/counter_commands.h"

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "drivers/softcx/model/life.h"

namespace softcx {

namespace {

// enum ib_counters_description of the kernel: the uapi carries the numbers only.
constexpr uint32_t kPackets = 0, kBytes = 1;

constexpr uint32_t kMostPlaces = 0xffff / sizeof(mlx5_ib_flow_counters_desc);
static_assert(sizeof(mlx5_ib_flow_counters_desc) == 8);
static_assert(sizeof(mlx5_ib_flow_counters_data) == 16);
static_assert(sizeof(mlx5_ib_create_flow) == 8);

// The size of array that a read must offer.
uint64_t places_needed(const FlowCounters& counters) {
    uint64_t most = 0;
    for (const auto& [place, description] : counters.places)
        most = std::max<uint64_t>(most, uint64_t{place} + 1);
    return most;
}

int read_places(const mlx5_ib_flow_counters_data& data,
                std::vector<std::pair<uint32_t, uint32_t>>& places) {
    if (data.reserved != 0 || data.ncounters == 0 || data.ncounters > kMostPlaces)
        return EINVAL;
    const uint64_t size = uint64_t{data.ncounters} * sizeof(mlx5_ib_flow_counters_desc);
    if (!memory_is_mapped(data.counters_data, size, false))
        return EFAULT;
    for (uint32_t i = 0; i < data.ncounters; ++i) {
        mlx5_ib_flow_counters_desc entry;
        std::memcpy(&entry,
                    reinterpret_cast<const uint8_t*>(data.counters_data) + i * sizeof(entry),
                    sizeof(entry));
        if (entry.description > kBytes)
            return EINVAL;
        places.emplace_back(entry.index, entry.description);
    }
    return 0;
}

}  // namespace

int create_counters(Context& context, const Attributes& attributes) {
    if (const int error = attributes.allow_only({UVERBS_ATTR_CREATE_COUNTERS_HANDLE}))
        return error;
    if (!attributes.has(UVERBS_ATTR_CREATE_COUNTERS_HANDLE))
        return EINVAL;
    const std::lock_guard lock(context.device.mutex);
    if (!context.opened)
        return EINVAL;
    if (context.device.failed)
        return EIO;
    auto counters = std::make_unique<FlowCounters>();
    const uint32_t number = allocate_counters_number(context.device);
    counters->number = number;
    context.device.flow_counters.emplace(number, std::move(counters));
    attributes.set_handle(UVERBS_ATTR_CREATE_COUNTERS_HANDLE,
                          context.add(ObjectKind::kFlowCounters, number));
    return 0;
}

int destroy_counters(Context& context, const Attributes& attributes) {
    if (const int error = attributes.allow_only({UVERBS_ATTR_DESTROY_COUNTERS_HANDLE}))
        return error;
    uint32_t handle;
    if (const int error = attributes.handle(UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, handle))
        return error;
    const std::lock_guard lock(context.device.mutex);
    const FlowCounters* counters = find_flow_counters(context, handle);
    if (counters == nullptr)
        return ENOENT;
    if (const int error = destroy_flow_counters(context.device, counters->number))
        return error;
    context.handles.erase(handle);
    return 0;
}

int read_counters(Context& context, const Attributes& attributes) {
    if (const int error =
            attributes.allow_only({UVERBS_ATTR_READ_COUNTERS_HANDLE, UVERBS_ATTR_READ_COUNTERS_BUFF,
                                   UVERBS_ATTR_READ_COUNTERS_FLAGS}))
        return error;
    uint32_t handle, flags = 0;
    std::span<uint8_t> buffer;
    if (const int error = attributes.handle(UVERBS_ATTR_READ_COUNTERS_HANDLE, handle))
        return error;
    if (const int error = attributes.output(UVERBS_ATTR_READ_COUNTERS_BUFF, buffer))
        return error;
    if (attributes.has(UVERBS_ATTR_READ_COUNTERS_FLAGS)) {
        if (const int error = attributes.read(UVERBS_ATTR_READ_COUNTERS_FLAGS, flags))
            return error;
    }
    if ((flags & ~uint32_t{IB_UVERBS_READ_COUNTERS_PREFER_CACHED}) != 0)
        return EINVAL;
    const std::lock_guard lock(context.device.mutex);
    const FlowCounters* counters = find_flow_counters(context, handle);
    if (counters == nullptr)
        return ENOENT;
    if (context.device.failed)
        return EIO;
    const uint64_t offered = buffer.size() / sizeof(uint64_t);
    if (buffer.size() % sizeof(uint64_t) != 0 || counters->places.empty() ||
        places_needed(*counters) > offered)
        return EINVAL;
    std::vector<uint64_t> values(offered);
    for (const auto& [place, description] : counters->places)
        values[place] += description == kPackets ? counters->packets : counters->bytes;
    std::memcpy(buffer.data(), values.data(), buffer.size());
    attributes.mark_written(UVERBS_ATTR_READ_COUNTERS_BUFF);
    return 0;
}

// The first flow of a counters object must say what it counts, later ones must not.
int bind_counters(std::span<const uint8_t> vendor, FlowCounters* counters) {
    mlx5_ib_create_flow header{};
    // A request without a vendor part has no address either.
    if (!vendor.empty())
        std::memcpy(&header, vendor.data(), std::min(vendor.size(), sizeof(header)));
    if (header.reserved != 0 || header.ncounters_data > 1)
        return EINVAL;
    const size_t known =
        sizeof(header) + header.ncounters_data * sizeof(mlx5_ib_flow_counters_data);
    if (vendor.size() > known && !all_zero(vendor.subspan(known)))
        return EOPNOTSUPP;
    if (counters == nullptr)
        return header.ncounters_data == 0 ? 0 : EINVAL;
    if (header.ncounters_data == 0)
        return counters->places.empty() ? EINVAL : 0;
    if (!counters->places.empty() || vendor.size() < known)
        return EINVAL;
    mlx5_ib_flow_counters_data data;
    std::memcpy(&data, vendor.data() + sizeof(header), sizeof(data));
    std::vector<std::pair<uint32_t, uint32_t>> places;
    if (const int error = read_places(data, places))
        return error;
    counters->places = std::move(places);
    return 0;
}

}  // namespace softcx
