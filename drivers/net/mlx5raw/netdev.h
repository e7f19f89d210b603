// SPDX-License-Identifier: BSD-3-Clause
// The kernel network device behind an RDMA port (a real card is bifurcated: the
// kernel keeps its netdev). A port without one, as on a software device, has
// interface index 0.
#pragma once

#include <rte_ether.h>

#include <cstdint>

#include "drivers/net/mlx5raw/status.h"

namespace tagwire::mlx5raw {

Status netdev_mac(uint32_t ifindex, rte_ether_addr& out);
Status netdev_set_mtu(uint32_t ifindex, uint16_t mtu);

}  // namespace tagwire::mlx5raw
