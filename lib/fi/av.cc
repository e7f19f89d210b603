// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/av.h"

#include <arpa/inet.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "lib/fi/address.h"
#include "lib/fi/event_queue.h"
#include "lib/fi/flags.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"

namespace tagwire::fi {
namespace {

// `key`: of fi_av_insert_auth_key, or nullptr.
int insert_one(AddressVector& av, const tw_address& address, const fi_addr_t* key,
               fi_addr_t* index) {
    int result = address.udp_port != 0 ? 0 : -FI_EINVAL;
    if (result == 0) {
        tw_addr inserted = TW_ADDR_UNSPEC;
        if (key == nullptr) {
            result = tw_av_insert(av.av, &address, &inserted);
        } else if (const auto found = av.keys.find(*key); found == av.keys.end()) {
            result = -FI_EINVAL;
        } else {
            result = tw_av_insert_with_key(av.av, &address, *key - kKeyAddresses, &inserted);
            if (result == 0) {
                av.key_of[inserted] = found->second;
            }
        }
        *index = result == 0 ? inserted : FI_ADDR_NOTAVAIL;
        if (result == 0 && av.shared != nullptr &&
            !av.shared->append(to_sockaddr(address), inserted)) {
            result = -FI_ENOSPC;
        }
    } else {
        *index = FI_ADDR_NOTAVAIL;
    }
    return result;
}

// Inserts what `address_of` gives for each number; the errors go where the caller wants them.
template <class AddressOf>
int insert_all(AddressVector& av, size_t count, fi_addr_t* indexes, uint64_t flags, void* context,
               AddressOf address_of) {
    if (av.asynchronous && av.eq == nullptr) {
        return -FI_ENOEQ;
    }
    if (av.shared != nullptr && av.shared->read_only()) {
        return -FI_EACCES;
    }
    auto* errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
    size_t inserted = 0;
    const Guard guard(*av.domain);
    for (size_t i = 0; i < count; ++i) {
        tw_address address{};
        fi_addr_t index = FI_ADDR_NOTAVAIL;
        int result = address_of(i, &address);
        if (result == 0) {
            result =
                insert_one(av, address, (flags & kAuthKey) != 0 ? &indexes[i] : nullptr, &index);
        }
        inserted += result == 0 ? 1 : 0;
        if (indexes != nullptr) {
            indexes[i] = index;
        }
        if (errors != nullptr) {
            errors[i] = -result;
        }
        if (result != 0 && av.asynchronous) {
            av.eq->add_error(&av.fid.fid, context, i, -result);
        }
    }
    if (av.asynchronous) {
        av.eq->add(FI_AV_COMPLETE, &av.fid.fid, context, inserted);
        return 0;
    }
    return static_cast<int>(inserted);
}

// With FI_AUTH_KEY the indexes are also where each key is named.
bool can_insert(uint64_t flags, const fi_addr_t* indexes) {
    return (flags & ~(FI_MORE | FI_SYNC_ERR | kAuthKey)) == 0 &&
           ((flags & kAuthKey) == 0 || indexes != nullptr);
}

int insert(fid_av* handle, const void* addresses, size_t count, fi_addr_t* indexes, uint64_t flags,
           void* context) {
    if (!can_insert(flags, indexes) || (addresses == nullptr && count > 0)) {
        return -FI_EINVAL;
    }
    auto& av = object_of<AddressVector>(handle);
    const auto* bytes = static_cast<const char*>(addresses);
    const size_t size = name_size(av.domain->address_format);
    return insert_all(av, count, indexes, flags, context, [&](size_t i, tw_address* address) {
        return from_sockaddr(bytes + i * size, size, address);
    });
}

int insert_service(fid_av* handle, const char* node, const char* service, fi_addr_t* index,
                   uint64_t flags, void* context) {
    if (node == nullptr || service == nullptr || !can_insert(flags, index)) {
        return -FI_EINVAL;
    }
    return insert_all(
        object_of<AddressVector>(handle), 1, index, flags, context,
        [&](size_t, tw_address* address) { return resolve(node, service, false, address); });
}

// node, node + 1 ... with service, service + 1 ... each.
int insert_range(fid_av* handle, const char* node, size_t nodes, const char* service,
                 size_t services, fi_addr_t* indexes, uint64_t flags, void* context) {
    if (node == nullptr || service == nullptr || services == 0 || !can_insert(flags, indexes)) {
        return -FI_EINVAL;
    }
    tw_address first{};
    if (const int error = resolve(node, service, false, &first); error != 0) {
        return error;
    }
    return insert_all(object_of<AddressVector>(handle), nodes * services, indexes, flags, context,
                      [&](size_t i, tw_address* address) {
                          *address = first;
                          uint32_t ip = 0;
                          std::memcpy(&ip, first.ip, sizeof(ip));
                          ip = htonl(ntohl(ip) + static_cast<uint32_t>(i / services));
                          std::memcpy(address->ip, &ip, sizeof(ip));
                          address->udp_port = static_cast<uint16_t>(first.udp_port + i % services);
                          return 0;
                      });
}

// Endpoints that are bound have them: those are closed first (-FI_EBUSY).
int remove_auth_keys(AddressVector& av, const fi_addr_t* indexes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (!av.keys.contains(indexes[i])) {
            return -FI_EINVAL;
        }
        if (const int result = tw_av_remove(av.av, indexes[i] - kKeyAddresses); result != 0) {
            return log_failure("the authorization key is not removed", result);
        }
        av.keys.erase(indexes[i]);
    }
    return 0;
}

int remove(fid_av* handle, fi_addr_t* indexes, size_t count, uint64_t flags) {
    auto& av = object_of<AddressVector>(handle);
    if ((flags & ~kAuthKey) != 0) {
        return -FI_EINVAL;
    }
    const Guard guard(*av.domain);
    if (flags != 0) {
        return remove_auth_keys(av, indexes, count);
    }
    for (size_t i = 0; i < count; ++i) {
        // An acknowledgement may still be under way.
        const auto end = std::chrono::steady_clock::now() +
                         std::chrono::milliseconds(av.domain->peer_timeout_ms);
        int result = 0;
        while ((result = tw_av_remove(av.av, indexes[i])) == -EBUSY &&
               std::chrono::steady_clock::now() < end) {
            av.domain->progress();
        }
        if (result != 0) {
            return result;
        }
        av.key_of.erase(indexes[i]);
    }
    // Contexts of what was removed are looked up anew, and not found.
    av.contexts.clear();
    return 0;
}

int lookup(fid_av* handle, fi_addr_t index, void* data, size_t* length) {
    auto& av = object_of<AddressVector>(handle);
    tw_address address{};
    {
        const Guard guard(*av.domain);
        if (const int result = tw_av_lookup(av.av, index, &address); result != 0) {
            return result;
        }
    }
    *length = copy_name(address, av.domain->address_format, data, *length);
    return 0;
}

const char* to_string(fid_av* handle, const void* name, char* text, size_t* length) {
    const uint32_t format = object_of<AddressVector>(handle).domain->address_format;
    tw_address address{};
    const std::string whole = from_sockaddr(name, sizeof(sockaddr_in6), &address) == 0
                                  ? to_text(address, format)
                                  : "no address of Tagwire";
    if (text != nullptr && *length > 0) {
        const size_t size = std::min(*length - 1, whole.size());
        std::memcpy(text, whole.data(), size);
        text[size] = '\0';
    }
    *length = whole.size() + 1;
    return text;
}

int close_av(fid* handle) {
    auto& av = object_of<AddressVector>(handle);
    {
        const Guard guard(*av.domain);
        if (const int result = tw_av_close(av.av); result != 0) {
            return result;
        }
    }
    if (av.eq != nullptr) {
        --av.eq->bound;
    }
    --av.domain->children;
    delete &av;
    return 0;
}

int bind_av(fid* handle, fid* other, uint64_t) {
    auto& av = object_of<AddressVector>(handle);
    if (other->fclass != FI_CLASS_EQ) {
        return -FI_EINVAL;
    }
    if (!av.asynchronous || av.eq != nullptr) {
        return -FI_EINVAL;
    }
    av.eq = &object_of<EventQueue>(other);
    ++av.eq->bound;
    return 0;
}

#ifdef FI_AV_AUTH_KEY
int insert_auth_key(fid_av* handle, const void* key, size_t size, fi_addr_t* index,
                    uint64_t flags) {
    auto& av = object_of<AddressVector>(handle);
    if (flags != 0 || index == nullptr) {
        return -FI_EINVAL;
    }
    const Guard guard(*av.domain);
    tw_addr number = 0;
    if (const int result = tw_av_insert_auth_key(av.av, key, size, &number); result != 0) {
        return log_failure("the address vector takes no authorization key", result);
    }
    *index = kKeyAddresses + number;
    const auto* bytes = static_cast<const uint8_t*>(key);
    av.keys[*index] = std::make_shared<const std::vector<uint8_t>>(bytes, bytes + size);
    return 0;
}

// Of a key, or of an address that was inserted with one.
int lookup_auth_key(fid_av* handle, fi_addr_t index, void* room, size_t* size) {
    auto& av = object_of<AddressVector>(handle);
    const Guard guard(*av.domain);
    const auto& table = index < kKeyAddresses ? av.key_of : av.keys;
    const auto found = table.find(index);
    if (found == table.end()) {
        return -FI_EINVAL;
    }
    const std::vector<uint8_t>& key = *found->second;
    std::memcpy(room, key.data(), std::min(*size, key.size()));
    *size = key.size();
    return 0;
}
#endif

fi_ops av_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_av,
    .bind = bind_av,
    .control = kAbsent,
    .ops_open = kAbsent,
    .tostr = kAbsent,
    .ops_set = kAbsent,
};

fi_ops_av av_ops = {
    .size = sizeof(fi_ops_av),
    .insert = insert,
    .insertsvc = insert_service,
    .insertsym = insert_range,
    .remove = remove,
    .lookup = lookup,
    .straddr = to_string,
    .av_set = kAbsent,
#ifdef FI_AV_AUTH_KEY
    .insert_auth_key = insert_auth_key,
    .lookup_auth_key = lookup_auth_key,
#endif
};

}  // namespace

bool AddressVector::catch_up() {
    if (shared == nullptr || !shared->read_only() || shared->count() == shared_seen) {
        return false;
    }
    while (shared_seen < shared->count()) {
        tw_address address{};
        tw_addr index = 0;
        const sockaddr_in& name = shared->name(shared_seen++);
        if (from_sockaddr(&name, sizeof(name), &address) == 0) {
            tw_av_insert(av, &address, &index);
        }
    }
    return true;
}

tw_addr AddressVector::context_of(fi_addr_t address) {
    if (context_bits == 0) {
        return FI_ADDR_NOTAVAIL;
    }
    const auto known = contexts.find(address);
    if (known != contexts.end()) {
        return known->second;
    }
    const int shift = 64 - context_bits;
    const fi_addr_t base = address & ((fi_addr_t{1} << shift) - 1);
    tw_address name{};
    tw_addr index = FI_ADDR_NOTAVAIL;
    if (tw_av_lookup(av, base, &name) != 0) {
        return FI_ADDR_NOTAVAIL;
    }
    name.endpoint = static_cast<uint16_t>(name.endpoint + (address >> shift));
    if (tw_av_insert(av, &name, &index) == 0) {
        contexts.emplace(address, index);
    }
    return index;
}

int open_av(fid_domain* handle, fi_av_attr* attr, fid_av** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    if (attr == nullptr || (attr->flags & ~(FI_EVENT | FI_READ)) != 0) {
        return -FI_EINVAL;
    }
    auto* av = new (std::nothrow) AddressVector{};
    if (av == nullptr) {
        return -FI_ENOMEM;
    }
    if (attr->name != nullptr) {
        const bool read_only = (attr->flags & FI_READ) != 0;
        if (const int error = SharedTable::open(attr->name, read_only, &av->shared); error != 0) {
            FI_WARN(&provider, FI_LOG_AV, "the address vector %s is not to be had\n", attr->name);
            delete av;
            return error;
        }
        attr->map_addr = av->shared->map();
    }
    const Guard guard(domain);
    if (const int result = tw_av_open(domain.worker, &av->av); result != 0) {
        delete av;
        return log_failure("the address vector does not open", result);
    }
    if (attr->type == FI_AV_UNSPEC) {
        attr->type = FI_AV_TABLE;
    }
    av->fid.fid.fclass = FI_CLASS_AV;
    av->fid.fid.context = context;
    av->fid.fid.ops = &av_fid_ops;
    av->fid.ops = &av_ops;
    av->domain = &domain;
    av->context_bits = attr->rx_ctx_bits;
    av->asynchronous = (attr->flags & FI_EVENT) != 0;
    ++domain.children;
    *opened = &av->fid;
    return 0;
}

}  // namespace tagwire::fi
