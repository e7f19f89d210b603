// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/device.h"

#include <infiniband/mlx5dv.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "drivers/net/mlx5raw/inline_mode.h"
#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/netdev.h"

namespace tagwire::mlx5raw {
namespace {

struct FreeDeviceList {
    void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};

std::string names_of(const std::vector<ibv_device*>& devices) {
    std::string names;
    for (ibv_device* device : devices) {
        names += names.empty() ? "" : ", ";
        names += ibv_get_device_name(device);
    }
    return names;
}

Status choose(const std::string& wanted, ibv_device** list, int count, ibv_device*& out) {
    std::vector<ibv_device*> usable;
    for (int i = 0; i < count; ++i) {
        if (mlx5dv_is_supported(list[i])) {
            usable.push_back(list[i]);
        }
        if (!wanted.empty() && wanted == ibv_get_device_name(list[i])) {
            if (!mlx5dv_is_supported(list[i])) {
                return failure(ENODEV, "%s is no mlx5 device", wanted.c_str());
            }
            out = list[i];
        }
    }
    if (out != nullptr) {
        return {};
    }
    if (usable.empty()) {
        return failure(ENODEV,
                       "no mlx5 RDMA device found; with a card, load mlx5_ib (modprobe mlx5_ib) "
                       "and check ibv_devices; without one, start the program under softcx-run");
    }
    if (!wanted.empty()) {
        return failure(ENODEV, "no device named %s; there is: %s", wanted.c_str(),
                       names_of(usable).c_str());
    }
    if (usable.size() > 1) {
        return failure(EINVAL, "several mlx5 devices: choose one with ibdev=NAME out of %s",
                       names_of(usable).c_str());
    }
    out = usable.front();
    return {};
}

}  // namespace

Status Device::open(const Devargs& arguments, std::unique_ptr<Device>& out) {
    int count = 0;
    const std::unique_ptr<ibv_device*, FreeDeviceList> list(ibv_get_device_list(&count));
    if (list == nullptr) {
        return failure(errno,
                       "ibv_get_device_list: %s; with a card, load the kernel module ib_uverbs; "
                       "without one, start the program under softcx-run",
                       strerror(errno));
    }
    ibv_device* chosen = nullptr;
    if (Status status = choose(arguments.ibdev, list.get(), count, chosen); !status.ok()) {
        return status;
    }
    std::unique_ptr<Device> device(new Device);
    device->context_.reset(ibv_open_device(chosen));
    if (device->context_ == nullptr) {
        return failure(errno,
                       "cannot open %s: %s; a card's /dev/infiniband/uverbs* must be "
                       "accessible, and the software card says itself what it lacks",
                       ibv_get_device_name(chosen), strerror(errno));
    }
    device->pd_.reset(ibv_alloc_pd(device->context()));
    if (device->pd_ == nullptr) {
        return failure(errno, "%s: cannot allocate a protection domain: %s", device->name(),
                       strerror(errno));
    }
    if (Status status = device->find_port(arguments); !status.ok()) {
        return status;
    }
    if (Status status = device->query_capabilities(arguments); !status.ok()) {
        return status;
    }
    if (Status status = device->find_mac(arguments); !status.ok()) {
        return status;
    }
    out = std::move(device);
    return {};
}

Status Device::find_port(const Devargs& arguments) {
    ibv_port_attr attributes = {};
    port_ = static_cast<uint8_t>(arguments.port);
    if (const int error = ibv_query_port(context(), port_, &attributes); error != 0) {
        return failure(error, "%s has no port %u; see ibv_devinfo -d %s", name(), port_, name());
    }
    if (attributes.link_layer != IBV_LINK_LAYER_ETHERNET) {
        return failure(ENOTSUP,
                       "port %u of %s is an InfiniBand port; set it to Ethernet (mlxconfig "
                       "LINK_TYPE_P%u=2)",
                       port_, name(), port_);
    }
    return {};
}

Status Device::query_capabilities(const Devargs& arguments) {
    ibv_device_attr_ex attributes = {};
    if (const int error = ibv_query_device_ex(context(), nullptr, &attributes); error != 0) {
        return failure(error, "%s: cannot query the device: %s", name(), strerror(error));
    }
    const ibv_device_attr& base = attributes.orig_attr;
    if (attributes.max_wq_type_rq == 0 || attributes.rss_caps.max_rwq_indirection_table_size == 0 ||
        (attributes.rss_caps.rx_hash_function & IBV_RX_HASH_FUNC_TOEPLITZ) == 0) {
        return failure(EOPNOTSUPP,
                       "%s has no work queues with Toeplitz RSS for raw packets; the process "
                       "needs CAP_NET_RAW, and the device must be a ConnectX-4 Lx or later",
                       name());
    }
    caps_.max_queues = std::min({attributes.max_wq_type_rq, static_cast<uint32_t>(base.max_qp),
                                 static_cast<uint32_t>(base.max_cq) / 2, uint32_t{1024}});
    caps_.max_descriptors = std::min({static_cast<uint32_t>(base.max_qp_wr),
                                      static_cast<uint32_t>(base.max_cqe), uint32_t{32768}});
    caps_.max_rx_segments = std::min(static_cast<uint32_t>(base.max_sge), uint32_t{16});
    caps_.max_reta_size = attributes.rss_caps.max_rwq_indirection_table_size;
    caps_.rx_hash_fields = attributes.rss_caps.rx_hash_fields_mask;
    caps_.checksum = (attributes.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM) != 0 ||
                     (attributes.device_cap_flags_ex & IBV_DEVICE_RAW_IP_CSUM) != 0;
    caps_.vlan_strip = (attributes.raw_packet_caps & IBV_RAW_PACKET_CAP_CVLAN_STRIPPING) != 0;
    caps_.timestamp = attributes.completion_timestamp_mask != 0;
    mlx5dv_context direct = {};
    direct.comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION | MLX5DV_CONTEXT_MASK_STRIDING_RQ;
    if (const int error = mlx5dv_query_device(context(), &direct); error != 0) {
        return failure(error, "%s: cannot query the device: %s", name(), strerror(error));
    }
    if ((direct.comp_mask & MLX5DV_CONTEXT_MASK_CQE_COMPRESION) != 0 &&
        direct.cqe_comp_caps.max_num > 1) {
        caps_.compression_formats = direct.cqe_comp_caps.supported_format;
    }
    if ((direct.comp_mask & MLX5DV_CONTEXT_MASK_STRIDING_RQ) != 0) {
        const mlx5dv_striding_rq_caps& caps = direct.striding_rq_caps;
        if ((caps.supported_qpts & 1u << IBV_QPT_RAW_PACKET) != 0) {
            caps_.striding = {
                caps.min_single_stride_log_num_of_bytes, caps.max_single_stride_log_num_of_bytes,
                caps.min_single_wqe_log_num_of_strides, caps.max_single_wqe_log_num_of_strides};
        }
    }
    caps_.part_id = base.vendor_part_id;
    caps_.firmware = base.fw_ver;
    const SendNeeds needs = query_send_needs(context(), caps_.part_id);
    caps_.min_inline = needs.min_inline;
    caps_.vlan_insert = needs.vlan_insert;
    if ((attributes.tso_caps.supported_qpts & 1u << IBV_QPT_RAW_PACKET) != 0) {
        caps_.max_tso = attributes.tso_caps.max_tso;
    }
    caps_.multi_packet = (direct.flags & MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW) != 0;
    if (arguments.reta_size > caps_.max_reta_size) {
        return failure(EINVAL, "reta_size=%u: %s allows at most %u entries", arguments.reta_size,
                       name(), caps_.max_reta_size);
    }
    return {};
}

Status Device::find_mac(const Devargs& arguments) {
    ibv_gid_entry entry = {};
    const int gid_error = ibv_query_gid_ex(context(), port_, 0, &entry, 0);
    ifindex_ = gid_error == 0 ? entry.ndev_ifindex : 0;
    if (!arguments.mac.empty()) {
        rte_ether_unformat_addr(arguments.mac.c_str(), &mac_);
        return {};
    }
    if (ifindex_ != 0 && netdev_mac(ifindex_, mac_).ok()) {
        return {};
    }
    ibv_gid gid = {};
    if (ibv_query_gid(context(), port_, 0, &gid) == 0 && mac_from_gid(gid.raw, mac_)) {
        return {};
    }
    return failure(
        ENODEV,
        "%s: neither the network device nor GID 0 of port %u shows a MAC address; give mac=ADDRESS",
        name(), port_);
}

bool mac_from_gid(const uint8_t (&gid)[16], rte_ether_addr& out) {
    const uint8_t* id = gid + 8;
    if (id[3] != 0xff || id[4] != 0xfe) {
        return false;
    }
    out = {{static_cast<uint8_t>(id[0] ^ 0x02), id[1], id[2], id[5], id[6], id[7]}};
    return rte_is_valid_assigned_ether_addr(&out) != 0;
}

}  // namespace tagwire::mlx5raw
