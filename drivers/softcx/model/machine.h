// SPDX-License-Identifier: BSD-3-Clause
// The devices of this process, and who steps them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "drivers/softcx/model/configuration.h"
#include "drivers/softcx/model/objects.h"

namespace softcx {

struct Machine {
    Configuration configuration;
    std::vector<std::unique_ptr<Device>> devices;  // none when the configuration is bad
    std::atomic<bool> stopping{false};
    std::atomic<bool> client_steps{false};  // somebody called softcx_step
    std::thread thread;
    std::string error;  // why there are no devices, or one did not start
};

// Made from the environment at first use. A forked child gets its own: the parent's
// devices, their rings and their ports on the wire stay the parent's.
Machine& machine();

// The machine if there is one already.
Machine* machine_if_any() noexcept;

Device* find_device(const char* name);

// Machine::error.
std::string machine_error();

// Plugs the device into its wire and sees to its stepping. False: the reason was
// logged.
bool start_device(Device& device);

// Runs every started device once; returns how many packets moved.
uint32_t step_machine(Machine& machine) noexcept;

// A doorbell was rung on this thread: runs the devices until nothing moves any more.
void run_doorbells() noexcept;

// At the end of the process: no more steps, ports leave their wires.
void stop_machine() noexcept;

}  // namespace softcx
