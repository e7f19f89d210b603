// SPDX-License-Identifier: BSD-3-Clause
// Statistics. Only polling threads write counters; a reset remembers their values.
#include <cstdio>
#include <iterator>

#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {
namespace {

struct RxField {
    const char* name;
    uint64_t RxCounters::*field;
};
struct TxField {
    const char* name;
    uint64_t TxCounters::*field;
};

// Packets and bytes of each queue are ethdev's own xstats.
constexpr RxField kRxFields[] = {
    {"compressed_sessions", &RxCounters::sessions},
    {"error_completions", &RxCounters::errors},
    {"flushed_receives", &RxCounters::flushed},
    {"recoveries", &RxCounters::recoveries},
    {"recovery_failures", &RxCounters::recovery_failures},
    {"stride_buffer_shortages", &RxCounters::no_stride_buffer},
    {"mbuf_allocation_failures", &RxCounters::no_mbuf},
};
constexpr TxField kTxFields[] = {
    {"doorbells", &TxCounters::doorbells},
    {"completions", &TxCounters::completions},
    {"ring_full", &TxCounters::ring_full},
    {"dropped_too_short", &TxCounters::too_short},
    {"dropped_too_many_segments", &TxCounters::too_many_segments},
    {"dropped_bad_tso", &TxCounters::bad_tso},
    {"dropped_no_memory_key", &TxCounters::no_key},
    {"error_completions", &TxCounters::errors},
    {"dropped_by_recovery", &TxCounters::error_dropped},
    {"recoveries", &TxCounters::recoveries},
    {"recovery_failures", &TxCounters::recovery_failures},
};

// Never reset: each is something that should not happen, or rarely.
struct EventField {
    const char* name;
    std::atomic<uint64_t> EventCounters::*field;
};
constexpr EventField kEventFields[] = {
    {"port_link_changes", &EventCounters::link_changes},
    {"port_device_fatal", &EventCounters::device_fatal},
    {"port_queue_errors", &EventCounters::queue_errors},
    {"port_completion_queue_errors", &EventCounters::completion_errors},
};

template <typename Counters>
uint64_t since_reset(const Counters& now, const std::vector<Counters>& baseline, uint16_t queue,
                     uint64_t Counters::*field) {
    // A queue that was set up again counts from zero.
    const uint64_t before = queue < baseline.size() ? baseline[queue].*field : 0;
    return now.*field >= before ? now.*field - before : now.*field;
}

uint64_t hardware_since_reset(const Port& port, size_t index) {
    const uint64_t now = port.hw_counters.read(index);
    const uint64_t before =
        index < port.baseline.hardware.size() ? port.baseline.hardware[index] : 0;
    return now - before;
}

// Calls visit(name, value) for each xstat, always in the same order.
template <typename Visit>
void for_each_xstat(const rte_eth_dev* dev, Visit visit) {
    const Port& port = port_of(dev);
    char name[RTE_ETH_XSTATS_NAME_SIZE];
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        const RxQueue* queue = rx_queue(dev, i);
        const RxCounters now = queue != nullptr ? queue->counters() : RxCounters{};
        for (const RxField& field : kRxFields) {
            snprintf(name, sizeof(name), "rx_q%u_%s", i, field.name);
            visit(name, since_reset(now, port.baseline.rx, i, field.field));
        }
    }
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        const TxQueue* queue = tx_queue(dev, i);
        const TxCounters now = queue != nullptr ? queue->counters() : TxCounters{};
        for (const TxField& field : kTxFields) {
            snprintf(name, sizeof(name), "tx_q%u_%s", i, field.name);
            visit(name, since_reset(now, port.baseline.tx, i, field.field));
        }
    }
    const RxQueue* const first =
        dev->data->dev_started && dev->data->nb_rx_queues != 0 ? rx_queue(dev, 0) : nullptr;
    for (uint8_t i = 0; i < kRxPaths; ++i) {
        const auto path = static_cast<RxPathKind>(i);
        snprintf(name, sizeof(name), "rx_path_%s", rx_path_key(path));
        visit(name, first != nullptr && first->path() == path);
    }
    visit("rx_path_compressed_completions", first != nullptr && first->compressed());
    for (size_t i = 0; i < size_t{kTxPaths}; ++i) {
        const auto path = static_cast<TxPath>(i);
        snprintf(name, sizeof(name), "tx_path_%s", tx_path_name(path));
        visit(name, dev->data->dev_started && port.tx_mode.path == path);
    }
    for (const EventField& field : kEventFields) {
        visit(field.name, port.events.counters().*(field.field));
    }
    for (size_t i = 0; i < port.hw_counters.names().size(); ++i) {
        snprintf(name, sizeof(name), "hw_%s", port.hw_counters.names()[i].c_str());
        visit(name, hardware_since_reset(port, i));
    }
}

unsigned xstat_count(const rte_eth_dev* dev) {
    return static_cast<unsigned>(dev->data->nb_rx_queues * std::size(kRxFields) +
                                 dev->data->nb_tx_queues * std::size(kTxFields) + kRxPaths + 1 +
                                 kTxPaths + std::size(kEventFields) +
                                 port_of(dev).hw_counters.names().size());
}

}  // namespace

int stats_get(rte_eth_dev* dev, rte_eth_stats* stats) {
    const Port& port = port_of(dev);
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        const RxQueue* queue = rx_queue(dev, i);
        if (queue == nullptr) {
            continue;
        }
        const RxCounters now = queue->counters();
        const auto value = [&](uint64_t RxCounters::*field) {
            return since_reset(now, port.baseline.rx, i, field);
        };
        stats->ipackets += value(&RxCounters::packets);
        stats->ibytes += value(&RxCounters::bytes);
        stats->ierrors += value(&RxCounters::errors);
        stats->rx_nombuf += value(&RxCounters::no_mbuf);
        if (i < RTE_ETHDEV_QUEUE_STAT_CNTRS) {
            stats->q_ipackets[i] = value(&RxCounters::packets);
            stats->q_ibytes[i] = value(&RxCounters::bytes);
            stats->q_errors[i] = value(&RxCounters::errors);
        }
    }
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        const TxQueue* queue = tx_queue(dev, i);
        if (queue == nullptr) {
            continue;
        }
        const TxCounters now = queue->counters();
        const auto value = [&](uint64_t TxCounters::*field) {
            return since_reset(now, port.baseline.tx, i, field);
        };
        stats->opackets += value(&TxCounters::packets);
        stats->obytes += value(&TxCounters::bytes);
        stats->oerrors += value(&TxCounters::too_short) + value(&TxCounters::too_many_segments) +
                          value(&TxCounters::bad_tso) + value(&TxCounters::no_key) +
                          value(&TxCounters::error_dropped);
        if (i < RTE_ETHDEV_QUEUE_STAT_CNTRS) {
            stats->q_opackets[i] = value(&TxCounters::packets);
            stats->q_obytes[i] = value(&TxCounters::bytes);
        }
    }
    // Frames that found no posted receive; mlx5_core's name, without a prefix.
    const size_t missed = port.hw_counters.find("out_of_buffer");
    if (missed < port.hw_counters.names().size()) {
        stats->imissed = hardware_since_reset(port, missed);
    }
    return 0;
}

int stats_reset(rte_eth_dev* dev) {
    StatsBaseline& baseline = port_of(dev).baseline;
    baseline.rx.assign(dev->data->nb_rx_queues, {});
    baseline.tx.assign(dev->data->nb_tx_queues, {});
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        if (const RxQueue* queue = rx_queue(dev, i); queue != nullptr) {
            baseline.rx[i] = queue->counters();
        }
    }
    for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
        if (const TxQueue* queue = tx_queue(dev, i); queue != nullptr) {
            baseline.tx[i] = queue->counters();
        }
    }
    const HardwareCounters& hardware = port_of(dev).hw_counters;
    baseline.hardware.resize(hardware.names().size());
    for (size_t i = 0; i < baseline.hardware.size(); ++i) {
        baseline.hardware[i] = hardware.read(i);
    }
    return 0;
}

int xstats_get(rte_eth_dev* dev, rte_eth_xstat* values, unsigned count) {
    const unsigned total = xstat_count(dev);
    if (values == nullptr || count < total) {
        return static_cast<int>(total);
    }
    unsigned index = 0;
    for_each_xstat(dev, [&](const char*, uint64_t value) {
        values[index].id = index;
        values[index].value = value;
        ++index;
    });
    return static_cast<int>(total);
}

int xstats_get_names(rte_eth_dev* dev, rte_eth_xstat_name* names, unsigned count) {
    const unsigned total = xstat_count(dev);
    if (names == nullptr || count < total) {
        return static_cast<int>(total);
    }
    unsigned index = 0;
    for_each_xstat(dev, [&](const char* name, uint64_t) {
        snprintf(names[index].name, sizeof(names[index].name), "%s", name);
        ++index;
    });
    return static_cast<int>(total);
}

}  // namespace tagwire::mlx5raw
