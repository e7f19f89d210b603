// SPDX-License-Identifier: BSD-3-Clause
// The device's own counters, as files under ports/N/hw_counters in sysfs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tagwire::mlx5raw {

class HardwareCounters {
  public:
    // `device_path` as in ibv_device::ibdev_path. A device without the folder has none.
    HardwareCounters(const char* device_path, uint8_t port);

    const std::vector<std::string>& names() const { return names_; }
    uint64_t read(size_t index) const;  // zero when the file is gone

    // Index of a name, or names().size().
    size_t find(const char* name) const;

  private:
    std::string folder_;
    std::vector<std::string> names_;
};

}  // namespace tagwire::mlx5raw
