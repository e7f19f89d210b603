// SPDX-License-Identifier: BSD-3-Clause
// Where workers come from: a port of this machine, or the simulator of a test.
#pragma once

#include <cstdint>
#include <string>

#include "tagwire/tagwire.h"

namespace tagwire::ucp {

class Fabric {
  public:
    virtual ~Fabric() = default;

    // Fills in the port, the queue and the address, and opens. 0, or a negative errno whose text
    // tw_last_error() has.
    virtual int open_worker(tw_worker_attr attr, tw_worker** worker, tw_address* address) = 0;
    virtual void close_worker(tw_worker* worker) = 0;
    virtual std::string device_name() = 0;
    // Whether workers need the keeper's thread.
    virtual bool in_real_time() const { return true; }
};

// The machine's port, brought up with the first worker; tests put theirs in its place.
Fabric& fabric();
void set_fabric(Fabric* replacement);

}  // namespace tagwire::ucp
