// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/clock.h"

#include <rdma/mlx5-abi.h>
#include <sys/mman.h>

#include <ctime>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/engine/byte_order.h"
#include "drivers/softcx/model/context.h"

namespace softcx {

namespace {

static_assert(kCoreClockPage == MLX5_IB_MMAP_CORE_CLOCK << 8);
static_assert(kClockInfoPage == (MLX5_IB_MMAP_CLOCK_INFO << 8 | MLX5_IB_CLOCK_INFO_V1));
static_assert(sizeof(mlx5_ib_clock_info) == 56 && offsetof(mlx5_ib_clock_info, mult) == 32);

// 12.8 ns a tick. A client multiplies in 64 bits: right for 2^36 ticks, a quarter of an hour,
// from the moment that the page names.
constexpr uint32_t kShift = 24;
constexpr uint32_t kMultiplier = 214748365;  // 12.8 * 2^24
static_assert((uint64_t{kMultiplier} * 5 + (1u << 22)) >> kShift == 64);
constexpr uint64_t kRefreshNanoseconds = 500'000'000;

uint64_t wall_clock() noexcept {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

std::unique_ptr<ClockPages> ClockPages::map(int fd, size_t page_size) {
    const auto map_page = [&](uint32_t page) {
        return ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                      static_cast<off_t>(page * page_size));
    };
    void* counter = map_page(kCoreClockPage);
    if (counter == MAP_FAILED)
        return nullptr;
    void* info = map_page(kClockInfoPage);
    if (info == MAP_FAILED) {
        ::munmap(counter, page_size);
        return nullptr;
    }
    std::unique_ptr<ClockPages> pages(new ClockPages(counter, info, page_size));
    pages->publish(read_core_clock());
    return pages;
}

ClockPages::~ClockPages() {
    ::munmap(counter_, page_size_);
    ::munmap(info_, page_size_);
}

void ClockPages::publish(uint64_t ticks) noexcept {
    __atomic_store_n(static_cast<uint64_t*>(counter_), big_endian(ticks), __ATOMIC_RELEASE);
    if (written_at_ == 0 || ticks - written_at_ >= core_clock_ticks(kRefreshNanoseconds))
        write_info();
}

// The client reads between two equal, even values of `sign`.
void ClockPages::write_info() noexcept {
    auto& info = *static_cast<mlx5_ib_clock_info*>(info_);
    __atomic_or_fetch(&info.sign, MLX5_IB_CLOCK_INFO_KERNEL_UPDATING, __ATOMIC_SEQ_CST);
    written_at_ = read_core_clock();
    info.cycles = written_at_;
    info.nsec = wall_clock();
    info.frac = 0;
    info.mult = kMultiplier;
    info.shift = kShift;
    info.mask = ~uint64_t{0};
    info.overflow_period = kRefreshNanoseconds;
    __atomic_add_fetch(&info.sign, MLX5_IB_CLOCK_INFO_KERNEL_UPDATING, __ATOMIC_SEQ_CST);
}

void publish_clock(Device& device, uint64_t ticks) noexcept {
    for (const Context* context : device.contexts)
        if (context->clock)
            context->clock->publish(ticks);
}

}  // namespace softcx
