// SPDX-License-Identifier: BSD-3-Clause
// Files of the tree whose content changes: counters and the state of the port.
#pragma once

namespace softcx {

// Writes the value of this moment into the file, as sysfs does when one is opened. `path`
// lies in the tree (tree.h); most files there never change, and nothing is done.
void refresh_live_file(const char* path) noexcept;

}  // namespace softcx
