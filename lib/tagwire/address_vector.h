// SPDX-License-Identifier: BSD-3-Clause
// Addresses by index. Indexes count from zero and are never reused.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "lib/transport/address.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class Worker;

class AddressVector {
  public:
    explicit AddressVector(Worker& worker) : worker_(worker) {}

    Worker& worker() const { return worker_; }

    // The same address always has the same index.
    tw_addr insert(const transport::EndpointAddress& address);

    const transport::EndpointAddress* lookup(tw_addr index) const {
        return index < addresses_.size() ? &addresses_[index] : nullptr;
    }

    // TW_ADDR_NOTAVAIL when it was never inserted.
    tw_addr find(const transport::EndpointAddress& address) const;

    size_t size() const { return addresses_.size(); }

    void bind() { ++bindings_; }
    void unbind() { --bindings_; }
    bool bound() const { return bindings_ != 0; }

  private:
    struct Hash {
        size_t operator()(const transport::EndpointAddress& address) const;
    };

    Worker& worker_;
    std::vector<transport::EndpointAddress> addresses_;
    std::unordered_map<transport::EndpointAddress, tw_addr, Hash> indexes_;
    uint32_t bindings_ = 0;
};

}  // namespace tagwire

struct tw_av final : tagwire::AddressVector {
    using AddressVector::AddressVector;
};
