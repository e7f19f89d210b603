// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/uverbs/live_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "drivers/softcx/log.h"
#include "drivers/softcx/model/counters.h"
#include "drivers/softcx/model/machine.h"
#include "drivers/softcx/model/port.h"
#include "drivers/softcx/uverbs/tree.h"

namespace softcx {

namespace {

// ".../infiniband/mlx5_0/ports/1/counters/port_rcv_data" in its parts.
struct PortFile {
    std::string device;
    std::string_view name;  // below ports/1
};

std::optional<PortFile> port_file(std::string_view path) {
    constexpr std::string_view kClass = "/infiniband/", kPort = "/ports/1/";
    const size_t at = path.rfind(kClass);
    if (at == path.npos)
        return std::nullopt;
    const std::string_view rest = path.substr(at + kClass.size());
    const size_t end = rest.find('/');
    if (end == rest.npos || rest.compare(end, kPort.size(), kPort) != 0)
        return std::nullopt;
    return PortFile{std::string(rest.substr(0, end)), rest.substr(end + kPort.size())};
}

std::optional<std::string> counter_text(const PortCounters& counters, CounterFolder folder,
                                        std::string_view name) {
    const std::optional<uint64_t> value = read_counter(counters, folder, name);
    return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

std::optional<std::string> port_text(const Port& port, std::string_view name) {
    constexpr std::string_view kHardware = "hw_counters/", kPortCounters = "counters/";
    if (name.starts_with(kHardware))
        return counter_text(port.counters, CounterFolder::kHardware, name.substr(kHardware.size()));
    if (name.starts_with(kPortCounters))
        return counter_text(port.counters, CounterFolder::kPort, name.substr(kPortCounters.size()));
    // A device that nobody opened yet is not plugged in; it would show as up then.
    const bool up = port.wire ? link_is_up(port) : port.link_up;
    if (name == "state")
        return up ? "4: ACTIVE" : "1: DOWN";
    if (name == "phys_state")
        return up ? "5: LinkUp" : "3: Disabled";
    return std::nullopt;
}

// Others may be reading the old content: the new one takes its place in one move.
void replace(const std::filesystem::path& path, const std::string& text) {
    static std::atomic<uint32_t> serial{0};
    const std::string unfinished = tree_root() + "/live." + std::to_string(++serial);
    const int fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
        throw std::filesystem::filesystem_error("open", unfinished,
                                                std::error_code(errno, std::system_category()));
    const bool complete =
        ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(fd);
    if (complete)
        std::filesystem::rename(unfinished, path);
    else
        std::filesystem::remove(unfinished);
}

}  // namespace

void refresh_live_file(const char* path) noexcept {
    try {
        const std::optional<PortFile> file = port_file(path);
        Device* device = file ? find_device(file->device.c_str()) : nullptr;
        if (device == nullptr)
            return;
        std::optional<std::string> text;
        {
            const std::lock_guard lock(device->mutex);
            text = port_text(device->port, file->name);
        }
        if (text)
            replace(path, *text + "\n");
    } catch (const std::exception& error) {
        log(LogLevel::kWarn, "%s keeps its old content: %s", path, error.what());
    }
}

}  // namespace softcx
