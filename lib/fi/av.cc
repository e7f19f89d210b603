// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/av.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "lib/fi/address.h"
#include "lib/fi/completion_queue.h"
#include "lib/fi/event_queue.h"
#include "lib/fi/flags.h"
#include "lib/fi/object.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

constexpr const char* kNoKey = "the vector has no such authorization key (fi_av_insert_auth_key)";

// `key`: of fi_av_insert_auth_key, or nullptr.
int insert_one(AddressVector& av, const tw_address& address, const fi_addr_t* key,
               fi_addr_t* index) {
    int result =
        address.udp_port != 0 ? 0 : refuse(-FI_EINVAL, FI_LOG_AV, "an address needs a UDP port");
    if (result == 0) {
        tw_addr inserted = TW_ADDR_UNSPEC;
        if (key == nullptr) {
            result = tw_av_insert(av.av, &address, &inserted);
        } else if (const auto found = av.keys.find(*key); found == av.keys.end()) {
            result = refuse(-FI_EINVAL, FI_LOG_AV, kNoKey);
        } else {
            result = tw_av_insert_with_key(av.av, &address, *key - kKeyAddresses, &inserted);
            if (result == 0) {
                av.key_of[inserted] = found->second;
            }
        }
        *index = result == 0 ? inserted : FI_ADDR_NOTAVAIL;
        if (result == 0 && av.shared != nullptr &&
            !av.shared->append(to_sockaddr(address), inserted)) {
            result = refuse(-FI_ENOSPC, FI_LOG_AV,
                            fmt::format("a vector with a name has at most {} addresses",
                                        SharedTable::kCapacity));
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
        return refuse(-FI_ENOEQ, FI_LOG_AV,
                      "the vector was opened with FI_EVENT: bind an event queue first "
                      "(fi_av_bind)");
    }
    if (av.shared != nullptr && av.shared->read_only()) {
        return refuse(-FI_EACCES, FI_LOG_AV,
                      "the vector was opened with FI_READ: the process that opened it without "
                      "inserts");
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

// With FI_AUTH_KEY the indexes are also where each key is named, with FI_SYNC_ERR the context is
// where the errors go.
int check_insertion(const char* call, bool has_addresses, uint64_t flags, const fi_addr_t* indexes,
                    const void* context) {
    if ((flags & ~(FI_MORE | FI_SYNC_ERR | kAuthKey)) != 0) {
        return refuse(-FI_EINVAL, FI_LOG_AV,
                      fmt::format("{} takes FI_MORE, FI_SYNC_ERR and, from libfabric 2.0 on, "
                                  "FI_AUTH_KEY; asked for is {:#x}",
                                  call, flags));
    }
    if ((flags & kAuthKey) != 0 && indexes == nullptr) {
        return refuse(
            -FI_EINVAL, FI_LOG_AV,
            fmt::format("{} with FI_AUTH_KEY reads the keys from fi_addr, which is NULL", call));
    }
    if ((flags & FI_SYNC_ERR) != 0 && context == nullptr) {
        return refuse(
            -FI_EINVAL, FI_LOG_AV,
            fmt::format("{} with FI_SYNC_ERR writes the errors to context, which is NULL", call));
    }
    return has_addresses
               ? 0
               : refuse(-FI_EINVAL, FI_LOG_AV, fmt::format("{}: no address was given", call));
}

int not_resolved(const char* node, const char* service, int error) {
    return refuse(
        error, FI_LOG_AV,
        fmt::format("node {}, service {}: not resolved to an IPv4 address", node, service));
}

int insert(fid_av* handle, const void* addresses, size_t count, fi_addr_t* indexes, uint64_t flags,
           void* context) {
    if (const int error = check_insertion("fi_av_insert", addresses != nullptr || count == 0, flags,
                                          indexes, context);
        error != 0) {
        return error;
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
    if (const int error = check_insertion("fi_av_insertsvc", node != nullptr && service != nullptr,
                                          flags, index, context);
        error != 0) {
        return error;
    }
    return insert_all(object_of<AddressVector>(handle), 1, index, flags, context,
                      [&](size_t, tw_address* address) {
                          const int error = resolve(node, service, false, address);
                          return error == 0 ? 0 : not_resolved(node, service, error);
                      });
}

// node, node + 1 ... with service, service + 1 ... each.
int insert_range(fid_av* handle, const char* node, size_t nodes, const char* service,
                 size_t services, fi_addr_t* indexes, uint64_t flags, void* context) {
    if (const int error = check_insertion("fi_av_insertsym",
                                          node != nullptr && service != nullptr && services > 0,
                                          flags, indexes, context);
        error != 0) {
        return error;
    }
    tw_address first{};
    if (const int error = resolve(node, service, false, &first); error != 0) {
        return not_resolved(node, service, error);
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
            return refuse(-FI_EINVAL, FI_LOG_AV, kNoKey);
        }
        if (const int result = tw_av_remove(av.av, indexes[i] - kKeyAddresses); result != 0) {
            return log_failure("the authorization key is not removed", result);
        }
        av.keys.erase(indexes[i]);
    }
    return 0;
}

int remove_one(AddressVector& av, tw_addr index) {
    // An acknowledgement may still be under way.
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(av.domain->peer_timeout_ms);
    int result = 0;
    while ((result = tw_av_remove(av.av, index)) == -EBUSY &&
           std::chrono::steady_clock::now() < end) {
        av.domain->progress();
    }
    return result;
}

// The contexts of a scalable endpoint that were named go with its address.
int remove_with_contexts(AddressVector& av, fi_addr_t address) {
    for (auto context = av.contexts.begin(); context != av.contexts.end();) {
        if (av.base_of(context->first) != address) {
            ++context;
            continue;
        }
        if (const int result = remove_one(av, context->second); result != 0) {
            return result;
        }
        av.context_names.erase(context->second);
        context = av.contexts.erase(context);
    }
    return remove_one(av, address);
}

int remove(fid_av* handle, fi_addr_t* indexes, size_t count, uint64_t flags) {
    auto& av = object_of<AddressVector>(handle);
    if ((flags & ~kAuthKey) != 0) {
        return refuse_flags("fi_av_remove", flags, kAuthKey);
    }
    const Guard guard(*av.domain);
    if (flags != 0) {
        return remove_auth_keys(av, indexes, count);
    }
    for (size_t i = 0; i < count; ++i) {
        if (const int result = remove_with_contexts(av, indexes[i]); result != 0) {
            return log_failure("the address is not removed", result);
        }
        av.key_of.erase(indexes[i]);
    }
    return 0;
}

int lookup(fid_av* handle, fi_addr_t index, void* data, size_t* length) {
    auto& av = object_of<AddressVector>(handle);
    tw_address address{};
    {
        const Guard guard(*av.domain);
        const tw_addr known = index < kPlainAddresses ? index : av.context_of(index);
        if (const int result = tw_av_lookup(av.av, known, &address); result != 0) {
            return log_failure("the address is not looked up", result);
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
            return log_failure("the address vector does not close", result);
        }
        for (CompletionQueue* queue : av.domain->queues) {
            queue->contexts = queue->contexts == &av ? nullptr : queue->contexts;
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
    if (other->fclass != FI_CLASS_EQ || !av.asynchronous || av.eq != nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_AV,
                      "an address vector is bound to one event queue, if it was opened with "
                      "FI_EVENT, and to nothing else");
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
        return refuse(-FI_EINVAL, FI_LOG_AV,
                      "fi_av_insert_auth_key takes no flags, and fi_addr cannot be NULL");
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
        return refuse(-FI_EINVAL, FI_LOG_AV, kNoKey);
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
    tw_address name{};
    tw_addr index = FI_ADDR_NOTAVAIL;
    if (tw_av_lookup(av, base_of(address), &name) != 0) {
        return FI_ADDR_NOTAVAIL;
    }
    name.endpoint = static_cast<uint16_t>(name.endpoint + (address >> (64 - context_bits)));
    if (tw_av_insert(av, &name, &index) == 0) {
        contexts.emplace(address, index);
        context_names.emplace(index, address);
    }
    return index;
}

namespace {

int check_attributes(const fi_av_attr* attr) {
    if (attr == nullptr) {
        return refuse(-FI_EINVAL, FI_LOG_AV, "fi_av_open: attr cannot be NULL");
    }
    if ((attr->flags & ~(FI_EVENT | FI_READ)) != 0) {
        return refuse(-FI_EINVAL, FI_LOG_AV,
                      fmt::format("fi_av_open takes the flags FI_EVENT and FI_READ, asked for is "
                                  "{:#x}",
                                  attr->flags));
    }
    if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP && attr->type != FI_AV_TABLE) {
        return refuse(-FI_EINVAL, FI_LOG_AV,
                      fmt::format("an address vector is FI_AV_MAP or FI_AV_TABLE, asked for is {}",
                                  static_cast<unsigned>(attr->type)));
    }
    constexpr int kContextBits = std::countl_zero(kPlainAddresses) + 1;
    if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > kContextBits) {
        return refuse(-FI_EINVAL, FI_LOG_AV,
                      fmt::format("rx_ctx_bits is at most {}, asked for is {}", kContextBits,
                                  attr->rx_ctx_bits));
    }
    return 0;
}

}  // namespace

int open_av(fid_domain* handle, fi_av_attr* attr, fid_av** opened, void* context) {
    auto& domain = object_of<Domain>(handle);
    if (const int error = check_attributes(attr); error != 0) {
        return error;
    }
    auto* av = new (std::nothrow) AddressVector{};
    if (av == nullptr) {
        return -FI_ENOMEM;
    }
    if (attr->name != nullptr) {
        const bool read_only = (attr->flags & FI_READ) != 0;
        if (const int error = SharedTable::open(attr->name, read_only, &av->shared); error != 0) {
            delete av;
            return refuse(error, FI_LOG_AV,
                          fmt::format("the address vector {} is not to be had: {}", attr->name,
                                      read_only ? "a process must have opened it without FI_READ"
                                                : "another process has it open; give it another "
                                                  "name, or open it with FI_READ"));
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
