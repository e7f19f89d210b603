// SPDX-License-Identifier: BSD-3-Clause
// Whether a port can send from the program's memory, and how it comes to know that memory.
#pragma once

#include <memory>
#include <string>

#include "lib/tagwire/registration_cache.h"

struct rte_device;

namespace tagwire {

// The memory of one port's device, as EAL and the driver keep it.
class PortMemory final : public DeviceMemory {
  public:
    explicit PortMemory(rte_device* device) : device_(device) {}
    static std::unique_ptr<PortMemory> of(uint16_t port);
    bool map(uintptr_t base, uint64_t length) noexcept override;
    void unmap(uintptr_t base, uint64_t length) noexcept override;

  private:
    rte_device* device_;
};

// Empty, or why frames of two segments, the second in the program's memory, cannot leave through
// the queue as it is configured.
std::string why_not_lend(uint16_t port, uint16_t queue);

}  // namespace tagwire
