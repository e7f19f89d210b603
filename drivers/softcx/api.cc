// SPDX-License-Identifier: BSD-3-Clause
// The calls of softcx.h.
#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/model/counters.h"
#include "drivers/softcx/model/machine.h"
#include "drivers/softcx/model/port.h"
#include "drivers/softcx/model/refusal.h"
#include "drivers/softcx/softcx.h"
#include "drivers/softcx/wire/wire.h"

#define SOFTCX_EXPORT __attribute__((visibility("default")))

namespace {

using softcx::Device;

// enum ib_event_type of the kernel.
constexpr uint32_t kEventDeviceFatal = 8, kEventPortActive = 9, kEventPortError = 10;

const char* mode_text(const softcx::Machine& machine) {
    switch (machine.configuration.mode) {
        case softcx::Mode::kStep:
            return "step mode";
        case softcx::Mode::kThread:
            return "thread mode";
        case softcx::Mode::kTrap:
            return "trap mode";
        case softcx::Mode::kAuto:
            return machine.client_steps.load() ? "step mode" : "thread mode (until the first step)";
    }
    return "?";
}

// What every injection of a syndrome checks first; `apply` runs with the device locked.
template <typename Apply>
int inject(const char* device_name, unsigned int syndrome, Apply apply) {
    Device* device = softcx::find_device(device_name);
    if (device == nullptr)
        return -ENODEV;
    if (syndrome == 0 || syndrome > 0xff)
        return -EINVAL;
    const std::lock_guard lock(device->mutex);
    return apply(*device);
}

}  // namespace

extern "C" {

SOFTCX_EXPORT int softcx_step(void) {
    // A client that steps from inside a step would find the device locked by itself.
    [[gnu::tls_model("initial-exec")]] static thread_local bool stepping = false;
    softcx::Machine* machine = softcx::machine_if_any();
    if (machine == nullptr || stepping || machine->stopping.load(std::memory_order_acquire))
        return 0;
    if (machine->configuration.mode == softcx::Mode::kThread)
        return 0;
    if (machine->configuration.mode != softcx::Mode::kTrap)
        machine->client_steps.store(true, std::memory_order_relaxed);
    stepping = true;
    const uint32_t moved = softcx::step_machine(*machine);
    stepping = false;
    return static_cast<int>(moved);
}

SOFTCX_EXPORT const char* softcx_describe(void) {
    static thread_local char text[128];
    const softcx::Machine& machine = softcx::machine();
    const size_t count = machine.devices.size();
    std::snprintf(text, sizeof(text), "softcx, %zu device%s, wire %s, %s", count,
                  count == 1 ? "" : "s", machine.configuration.wire.c_str(), mode_text(machine));
    return text;
}

SOFTCX_EXPORT const char* softcx_error(void) {
    static thread_local std::string text;
    text = softcx::machine_error();
    return text.c_str();
}

SOFTCX_EXPORT int softcx_inject_wq_error(const char* device_name, unsigned int wqn,
                                         unsigned int syndrome) {
    return inject(device_name, syndrome, [&](Device& device) {
        const auto found = device.wqs.find(wqn);
        if (found == device.wqs.end())
            return -ENOENT;
        found->second->injected_syndrome = static_cast<uint8_t>(syndrome);
        return 0;
    });
}

SOFTCX_EXPORT int softcx_inject_qp_error(const char* device_name, unsigned int qpn,
                                         unsigned int syndrome) {
    return inject(device_name, syndrome, [&](Device& device) {
        const auto found = device.qps.find(qpn);
        if (found == device.qps.end())
            return -ENOENT;
        if (found->second->sq.wqe_count == 0)
            return -EINVAL;
        found->second->sq.injected_syndrome = static_cast<uint8_t>(syndrome);
        return 0;
    });
}

SOFTCX_EXPORT int softcx_inject_cq_overrun(const char* device_name, unsigned int cqn) {
    Device* device = softcx::find_device(device_name);
    if (device == nullptr)
        return -ENODEV;
    const std::lock_guard lock(device->mutex);
    const auto found = device->cqs.find(cqn);
    if (found == device->cqs.end())
        return -ENOENT;
    found->second->injected_overrun = true;
    return 0;
}

SOFTCX_EXPORT int softcx_inject_device_fatal(const char* device_name) {
    Device* device = softcx::find_device(device_name);
    if (device == nullptr)
        return -ENODEV;
    const std::lock_guard lock(device->mutex);
    if (device->contexts.empty())
        return -ENOENT;
    if (device->failed)
        return 0;
    device->failed = true;
    softcx::report_async_event(*device, kEventDeviceFatal, 0);
    for (const auto& [number, cq] : device->cqs) {
        // Whoever sleeps on a CQ must wake and see that nothing comes.
        softcx::engine_check_arm(*device, *cq);
        if (cq->armed) {
            cq->armed = false;
            softcx::raise_completion_event(*cq);
        }
    }
    return 0;
}

SOFTCX_EXPORT int softcx_set_link(const char* device_name, int up) {
    Device* device = softcx::find_device(device_name);
    if (device == nullptr)
        return -ENODEV;
    const std::lock_guard lock(device->mutex);
    if (device->port.link_up == (up != 0))
        return 0;
    device->port.link_up = up != 0;
    if (up == 0)
        ++device->port.counters.link_downed;
    softcx::report_async_event(*device, up != 0 ? kEventPortActive : kEventPortError,
                               softcx::kPortNumber);
    return 0;
}

SOFTCX_EXPORT int softcx_refuse_command(const char* device_name, int after, int error) {
    Device* device = softcx::find_device(device_name);
    if (device == nullptr)
        return -ENODEV;
    if (after >= 0 && error <= 0)
        return -EINVAL;
    const std::lock_guard lock(device->mutex);
    const bool waited = device->refusal.after >= 0;
    device->refusal = {after, error};
    return waited ? 1 : 0;
}

SOFTCX_EXPORT unsigned long long softcx_objects(const char* device_name) {
    Device* device = softcx::find_device(device_name);
    if (device == nullptr)
        return ~0ull;
    const std::lock_guard lock(device->mutex);
    return softcx::count_objects(*device);
}

SOFTCX_EXPORT unsigned long long softcx_counter(const char* device_name, const char* name) {
    Device* device = softcx::find_device(device_name);
    if (device == nullptr || name == nullptr)
        return ~0ull;
    const std::lock_guard lock(device->mutex);
    const uint64_t* value = softcx::find_counter(device->port.counters, name);
    return value != nullptr ? *value : ~0ull;
}

}  // extern "C"
