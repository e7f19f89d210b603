// SPDX-License-Identifier: BSD-3-Clause
// Addresses and authorization keys by index. Indexes count from zero and are never
// reused.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "lib/transport/transport.h"
#include "tagwire/tagwire.h"

namespace tagwire {

class Endpoint;
class Worker;

class AddressVector {
  public:
    enum class Kind : uint8_t { kPeer, kKey, kRemoved };
    struct Entry {
        transport::EndpointAddress address;
        transport::KeyDigest key = transport::kNoKey;
        uint32_t key_number = 0;  // of a key: how many were before it
        Kind kind = Kind::kPeer;
        bool has_key = false;  // of a peer: `key`; otherwise the endpoint's own is used
    };

    explicit AddressVector(Worker& worker) : worker_(worker) {}

    Worker& worker() const { return worker_; }

    // The same address, with the same key, always has the same index.
    tw_addr insert(const transport::EndpointAddress& address, const Entry* key);
    tw_addr insert_key(transport::KeyDigest key);
    int remove(tw_addr index);

    // nullptr unless it is a peer.
    const Entry* lookup(tw_addr index) const { return entry(index, Kind::kPeer); }
    const Entry* lookup_key(tw_addr index) const { return entry(index, Kind::kKey); }
    bool key_number(tw_addr index, uint32_t* number) const;

    // A peer that uses `key`, at an endpoint whose own is `own_key`; TW_ADDR_NOTAVAIL when it
    // was never inserted.
    tw_addr find(const transport::EndpointAddress& address, transport::KeyDigest key,
                 transport::KeyDigest own_key) const;
    // The number of a key; UINT32_MAX when it was never inserted.
    uint32_t find_key(transport::KeyDigest key) const;

    size_t size() const { return entries_.size(); }

    void bind(Endpoint& endpoint) { endpoints_.push_back(&endpoint); }
    void unbind(Endpoint& endpoint) { std::erase(endpoints_, &endpoint); }
    bool bound() const { return !endpoints_.empty(); }
    // By number; kNoKey stands for those that were removed.
    const std::vector<transport::KeyDigest>& keys() const { return keys_; }

  private:
    struct Key {
        transport::EndpointAddress address;
        transport::KeyDigest key;
        bool has_key;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        size_t operator()(const Key& key) const;
    };

    const Entry* entry(tw_addr index, Kind kind) const {
        return index < entries_.size() && entries_[index].kind == kind ? &entries_[index] : nullptr;
    }

    int remove_key(tw_addr index);

    Worker& worker_;
    std::vector<Entry> entries_;
    std::vector<transport::KeyDigest> keys_;
    std::unordered_map<Key, tw_addr, Hash> indexes_;
    std::vector<Endpoint*> endpoints_;
};

}  // namespace tagwire

struct tw_av final : tagwire::AddressVector {
    using AddressVector::AddressVector;
};
