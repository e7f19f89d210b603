// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/machine.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/model/context.h"
#include "drivers/softcx/model/counters.h"
#include "drivers/softcx/model/events.h"
#include "drivers/softcx/model/netdev.h"
#include "drivers/softcx/model/port.h"
#include "drivers/softcx/wire/fault_wire.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {

namespace {

constexpr uint32_t kStepBudget = 64;

std::atomic<Machine*> current{nullptr};

// Guards the making of the machine. It is rebuilt in a forked child, where another
// thread of the parent may have held it.
alignas(std::mutex) unsigned char making_storage[sizeof(std::mutex)];
std::mutex& making() {
    return *reinterpret_cast<std::mutex*>(making_storage);
}

// The parent's machine as the child sees it: abandoned, but still reachable so
// that it is not reported as a leak.
Machine* abandoned = nullptr;

void after_fork_in_child() {
    new (making_storage) std::mutex;
    abandoned = current.exchange(nullptr);
}

struct ForkGuard {
    ForkGuard() {
        new (making_storage) std::mutex;
        ::pthread_atfork(nullptr, nullptr, after_fork_in_child);
    }
};

std::mutex& ready_mutex() {
    static ForkGuard guard;
    return making();
}

const char* environment(const char* name) {
    return std::getenv(name);
}

MacAddress random_mac() {
    MacAddress mac{};
    if (::getrandom(mac.data(), mac.size(), 0) != static_cast<ssize_t>(mac.size()))
        std::memcpy(mac.data(), "\x02softx", mac.size());
    mac[0] = static_cast<uint8_t>((mac[0] & 0xfc) | 2);  // unicast, locally administered
    mac[5] &= 0xe0;  // room for the addresses of the other devices
    return mac;
}

MacAddress plus(const MacAddress& first, uint32_t index) {
    uint64_t value = 0;
    for (const uint8_t byte : first)
        value = value << 8 | byte;
    value += index;
    MacAddress mac;
    for (int i = 0; i < 6; ++i)
        mac[i] = static_cast<uint8_t>(value >> (40 - 8 * i));
    return mac;
}

Machine* make_machine() {
    auto made = std::make_unique<Machine>();
    std::string& error = made->error;
    if (!read_configuration(environment, made->configuration, error)) {
        log(LogLevel::kError, "%s (no device is shown until then)", error.c_str());
        return made.release();
    }
    set_log_level(made->configuration.log);
    const MacAddress first = made->configuration.mac ? *made->configuration.mac : random_mac();
    for (uint32_t i = 0; i < made->configuration.devices; ++i) {
        auto device = std::make_unique<Device>();
        device->name = "mlx5_" + std::to_string(i);
        device->index = i;
        device->port.mac = plus(first, i);
        const std::string* netdev = made->configuration.netdev_of(i);
        if (netdev != nullptr && !read_netdev_mac(*netdev, device->port.mac, error)) {
            error = "SOFTCX_NETDEV: " + *netdev + ": " + error;
            log(LogLevel::kError, "%s (no device is shown until then)", error.c_str());
            made->devices.clear();
            break;
        }
        device->node_guid = eui64(device->port.mac);
        made->devices.push_back(std::move(device));
    }
    return made.release();
}

// The device thread: busy while packets move, else it naps, longer and longer. It
// does not yield: a sleeper that wakes is run soon, while one that yields to a
// polling program waits for the end of that program's time slice.
void run_thread(Machine* machine) {
    using std::chrono::microseconds;
    constexpr microseconds kShortNap{20}, kLongNap{500};
    constexpr int kNapsOfOneLength = 64;
    ::prctl(PR_SET_TIMERSLACK, 1);
    // A program that steps the device does so soon after it opened it; a thread
    // that ran meanwhile would only make its first packets hard to repeat.
    if (machine->configuration.mode == Mode::kAuto)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    microseconds nap = kShortNap;
    int naps = 0;
    while (!machine->stopping.load(std::memory_order_acquire) &&
           !machine->client_steps.load(std::memory_order_relaxed)) {
        if (step_machine(*machine) != 0) {
            nap = kShortNap;
            naps = 0;
            continue;
        }
        std::this_thread::sleep_for(nap);
        if (++naps % kNapsOfOneLength == 0)
            nap = std::min(nap * 2, kLongNap);
    }
}

void start_thread(Machine& machine) {
    if (machine.thread.joinable() || machine.client_steps.load(std::memory_order_relaxed))
        return;
    // Signals are the program's business.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    machine.thread = std::thread(run_thread, &machine);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// In trap mode doorbells run the device; what comes from elsewhere rings none.
bool needs_thread(Mode mode, const Wire& wire) {
    switch (mode) {
        case Mode::kStep:
            return false;
        case Mode::kAuto:
        case Mode::kThread:
            return true;
        case Mode::kTrap:
            return wire.moves_by_itself();
    }
    return true;
}

void retry_events(Device& device) noexcept {
    const std::lock_guard lock(device.mutex);
    for (const auto& [number, channel] : device.channels)
        channel->events->retry();
    for (Context* context : device.contexts) {
        if (context->async_events)
            context->async_events->retry();
        for (const auto& events : context->more_async_events)
            events->retry();
    }
}

}  // namespace

Machine& machine() {
    if (Machine* made = current.load(std::memory_order_acquire))
        return *made;
    const std::lock_guard lock(ready_mutex());
    if (Machine* made = current.load(std::memory_order_acquire))
        return *made;
    Machine* made = make_machine();
    current.store(made, std::memory_order_release);
    return *made;
}

Machine* machine_if_any() noexcept {
    return current.load(std::memory_order_acquire);
}

Device* find_device(const char* name) {
    if (name == nullptr)
        return nullptr;
    for (const auto& device : machine().devices)
        if (device->name == name)
            return device.get();
    return nullptr;
}

std::string machine_error() {
    const Machine& owner = machine();
    const std::lock_guard lock(ready_mutex());
    return owner.error;
}

bool start_device(Device& device) {
    Machine& owner = machine();
    const std::lock_guard making_lock(ready_mutex());
    const std::lock_guard lock(device.mutex);
    owner.error.clear();
    if (!device.port.wire) {
        std::string error;
        device.port.wire =
            open_wire(owner.configuration.wire, device.index, device.port.counters, &error);
        if (!device.port.wire) {
            owner.error = owner.configuration.wire_variable + "=" + owner.configuration.wire +
                          ": " + error;
            log(LogLevel::kError, "%s: cannot plug in %s", device.name.c_str(),
                owner.error.c_str());
            return false;
        }
        if (owner.configuration.faults.any()) {
            FaultPlan plan = owner.configuration.faults;
            plan.seed += device.index;  // two ends of a cable differ
            device.port.wire = std::make_unique<FaultWire>(std::move(device.port.wire), plan,
                                                           device.port.counters);
        }
        device.port.carrier = device.port.wire->link_up();
        log(LogLevel::kInfo, "%s: plugged into %s", device.name.c_str(),
            device.port.wire->describe().c_str());
        device.started.store(true, std::memory_order_release);
    }
    if (needs_thread(owner.configuration.mode, *device.port.wire))
        start_thread(owner);
    return true;
}

uint32_t step_machine(Machine& machine) noexcept {
    uint32_t moved = 0;
    for (const auto& device : machine.devices) {
        if (!device->started.load(std::memory_order_acquire))
            continue;
        moved += engine_step(*device, kStepBudget);
        if (events_wait_for_room())
            retry_events(*device);
    }
    return moved;
}

void run_doorbells() noexcept {
    constexpr int kMostRounds = 4096;  // more than the longest rings need
    Machine* ringing = machine_if_any();
    if (ringing == nullptr || ringing->stopping.load(std::memory_order_acquire))
        return;
    for (int round = 0; round < kMostRounds; ++round) {
        uint32_t moved = 0;
        for (const auto& device : ringing->devices) {
            if (!device->started.load(std::memory_order_acquire))
                continue;
            // A thread that is at it may have looked at this doorbell before it was rung.
            const std::lock_guard lock(device->mutex);
            moved += engine_step(*device, kStepBudget);
            if (events_wait_for_room())
                retry_events(*device);
        }
        if (moved == 0)
            return;
    }
}

void stop_machine() noexcept {
    Machine* ending = machine_if_any();
    if (ending == nullptr || ending->stopping.exchange(true))
        return;
    if (ending->thread.joinable())
        ending->thread.join();
    if (ending->configuration.mode == Mode::kStep && !ending->client_steps.load() &&
        std::any_of(ending->devices.begin(), ending->devices.end(),
                    [](const auto& device) { return device->last_numbers.qp != 0; }))
        log(LogLevel::kWarn,
            "mode step, but nobody called softcx_step(), so nothing moved: use "
            "auto, thread or trap, or load librte_softcx_step.so in DPDK");
    for (const auto& device : ending->devices) {
        const std::lock_guard lock(device->mutex);
        device->port.wire.reset();  // which counts what it lost
        if (device->started.exchange(false))
            log(LogLevel::kInfo, "%s: %s", device->name.c_str(),
                describe(device->port.counters).c_str());
    }
}

}  // namespace softcx
