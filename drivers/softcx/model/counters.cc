// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/counters.h"

#include <cstring>

namespace softcx {

namespace {

struct NamedCounter {
    const char* name;
    uint64_t PortCounters::*value;
};

constexpr NamedCounter kCounters[] = {
    {"rx_packets", &PortCounters::rx_packets},
    {"rx_bytes", &PortCounters::rx_bytes},
    {"tx_packets", &PortCounters::tx_packets},
    {"tx_bytes", &PortCounters::tx_bytes},
    {"out_of_buffer", &PortCounters::out_of_buffer},
    {"rx_no_flow", &PortCounters::rx_no_flow},
    {"rx_wq_not_ready", &PortCounters::rx_wq_not_ready},
    {"rx_too_long", &PortCounters::rx_too_long},
    {"tx_wire_full", &PortCounters::tx_wire_full},
    {"cq_overrun", &PortCounters::cq_overrun},
    {"local_protection_errors", &PortCounters::local_protection_errors},
    {"local_length_errors", &PortCounters::local_length_errors},
    {"local_qp_errors", &PortCounters::local_qp_errors},
    {"fault_lost", &PortCounters::fault_lost},
    {"fault_duplicated", &PortCounters::fault_duplicated},
    {"fault_corrupted", &PortCounters::fault_corrupted},
    {"fault_reordered", &PortCounters::fault_reordered},
    {"fault_delayed", &PortCounters::fault_delayed},
    {"fault_tail_dropped", &PortCounters::fault_tail_dropped},
    {"client_errors", &PortCounters::client_errors},
};

}  // namespace

const uint64_t* find_counter(const PortCounters& counters, const char* name) noexcept {
    for (const NamedCounter& counter : kCounters)
        if (std::strcmp(counter.name, name) == 0)
            return &(counters.*counter.value);
    return nullptr;
}

std::string describe(const PortCounters& counters) {
    std::string text;
    for (const NamedCounter& counter : kCounters) {
        const uint64_t value = counters.*counter.value;
        if (value == 0)
            continue;
        if (!text.empty())
            text += ", ";
        text += std::string(counter.name) + " " + std::to_string(value);
    }
    return text.empty() ? "no traffic" : text;
}

}  // namespace softcx
