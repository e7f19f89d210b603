// SPDX-License-Identifier: BSD-3-Clause
// The hash queue pairs over one indirection table: one per hash type, and one that
// does not hash. Flow rules lead to them.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/rss.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

class HashQps {
  public:
    // `entries` is the table, a power of two of work queues. A QP that hashes is made
    // for each type that `types` (RTE_ETH_RSS_*) asks for.
    static Status create(const Device& device, const std::vector<ibv_wq*>& entries, uint64_t types,
                         const RssKey& key, std::shared_ptr<HashQps>& out);

    // nullptr when the type is not hashed.
    ibv_qp* of(HashType type) const { return qps_[static_cast<size_t>(type)].get(); }

    // The type whose QP takes packets of `type`: itself, its IP version's, or kEthernet.
    HashType serving(HashType type) const;

  private:
    HashQps() = default;
    Status create_qp(const Device& device, HashType type, const RssKey& key);

    // Released in reverse order.
    IndirectionTable table_;   // for what is hashed
    IndirectionTable single_;  // one entry, for the rest
    std::array<QueuePair, kHashTypeCount> qps_;
};

const char* name_of(HashType type);

}  // namespace tagwire::mlx5raw
