// SPDX-License-Identifier: BSD-3-Clause
// RSS as ethdev sees it: redirection table, key, hash types.
#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/port.h"

namespace tagwire::mlx5raw {
namespace {

Status check_types(uint64_t types) {
    if ((types & ~supported_rss_types()) != 0) {
        return failure(EINVAL, "RSS types 0x%lx are not supported (supported: 0x%lx)",
                       static_cast<unsigned long>(types & ~supported_rss_types()),
                       static_cast<unsigned long>(supported_rss_types()));
    }
    return {};
}

Status take_key(const rte_eth_rss_conf& from, RssKey& to) {
    if (from.rss_key == nullptr) {
        return {};
    }
    // ethdev of this series leaves the length zero when it means the port's own.
    if (from.rss_key_len != 0 && from.rss_key_len != to.size()) {
        return failure(EINVAL, "the RSS key has %u bytes, the device wants %zu", from.rss_key_len,
                       to.size());
    }
    memcpy(to.data(), from.rss_key, to.size());
    return {};
}

// Puts a new configuration in force; the old one stays when that fails.
int replace(rte_eth_dev* dev, RssConfig next) {
    Port& port = port_of(dev);
    std::swap(port.rss, next);
    if (!dev->data->dev_started) {
        return 0;
    }
    const Status status = apply_steering(dev);
    if (!status.ok()) {
        std::swap(port.rss, next);
    }
    return log_and_return(dev->data->name, status);
}

// The receive paths read the class table while it changes; every entry is valid
// before and after.
void refresh_classes(rte_eth_dev* dev) {
    port_of(dev).cqe_classes = make_cqe_classes(cqe_class_options(dev));
}

}  // namespace

std::vector<ibv_wq*> work_queues(const rte_eth_dev* dev) {
    std::vector<ibv_wq*> queues;
    for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
        queues.push_back(rx_queue(dev, i)->wq());
    }
    return queues;
}

Status apply_steering(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    const std::vector<ibv_wq*> queues = work_queues(dev);
    if (queues.empty() || port.isolated) {
        port.steering.clear();
        port.vlan_filter.clear();
        return {};
    }
    // The filter first: nothing that it excludes may slip through.
    if (Status status = apply_vlan_filter(dev, dev->data->promiscuous != 0); !status.ok()) {
        return status;
    }
    return port.steering.apply(*port.device, queues, port.rss, listening_of(dev));
}

int configure_rss(rte_eth_dev* dev) {
    Port& port = port_of(dev);
    const rte_eth_conf& conf = dev->data->dev_conf;
    RssConfig next;
    if ((conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) != 0) {
        next.types = conf.rx_adv_conf.rss_conf.rss_hf;
        if (const Status status = check_types(next.types); !status.ok()) {
            return log_and_return(dev->data->name, status);
        }
        if (const Status status = take_key(conf.rx_adv_conf.rss_conf, next.key); !status.ok()) {
            return log_and_return(dev->data->name, status);
        }
    }
    next.spread(port.devargs.reta_size, std::max<uint16_t>(dev->data->nb_rx_queues, 1));
    port.rss = next;
    refresh_classes(dev);
    return 0;
}

int reta_update(rte_eth_dev* dev, rte_eth_rss_reta_entry64* entries, uint16_t size) {
    RssConfig next = port_of(dev).rss;
    if (size != next.table.size()) {
        return log_and_return(dev->data->name,
                              failure(EINVAL, "the redirection table has %zu entries, not %u",
                                      next.table.size(), size));
    }
    for (uint16_t i = 0; i < size; ++i) {
        const rte_eth_rss_reta_entry64& group = entries[i / RTE_ETH_RETA_GROUP_SIZE];
        const unsigned bit = i % RTE_ETH_RETA_GROUP_SIZE;
        if ((group.mask >> bit & 1) == 0) {
            continue;
        }
        if (group.reta[bit] >= dev->data->nb_rx_queues) {
            return log_and_return(dev->data->name,
                                  failure(EINVAL, "redirection table entry %u names queue %u of %u",
                                          i, group.reta[bit], dev->data->nb_rx_queues));
        }
        next.table[i] = group.reta[bit];
    }
    return replace(dev, std::move(next));
}

int reta_query(rte_eth_dev* dev, rte_eth_rss_reta_entry64* entries, uint16_t size) {
    const RssConfig& rss = port_of(dev).rss;
    if (size != rss.table.size()) {
        return -EINVAL;
    }
    for (uint16_t i = 0; i < size; ++i) {
        rte_eth_rss_reta_entry64& group = entries[i / RTE_ETH_RETA_GROUP_SIZE];
        const unsigned bit = i % RTE_ETH_RETA_GROUP_SIZE;
        if ((group.mask >> bit & 1) != 0) {
            group.reta[bit] = rss.table[i];
        }
    }
    return 0;
}

int rss_hash_update(rte_eth_dev* dev, rte_eth_rss_conf* config) {
    RssConfig next = port_of(dev).rss;
    next.types = config->rss_hf;
    if (const Status status = check_types(next.types); !status.ok()) {
        return log_and_return(dev->data->name, status);
    }
    if (const Status status = take_key(*config, next.key); !status.ok()) {
        return log_and_return(dev->data->name, status);
    }
    const int result = replace(dev, std::move(next));
    if (result == 0) {
        refresh_classes(dev);
    }
    return result;
}

int rss_hash_conf_get(rte_eth_dev* dev, rte_eth_rss_conf* config) {
    const RssConfig& rss = port_of(dev).rss;
    config->rss_hf = rss.types;
    if (config->rss_key != nullptr && config->rss_key_len >= rss.key.size()) {
        memcpy(config->rss_key, rss.key.data(), rss.key.size());
        config->rss_key_len = static_cast<uint8_t>(rss.key.size());
    }
    return 0;
}

}  // namespace tagwire::mlx5raw
