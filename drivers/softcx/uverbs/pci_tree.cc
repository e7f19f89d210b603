// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/uverbs/pci_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string_view>

#include "drivers/softcx/model/capabilities.h"

namespace softcx {

namespace {

namespace fs = std::filesystem;

constexpr uint32_t kPciDomain = 0x5cf0;
constexpr uint32_t kFunctionsPerSlot = 8;
constexpr const char* kDriver = "mlx5_core";

// Start, end and flags of the six BARs, the ROM and the six bridge windows (pci-sysfs.c
// of the kernel). The doorbell BAR is a 64-bit, prefetchable memory region; nobody can
// map it, because uverbs gives doorbell pages.
std::string resource_lines() {
    constexpr int kResources = 13;
    std::string text = "0x00000000c0000000 0x00000000c1ffffff 0x000000000014220c";
    for (int i = 1; i < kResources; ++i)
        text += "\n0x0000000000000000 0x0000000000000000 0x0000000000000000";
    return text;
}

std::string uevent_lines(const std::string& address) {
    return std::string("DRIVER=") + kDriver +
           "\nPCI_CLASS=20000\nPCI_ID=15B3:1017\nPCI_SUBSYS_ID=15B3:0008\nPCI_SLOT_NAME=" +
           address + "\nMODALIAS=" + kModalias;
}

// What the kernel shows of a network device below its PCI function. The rest of it is in
// /sys/class/net, which is the kernel's own.
void write_netdev(const fs::path& folder, WriteFile write) {
    write(folder / "dev_port", "0");
    write(folder / "dev_id", "0x0");
}

}  // namespace

std::string pci_address(uint32_t index) {
    char text[24];
    std::snprintf(text, sizeof(text), "%04x:00:%02x.%u", kPciDomain, index / kFunctionsPerSlot,
                  index % kFunctionsPerSlot);
    return text;
}

fs::path write_pci_function(const fs::path& sys, const Device& device, const std::string& netdev,
                            WriteFile write) {
    const std::string address = pci_address(device.index);
    char bridge[24];
    std::snprintf(bridge, sizeof(bridge), "pci%04x:00", kPciDomain);
    const fs::path folder = sys / "devices" / bridge / address;
    write(folder / "vendor", "0x15b3");
    write(folder / "device", "0x1017");
    write(folder / "subsystem_vendor", "0x15b3");
    write(folder / "subsystem_device", "0x0008");
    write(folder / "class", "0x020000");  // Ethernet controller
    write(folder / "revision", "0x00");
    write(folder / "numa_node", "-1");
    write(folder / "modalias", kModalias);
    write(folder / "resource", resource_lines());
    write(folder / "uevent", uevent_lines(address));
    write_netdev(folder / "net" / netdev, write);
    fs::create_directories(folder / "infiniband" / device.name);
    fs::create_directories(sys / "bus/pci/drivers" / kDriver);
    fs::create_directories(sys / "bus/pci/devices");
    fs::create_directory_symlink(fs::path("../../../bus/pci/drivers") / kDriver, folder / "driver");
    fs::create_directory_symlink(fs::path("../../../devices") / bridge / address,
                                 sys / "bus/pci/devices" / address);
    return folder;
}

void link_pci_functions_of_machine(const fs::path& sys) {
    constexpr const char* kDevices = "/sys/bus/pci/devices";
    // Not open and opendir: in this library those look into the tree that is being made.
    const auto fd = static_cast<int>(
        ::syscall(SYS_openat, AT_FDCWD, kDevices, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR* folder = fd < 0 ? nullptr : ::fdopendir(fd);
    if (folder == nullptr)
        return;  // a machine without PCI
    char target[PATH_MAX];
    while (const dirent* entry = ::readdir(folder)) {
        const ssize_t length = ::readlinkat(fd, entry->d_name, target, sizeof(target));
        if (length <= 0 || length == sizeof(target))
            continue;  // "." and ".."
        const fs::path absolute = kDevices / fs::path(std::string_view(target, length));
        std::error_code ignored;
        fs::create_directory_symlink(absolute.lexically_normal(),
                                     sys / "bus/pci/devices" / entry->d_name, ignored);
    }
    ::closedir(folder);
}

}  // namespace softcx
