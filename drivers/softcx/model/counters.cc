// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/model/counters.h"

namespace softcx {

namespace {

struct NamedCounter {
    std::string_view name;
    uint64_t PortCounters::*value;
};

// What the model counts. All of them are in hw_counters, in the order that people want to read.
constexpr NamedCounter kCounters[] = {
    {"rx_packets", &PortCounters::rx_packets},
    {"rx_bytes", &PortCounters::rx_bytes},
    {"rx_multicast", &PortCounters::rx_multicast},
    {"tx_packets", &PortCounters::tx_packets},
    {"tx_bytes", &PortCounters::tx_bytes},
    {"tx_multicast", &PortCounters::tx_multicast},
    {"out_of_buffer", &PortCounters::out_of_buffer},
    {"resp_cqe_error", &PortCounters::resp_cqe_error},
    {"resp_cqe_flush_error", &PortCounters::resp_cqe_flush_error},
    {"resp_local_length_error", &PortCounters::resp_local_length_error},
    {"req_cqe_error", &PortCounters::req_cqe_error},
    {"req_cqe_flush_error", &PortCounters::req_cqe_flush_error},
    {"rx_no_flow", &PortCounters::rx_no_flow},
    {"rx_flow_drop", &PortCounters::rx_flow_drop},
    {"rx_wq_not_ready", &PortCounters::rx_wq_not_ready},
    {"rx_too_long", &PortCounters::rx_too_long},
    {"rx_too_short", &PortCounters::rx_too_short},
    {"tx_wire_full", &PortCounters::tx_wire_full},
    {"tx_no_link", &PortCounters::tx_no_link},
    {"rx_no_link", &PortCounters::rx_no_link},
    {"wire_rx_dropped", &PortCounters::wire_rx_dropped},
    {"wire_rx_truncated", &PortCounters::wire_rx_truncated},
    {"wire_rx_refused", &PortCounters::wire_rx_refused},
    {"wire_tx_refused", &PortCounters::wire_tx_refused},
    {"link_downed", &PortCounters::link_downed},
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

// What mlx5_ib shows besides. They belong to connected queue pairs, RoCE congestion control
// and reliable transport, which the model has not: they stay zero.
constexpr std::string_view kIdle[] = {
    "duplicate_request",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_sequence",
    "packet_seq_err",
    "req_remote_access_errors",
    "req_remote_invalid_request",
    "req_rnr_retries_exceeded",
    "req_transport_retries_exceeded",
    "resp_remote_access_errors",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "rx_atomic_requests",
    "rx_icrc_encapsulated",
    "rx_read_requests",
    "rx_write_requests",
};

// PortRcvData and PortXmitData count 32-bit words (InfiniBand architecture, 16.1.4.1).
constexpr uint64_t kWord = 4;

struct PortCounter {
    std::string_view name;
    uint64_t (*value)(const PortCounters&);
};

uint64_t nothing(const PortCounters&) {
    return 0;
}

constexpr PortCounter kPortCounters[] = {
    {"VL15_dropped", nothing},
    {"excessive_buffer_overrun_errors", nothing},
    {"link_downed", [](const PortCounters& port) { return port.link_downed; }},
    {"link_error_recovery", nothing},
    {"local_link_integrity_errors", nothing},
    {"multicast_rcv_packets", [](const PortCounters& port) { return port.rx_multicast; }},
    {"multicast_xmit_packets", [](const PortCounters& port) { return port.tx_multicast; }},
    {"port_rcv_constraint_errors", nothing},
    {"port_rcv_data", [](const PortCounters& port) { return port.rx_bytes / kWord; }},
    {"port_rcv_errors", [](const PortCounters& port) { return port.rx_too_long; }},
    {"port_rcv_packets", [](const PortCounters& port) { return port.rx_packets; }},
    {"port_rcv_remote_physical_errors", nothing},
    {"port_rcv_switch_relay_errors", nothing},
    {"port_xmit_constraint_errors", nothing},
    {"port_xmit_data", [](const PortCounters& port) { return port.tx_bytes / kWord; }},
    {"port_xmit_discards",
     [](const PortCounters& port) { return port.tx_wire_full + port.tx_no_link; }},
    {"port_xmit_packets", [](const PortCounters& port) { return port.tx_packets; }},
    {"port_xmit_wait", nothing},
    {"symbol_error", nothing},
    {"unicast_rcv_packets",
     [](const PortCounters& port) { return port.rx_packets - port.rx_multicast; }},
    {"unicast_xmit_packets",
     [](const PortCounters& port) { return port.tx_packets - port.tx_multicast; }},
};

std::optional<uint64_t> read_hardware_counter(const PortCounters& counters,
                                              std::string_view name) noexcept {
    for (const NamedCounter& counter : kCounters)
        if (counter.name == name)
            return counters.*counter.value;
    for (const std::string_view idle : kIdle)
        if (idle == name)
            return 0;
    return std::nullopt;
}

}  // namespace

const uint64_t* find_counter(const PortCounters& counters, const char* name) noexcept {
    for (const NamedCounter& counter : kCounters)
        if (counter.name == name)
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

std::vector<std::string_view> counter_names(CounterFolder folder) {
    std::vector<std::string_view> names;
    if (folder == CounterFolder::kPort) {
        for (const PortCounter& counter : kPortCounters)
            names.push_back(counter.name);
        return names;
    }
    for (const NamedCounter& counter : kCounters)
        names.push_back(counter.name);
    names.insert(names.end(), std::begin(kIdle), std::end(kIdle));
    return names;
}

std::optional<uint64_t> read_counter(const PortCounters& counters, CounterFolder folder,
                                     std::string_view name) noexcept {
    if (folder == CounterFolder::kHardware)
        return read_hardware_counter(counters, name);
    for (const PortCounter& counter : kPortCounters)
        if (counter.name == name)
            return counter.value(counters);
    return std::nullopt;
}

}  // namespace softcx
