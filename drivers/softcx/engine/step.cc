// SPDX-License-Identifier: BSD-3-Clause
// The calls of the seam (engine.h).
#include <ctime>
#include <mutex>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/engine/completion.h"
#include "drivers/softcx/engine/compression.h"
#include "drivers/softcx/engine/receive.h"
#include "drivers/softcx/engine/scatter.h"
#include "drivers/softcx/engine/send.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {

namespace {

// Every send ring gets its turn; the next step starts behind the one that used up
// the budget.
uint32_t step_send(EngineState& state, uint32_t budget) noexcept {
    const auto ports = static_cast<uint32_t>(state.send_ports.size());
    if (state.next_send_port >= ports)
        state.next_send_port = 0;
    uint32_t moved = 0;
    for (uint32_t i = 0; i < ports && moved < budget; ++i) {
        SendPort& port = state.send_ports[state.next_send_port];
        if (++state.next_send_port == ports)
            state.next_send_port = 0;
        moved += run_send_port(state, port, budget - moved);
    }
    return moved;
}

// The other end of the cable is not ours: what it does is news to the client.
void watch_carrier(EngineState& state) noexcept {
    Port& port = state.device.port;
    const bool carrier = port.wire->link_up();
    if (carrier == port.carrier)
        return;
    port.carrier = carrier;
    port.counters.link_downed += carrier ? 0 : 1;
    if (port.link_up)
        report_async_event(state.device, carrier ? kEventPortActive : kEventPortError, kFirstPort);
}

uint32_t step_receive(EngineState& state, uint32_t budget) noexcept {
    Port& port = state.device.port;
    if (port.wire == nullptr)
        return 0;
    uint32_t moved = 0;
    const bool patient = port.wire->can_wait();
    for (; moved < budget; ++moved) {
        const std::span<const uint8_t> frame = port.wire->receive();
        if (frame.empty())
            break;
        if (patient && !(port.link_up &&
                         can_receive(state, frame.data(), static_cast<uint32_t>(frame.size()))))
            break;
        if (port.link_up)
            receive_from_wire(state, frame.data(), static_cast<uint32_t>(frame.size()));
        else
            ++port.counters.rx_no_link;
        port.wire->release();
    }
    if (port.wire->follows_carrier())
        watch_carrier(state);
    return moved;
}

// Tells other threads that it is a step that holds the device's lock.
class Stepping {
  public:
    explicit Stepping(Device& device) noexcept : device_(device) {
        device.stepping.store(true, std::memory_order_relaxed);
    }
    ~Stepping() { device_.stepping.store(false, std::memory_order_relaxed); }

  private:
    Device& device_;
};

void tend_receive_ports(EngineState& state) noexcept {
    bool any = false;
    for (ReceivePort& port : state.receive_ports) {
        tend_idle_port(state, port);
        any |= port.wq->state != WqState::kReady;
    }
    state.receive_needs_flush = any;
}

}  // namespace

uint64_t read_core_clock() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return core_clock_ticks(static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
                            static_cast<uint64_t>(now.tv_nsec));
}

uint32_t engine_step(Device& device, uint32_t budget) noexcept {
    std::unique_lock guard(device.mutex, std::try_to_lock);
    if (!guard.owns_lock()) {
        if (device.stepping.load(std::memory_order_relaxed))
            return 0;
        // A command, which ends soon: to return 0 would say that nothing is left to do.
        guard.lock();
        if (!device.started.load(std::memory_order_relaxed))
            return 0;
    }
    if (device.failed)
        return 0;
    const Stepping stepping(device);
    EngineState& state = engine_state(device);
    state.now = state.clock.read();
    publish_clock(device, state.now);
    for (CompletionPort* port : state.event_ports)
        tend_events(*port->cq, state.now);
    if (state.receive_needs_flush)
        tend_receive_ports(state);
    const uint32_t sent = step_send(state, budget);
    const uint32_t received = step_receive(state, budget);
    close_sessions(state);
    return sent + received;
}

void engine_drain(Device& device) noexcept {
    if (device.failed)
        return;
    EngineState& state = engine_state(device);
    state.now = state.clock.read();
    publish_clock(device, state.now);
    for (SendPort& port : state.send_ports)
        run_send_port(state, port, UINT32_MAX);
    close_sessions(state);
}

void engine_flush(Device& device, WorkQueue& wq) noexcept {
    EngineState& state = engine_state(device);
    for (ReceivePort& port : state.receive_ports) {
        if (port.wq == &wq)
            flush_receive_port(state, port);
    }
    state.receive_needs_flush = true;
}

void engine_flush(Device& device, QueuePair& qp) noexcept {
    EngineState& state = engine_state(device);
    for (SendPort& port : state.send_ports) {
        if (port.qp == &qp)
            flush_send_port(state, port);
    }
    if (qp.rq != nullptr)
        engine_flush(device, *qp.rq);
}

void engine_reset(WorkQueue& wq) noexcept {
    wq.consumer_index = 0;
    wq.available = 0;
    wq.used_strides = 0;
    wq.idle_doorbell = read_doorbell(wq.doorbell);
    wq.injected_syndrome = 0;
}

void engine_reset(QueuePair& qp) noexcept {
    qp.sq.consumer_index = 0;
    qp.sq.injected_syndrome = 0;
    if (qp.rq != nullptr)
        engine_reset(*qp.rq);
}

void engine_prepare(CompletionQueue& cq) noexcept {
    cq.arm_sequence = kNeverArmed;
    __atomic_store_n(cq.doorbell + 1, kNeverArmed, __ATOMIC_RELEASE);
}

void engine_check_arm(Device&, CompletionQueue& cq) noexcept {
    check_arm(cq);
}

void engine_forget(Device& device, const MemoryRegion& mr) noexcept {
    if (device.engine == nullptr)
        return;
    EngineState& state = *device.engine;
    state.translations.forget(mr.lkey);
    state.retired_keys[state.next_retired_key++ % state.retired_keys.size()] = mr.lkey;
    for (SendPort& port : state.send_ports)
        port.memory.forget();
    for (ReceivePort& port : state.receive_ports)
        port.memory.forget();
}

}  // namespace softcx
