// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/address_vector.h"

#include <cinttypes>
#include <string_view>

#include "lib/tagwire/address.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/worker.h"

namespace tagwire {

size_t AddressVector::Hash::operator()(const transport::EndpointAddress& address) const {
    const std::string_view ip(reinterpret_cast<const char*>(address.ip.data()), address.ip.size());
    return std::hash<std::string_view>()(ip) ^
           (size_t{address.udp_port} << 16 | address.endpoint) * 0x9e3779b97f4a7c15u;
}

tw_addr AddressVector::insert(const transport::EndpointAddress& address) {
    const auto [it, fresh] = indexes_.try_emplace(address, addresses_.size());
    if (fresh) {
        try {
            addresses_.push_back(address);
        } catch (...) {
            indexes_.erase(it);
            throw;
        }
    }
    return it->second;
}

tw_addr AddressVector::find(const transport::EndpointAddress& address) const {
    const auto it = indexes_.find(address);
    return it == indexes_.end() ? TW_ADDR_NOTAVAIL : it->second;
}

}  // namespace tagwire

int tw_av_open(tw_worker* worker, tw_av** av) {
    using namespace tagwire;
    if (worker == nullptr || av == nullptr) {
        return refuse(EINVAL, "tw_av_open: worker and av cannot be NULL");
    }
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
    if (const int error = check_address(*address); error != 0) {
        return error;
    }
    if (address->endpoint == TW_EP_ANY) {
        return refuse(EINVAL, "tw_av_insert: the address names no endpoint");
    }
    if (address->family != static_cast<uint8_t>(av->worker().address().family)) {
        return fail(EAFNOSUPPORT, "tw_av_insert: an IPv%u address, but the worker has IPv%u",
                    address->family, static_cast<unsigned>(av->worker().address().family));
    }
    return guarded([&] {
        *index = av->insert(to_transport(*address));
        return 0;
    });
}

int tw_av_lookup(const tw_av* av, tw_addr index, tw_address* address) {
    using namespace tagwire;
    if (av == nullptr || address == nullptr) {
        return refuse(EINVAL, "tw_av_lookup: av and address cannot be NULL");
    }
    const transport::EndpointAddress* found = av->lookup(index);
    if (found == nullptr) {
        return fail(EINVAL, "tw_av_lookup: index %" PRIu64 " was never given out", index);
    }
    *address = from_transport(*found);
    return 0;
}
