// SPDX-License-Identifier: BSD-3-Clause
// rte_flow COUNT through a verbs counters object. What it counted before a stop stays.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "drivers/net/mlx5raw/device.h"
#include "drivers/net/mlx5raw/status.h"
#include "drivers/net/mlx5raw/verbs.h"

namespace tagwire::mlx5raw {

class FlowCounter {
  public:
    struct Values {
        uint64_t packets = 0;
        uint64_t bytes = 0;
    };

    // Makes the verbs object, to be named by rules.
    Status start(const Device& device);
    // Before the rules go: takes over what they counted.
    void pause();
    // After the rules went.
    void stop() { counters_.reset(); }

    // Since the last reset.
    Status read(Values& out) const;
    Status read_and_reset(Values& out);

    ibv_counters* verbs() const { return counters_.get(); }

  private:
    Status read_verbs(Values& out) const;

    Counters counters_;
    Values earlier_;  // of verbs objects that are gone
    Values reset_;    // to be taken off
};

}  // namespace tagwire::mlx5raw
