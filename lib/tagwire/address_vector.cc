// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/address_vector.h"

#include <algorithm>
#include <cinttypes>
#include <string_view>

#include "lib/tagwire/address.h"
#include "lib/tagwire/auth_key.h"
#include "lib/tagwire/endpoint.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

size_t AddressVector::Hash::operator()(const Key& key) const {
    const transport::EndpointAddress& address = key.address;
    const std::string_view ip(reinterpret_cast<const char*>(address.ip.data()), address.ip.size());
    return std::hash<std::string_view>()(ip) ^ key.key ^
           (size_t{address.udp_port} << 16 | address.endpoint) * 0x9e3779b97f4a7c15u;
}

tw_addr AddressVector::insert(const transport::EndpointAddress& address, const Entry* key) {
    Entry entry;
    entry.address = address;
    entry.has_key = key != nullptr;
    entry.key = key != nullptr ? key->key : transport::kNoKey;
    entries_.reserve(entries_.size() + 1);  // so that nothing fails behind the next line
    const auto [it, fresh] =
        indexes_.try_emplace({address, entry.key, entry.has_key}, entries_.size());
    if (fresh) {
        entries_.push_back(entry);
    }
    return it->second;
}

tw_addr AddressVector::insert_key(transport::KeyDigest key) {
    for (tw_addr index = 0; index < entries_.size(); ++index) {
        if (entries_[index].kind == Kind::kKey && entries_[index].key == key) {
            return index;
        }
    }
    entries_.reserve(entries_.size() + 1);
    keys_.push_back(key);
    Entry entry;
    entry.kind = Kind::kKey;
    entry.key = key;
    entry.key_number = static_cast<uint32_t>(keys_.size() - 1);
    entries_.push_back(entry);
    for (Endpoint* endpoint : endpoints_) {
        endpoint->allow_key(key);
    }
    worker_.forget_key_groups();
    return entries_.size() - 1;
}

int AddressVector::remove(tw_addr index) {
    if (lookup_key(index) != nullptr) {
        return remove_key(index);
    }
    const Entry* found = lookup(index);
    if (found == nullptr) {
        return fail(EINVAL, "tw_av_remove: there is no address %" PRIu64, index);
    }
    if (std::any_of(endpoints_.begin(), endpoints_.end(),
                    [&](Endpoint* endpoint) { return endpoint->is_busy(index); })) {
        return refuse(EBUSY,
                      "tw_av_remove: an operation with the peer is under way; call tw_progress and "
                      "try again");
    }
    for (Endpoint* endpoint : endpoints_) {
        endpoint->forget_address(index);
    }
    worker_.forget_address(*this, index);
    indexes_.erase({found->address, found->key, found->has_key});
    entries_[index].kind = Kind::kRemoved;
    return 0;
}

// Endpoints take the keys of their vector, and leave them with their end.
int AddressVector::remove_key(tw_addr index) {
    if (bound()) {
        return refuse(EBUSY,
                      "tw_av_remove: endpoints that are bound to the vector have its authorization "
                      "keys; close them first");
    }
    Entry& entry = entries_[index];
    keys_[entry.key_number] = transport::kNoKey;
    entry.kind = Kind::kRemoved;
    return 0;
}

bool AddressVector::key_number(tw_addr index, uint32_t* number) const {
    const Entry* found = lookup_key(index);
    if (found != nullptr) {
        *number = found->key_number;
    }
    return found != nullptr;
}

tw_addr AddressVector::find(const transport::EndpointAddress& address, transport::KeyDigest key,
                            transport::KeyDigest own_key) const {
    auto it = indexes_.find({address, key, true});
    if (it == indexes_.end() && key == own_key) {
        it = indexes_.find({address, transport::kNoKey, false});
    }
    return it == indexes_.end() ? TW_ADDR_NOTAVAIL : it->second;
}

uint32_t AddressVector::find_key(transport::KeyDigest key) const {
    if (key == transport::kNoKey) {
        return UINT32_MAX;
    }
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    return found == keys_.end() ? UINT32_MAX : static_cast<uint32_t>(found - keys_.begin());
}

}  // namespace tagwire

namespace tagwire {

int check_peer_address(const Worker& worker, const tw_address& address, const char* call) {
    if (const int error = check_address(address); error != 0) {
        return error;
    }
    if (address.endpoint == TW_EP_ANY) {
        return fail(EINVAL, "%s: the address names no endpoint", call);
    }
    if (address.family != static_cast<uint8_t>(worker.address().family)) {
        return fail(EAFNOSUPPORT, "%s: an IPv%u address, but the worker has IPv%u", call,
                    address.family, static_cast<unsigned>(worker.address().family));
    }
    return 0;
}

}  // namespace tagwire

int tw_av_open(tw_worker* worker, tw_av** av) {
    using namespace tagwire;
    if (worker == nullptr || av == nullptr) {
        return refuse(EINVAL, "tw_av_open: worker and av cannot be NULL");
    }
    const Guard guard(*worker);
    return guarded([&] {
        *av = new tw_av(*worker);
        worker->child_opened();
        return 0;
    });
}

int tw_av_close(tw_av* av) {
    using namespace tagwire;
    if (av == nullptr) {
        return refuse(EINVAL, "tw_av_close: av cannot be NULL");
    }
    const Guard guard(av->worker());
    if (av->bound()) {
        return refuse(EBUSY, "tw_av_close: an endpoint is bound to the vector; close it first");
    }
    av->worker().child_closed();
    delete av;
    return 0;
}

int tw_av_insert(tw_av* av, const tw_address* address, tw_addr* index) {
    using namespace tagwire;
    if (av == nullptr || address == nullptr || index == nullptr) {
        return refuse(EINVAL, "tw_av_insert: av, address and index cannot be NULL");
    }
    if (const int error = check_peer_address(av->worker(), *address, "tw_av_insert"); error != 0) {
        return error;
    }
    const Guard guard(av->worker());
    return guarded([&] {
        *index = av->insert(to_transport(*address), nullptr);
        return 0;
    });
}

int tw_av_insert_with_key(tw_av* av, const tw_address* address, tw_addr key_index, tw_addr* index) {
    using namespace tagwire;
    if (av == nullptr || address == nullptr || index == nullptr) {
        return refuse(EINVAL, "tw_av_insert_with_key: av, address and index cannot be NULL");
    }
    if (const int error = check_peer_address(av->worker(), *address, "tw_av_insert_with_key");
        error != 0) {
        return error;
    }
    const Guard guard(av->worker());
    const AddressVector::Entry* found = av->lookup_key(key_index);
    if (found == nullptr) {
        return fail(EINVAL, "tw_av_insert_with_key: index %" PRIu64 " is not a key's", key_index);
    }
    const AddressVector::Entry key = *found;
    return guarded([&] {
        *index = av->insert(to_transport(*address), &key);
        return 0;
    });
}

int tw_av_insert_auth_key(tw_av* av, const void* key, size_t size, tw_addr* key_index) {
    using namespace tagwire;
    if (av == nullptr || key == nullptr || key_index == nullptr) {
        return refuse(EINVAL, "tw_av_insert_auth_key: av, key and key_index cannot be NULL");
    }
    if (size == 0 || size > TW_AUTH_KEY_MAX) {
        return refuse(EINVAL, "tw_av_insert_auth_key: a key has 1 to TW_AUTH_KEY_MAX (64) bytes");
    }
    const Guard guard(av->worker());
    return guarded([&] {
        *key_index = av->insert_key(digest_of(key, size));
        return 0;
    });
}

int tw_av_remove(tw_av* av, tw_addr index) {
    if (av == nullptr) {
        return tagwire::refuse(EINVAL, "tw_av_remove: av cannot be NULL");
    }
    const tagwire::Guard guard(av->worker());
    return av->remove(index);
}

int tw_av_lookup(const tw_av* av, tw_addr index, tw_address* address) {
    using namespace tagwire;
    if (av == nullptr || address == nullptr) {
        return refuse(EINVAL, "tw_av_lookup: av and address cannot be NULL");
    }
    const Guard guard(av->worker());
    const AddressVector::Entry* found = av->lookup(index);
    if (found == nullptr) {
        return fail(EINVAL, "tw_av_lookup: index %" PRIu64 " is no address", index);
    }
    *address = from_transport(found->address);
    return 0;
}
