// SPDX-License-Identifier: BSD-3-Clause
// The sysfs files of the devices, below a private folder that goes with the process.
#pragma once

#include <string>

namespace softcx {

// The folder that stands for the root of the file system below which sys/class/
// infiniband, sys/class/infiniband_verbs and sys/bus/pci are found. Made at the first call; ""
// when it cannot be made (the reason was logged).
const std::string& tree_root();

// Removes the folder (at the end of the process).
void remove_tree() noexcept;

// "/sys/class/infiniband...", and with netdevs "/sys/bus/pci/devices...", as the path in
// the tree; nullptr for any other path or when it does not fit.
const char* path_in_tree(const char* path, char* room, unsigned long size);

// The N of "/dev/infiniband/uverbsN" when there is such a device, else -1.
int device_of_node(const char* path);

}  // namespace softcx
