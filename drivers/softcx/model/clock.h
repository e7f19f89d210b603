// SPDX-License-Identifier: BSD-3-Clause
// The device's clock as a client sees it: two pages of the device file that it maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace softcx {

// Pages of the device file where mlx5_ib has them: mmap command << 8 | index
// (MLX5_IB_MMAP_CORE_CLOCK, and MLX5_IB_MMAP_CLOCK_INFO of version 1).
inline constexpr uint32_t kCoreClockPage = 5 << 8;
inline constexpr uint32_t kClockInfoPage = 7 << 8;

// The page with the counter itself, and the page by which counts become wall-clock time.
// The model cannot see a client read them, so they show the time of the last step.
class ClockPages {
  public:
    // nullptr when the pages of the file cannot be mapped.
    static std::unique_ptr<ClockPages> map(int fd, size_t page_size);
    ClockPages(const ClockPages&) = delete;
    ClockPages& operator=(const ClockPages&) = delete;
    ~ClockPages();

    void publish(uint64_t ticks) noexcept;

  private:
    ClockPages(void* counter, void* info, size_t page_size)
        : counter_(counter), info_(info), page_size_(page_size) {}
    void write_info() noexcept;

    void* counter_;
    void* info_;
    size_t page_size_;
    uint64_t written_at_ = 0;  // the count in the information page
};

}  // namespace softcx
