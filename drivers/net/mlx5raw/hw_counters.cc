// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/hw_counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace tagwire::mlx5raw {

HardwareCounters::HardwareCounters(const char* device_path, uint8_t port)
    : folder_(std::string(device_path) + "/ports/" + std::to_string(port) + "/hw_counters/") {
    DIR* folder = opendir(folder_.c_str());
    if (folder == nullptr) {
        return;
    }
    while (const dirent* entry = readdir(folder)) {
        // "lifespan" is the kernel's refresh interval, not a counter.
        if (entry->d_name[0] != '.' && std::string(entry->d_name) != "lifespan") {
            names_.emplace_back(entry->d_name);
        }
    }
    closedir(folder);
    std::sort(names_.begin(), names_.end());
}

uint64_t HardwareCounters::read(size_t index) const {
    const int file = open((folder_ + names_[index]).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    char text[32] = {};
    const ssize_t length = ::read(file, text, sizeof(text) - 1);
    close(file);
    return length > 0 ? strtoull(text, nullptr, 10) : 0;
}

size_t HardwareCounters::find(const char* name) const {
    return static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

}  // namespace tagwire::mlx5raw
