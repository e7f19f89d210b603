// SPDX-License-Identifier: BSD-3-Clause
// The PCI function of a device in sysfs, for drivers that find cards on the PCI bus.
#pragma once

#include <filesystem>
#include <string>

#include "drivers/softcx/model/objects.h"

namespace softcx {

using WriteFile = void (*)(const std::filesystem::path& path, const std::string& line);

// "5cf0:00:00.0" for mlx5_0. No machine has this domain, so a card of the machine
// keeps its place.
std::string pci_address(uint32_t index);

// Folder and links below `sys`, which stands for /sys. Returns the folder of the
// function.
std::filesystem::path write_pci_function(const std::filesystem::path& sys, const Device& device,
                                         const std::string& netdev, WriteFile write);

// Links to the PCI functions of the machine, which stay visible.
void link_pci_functions_of_machine(const std::filesystem::path& sys);

}  // namespace softcx
