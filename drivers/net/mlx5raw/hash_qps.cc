// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/hash_qps.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/rule.h"

namespace tagwire::mlx5raw {
namespace {

Status create_table(const Device& device, std::vector<ibv_wq*> entries, IndirectionTable& out) {
    ibv_rwq_ind_table_init_attr attributes = {};
    attributes.log_ind_tbl_size = std::bit_width(entries.size()) - 1;
    attributes.ind_tbl = entries.data();
    out.reset(ibv_create_rwq_ind_table(device.context(), &attributes));
    if (out == nullptr) {
        return failure(errno, "%s: cannot create an indirection table of %zu entries: %s",
                       device.name(), entries.size(), strerror(errno));
    }
    return {};
}

}  // namespace

const char* name_of(HashType type) {
    switch (type) {
        case HashType::kIpv4Tcp:
            return "IPv4/TCP";
        case HashType::kIpv4Udp:
            return "IPv4/UDP";
        case HashType::kIpv6Tcp:
            return "IPv6/TCP";
        case HashType::kIpv6Udp:
            return "IPv6/UDP";
        case HashType::kIpv4:
            return "IPv4";
        case HashType::kIpv6:
            return "IPv6";
        case HashType::kEthernet:
            return "Ethernet";
    }
    return "?";
}

Status HashQps::create(const Device& device, const std::vector<ibv_wq*>& entries, uint64_t types,
                       const RssKey& key, std::shared_ptr<HashQps>& out) {
    std::shared_ptr<HashQps> qps(new HashQps);
    if (types != 0) {
        if (Status status = create_table(device, entries, qps->table_); !status.ok()) {
            return status;
        }
    }
    // A QP that does not hash must have a table of one entry.
    if (Status status = create_table(device, {entries.front()}, qps->single_); !status.ok()) {
        return status;
    }
    for (size_t i = 0; i < kHashTypeCount; ++i) {
        const auto type = static_cast<HashType>(i);
        if (type != HashType::kEthernet && (types & rss_types_of(type)) == 0) {
            continue;
        }
        if (Status status = qps->create_qp(device, type, key); !status.ok()) {
            return status;
        }
    }
    out = std::move(qps);
    return {};
}

Status HashQps::create_qp(const Device& device, HashType type, const RssKey& key) {
    RssKey mutable_key = key;  // the ABI lacks a const
    ibv_qp_init_attr_ex attributes = {};
    attributes.qp_type = IBV_QPT_RAW_PACKET;
    attributes.pd = device.pd();
    attributes.rwq_ind_tbl = type == HashType::kEthernet ? single_.get() : table_.get();
    attributes.rx_hash_conf.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
    attributes.rx_hash_conf.rx_hash_key_len = mutable_key.size();
    attributes.rx_hash_conf.rx_hash_key = mutable_key.data();
    attributes.rx_hash_conf.rx_hash_fields_mask = hash_fields_of(type);
    attributes.comp_mask =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
    QueuePair& qp = qps_[static_cast<size_t>(type)];
    qp.reset(ibv_create_qp_ex(device.context(), &attributes));
    if (qp == nullptr) {
        return failure(errno, "%s: cannot create the hash queue pair for %s: %s", device.name(),
                       name_of(type), strerror(errno));
    }
    return {};
}

HashType HashQps::serving(HashType type) const {
    if (of(type) != nullptr) {
        return type;
    }
    const L3 l3 = l3_of(type);
    const HashType addresses = l3 == L3::kIpv4 ? HashType::kIpv4 : HashType::kIpv6;
    return l3 != L3::kAny && of(addresses) != nullptr ? addresses : HashType::kEthernet;
}

}  // namespace tagwire::mlx5raw
