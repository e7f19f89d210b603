// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/info.h"

#include <arpa/inet.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <tagwire/types.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lib/fi/address.h"
#include "lib/fi/flags.h"
#include "lib/fi/offer.h"
#include "lib/fi/passive_endpoint.h"
#include "lib/fi/provider.h"
#include "lib/port/failure.h"
#include "lib/port/process_ports.h"

namespace tagwire::fi {
namespace {

constexpr uint64_t kTagFormat = 0xaaaaaaaaaaaaaaaaull;  // all 64 bits are the application's

// Among libfabric's flags of fi_getinfo for its own use.
constexpr uint64_t kForLayers = 1ull << 59;

// What has no direction goes both ways.
uint64_t with_modifiers(uint64_t caps) {
    if ((caps & kMessageCaps) != 0 && (caps & (FI_SEND | FI_RECV)) == 0) {
        caps |= FI_SEND | FI_RECV;
    }
    constexpr uint64_t kDirections = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    if ((caps & kRemoteCaps) != 0 && (caps & kDirections) == 0) {
        caps |= kDirections;
    }
    return caps;
}

char* copy(const std::string& text) {
    return strdup(text.c_str());
}

void fill_contexts(const fi_info* hints, uint64_t caps, fi_info* info) {
    fi_tx_attr& tx = *info->tx_attr;
    tx.caps = caps & kTransmitCaps;
    tx.op_flags = 0;
    tx.msg_order = kMessageOrder;
    tx.inject_size = TW_INJECT_SIZE;
    tx.size = kQueueSize;
    tx.iov_limit = TW_IOV_LIMIT;
    tx.rma_iov_limit = kRmaIovLimit;
    fi_rx_attr& rx = *info->rx_attr;
    rx.caps = caps & kReceiveCaps;
    rx.msg_order = kMessageOrder;
    rx.total_buffered_recv = size_t{128} << 20;
    rx.size = kQueueSize;
    rx.iov_limit = TW_IOV_LIMIT;
    if (hints != nullptr && hints->tx_attr != nullptr) {
        tx.op_flags = hints->tx_attr->op_flags;
        tx.caps = hints->tx_attr->caps != 0 ? hints->tx_attr->caps & kTransmitCaps : tx.caps;
    }
    if (hints != nullptr && hints->rx_attr != nullptr) {
        rx.op_flags = hints->rx_attr->op_flags;
        rx.caps = hints->rx_attr->caps != 0 ? hints->rx_attr->caps & kReceiveCaps : rx.caps;
    }
}

void fill_endpoint(const fi_info* hints, fi_ep_type type, fi_info* info) {
    fi_ep_attr& ep = *info->ep_attr;
    ep.type = type;
    ep.protocol = FI_PROTO_UNSPEC;
    ep.protocol_version = 1;
    ep.max_msg_size = TW_MAX_MESSAGE_SIZE;
    ep.max_order_raw_size = kOrderedSize;
    ep.max_order_war_size = kOrderedSize;
    ep.max_order_waw_size = kOrderedSize;
    ep.mem_tag_format = kTagFormat;
    ep.tx_ctx_cnt = 1;
    ep.rx_ctx_cnt = 1;
    if (hints == nullptr || hints->ep_attr == nullptr) {
        return;
    }
    if (hints->ep_attr->tx_ctx_cnt != 0) {
        ep.tx_ctx_cnt = hints->ep_attr->tx_ctx_cnt;
    }
    if (hints->ep_attr->rx_ctx_cnt != 0) {
        ep.rx_ctx_cnt = hints->ep_attr->rx_ctx_cnt;
    }
    if (hints->ep_attr->mem_tag_format != 0) {
        ep.mem_tag_format = hints->ep_attr->mem_tag_format;
    }
    if (kKeysOfVector != 0 && hints->ep_attr->auth_key_size == kKeysOfVector) {
        ep.auth_key_size = kKeysOfVector;
    } else if (hints->ep_attr->auth_key != nullptr && hints->ep_attr->auth_key_size > 0) {
        ep.auth_key_size = hints->ep_attr->auth_key_size;
        ep.auth_key = static_cast<uint8_t*>(std::malloc(ep.auth_key_size));
        std::memcpy(ep.auth_key, hints->ep_attr->auth_key, ep.auth_key_size);
    }
}

// Before 1.5 there were two modes; later a bit for each demand of a provider. We have none, unless
// the application insists on the basic mode.
int memory_mode(uint32_t version, const fi_info* hints) {
    const int wanted =
        hints != nullptr && hints->domain_attr != nullptr ? hints->domain_attr->mr_mode : 0;
    if (FI_VERSION_LT(version, FI_VERSION(1, 5))) {
        return wanted == kBasicMemory ? kBasicMemory : kScalableMemory;
    }
    return wanted == kBasicMemory || wanted == kScalableMemory ? wanted : 0;
}

void fill_domain(uint32_t version, const fi_info* hints, const port::Prospect& prospect,
                 fi_info* info) {
    fi_domain_attr& domain = *info->domain_attr;
    domain.name = copy(prospect.device);
    domain.threading = FI_THREAD_SAFE;
    domain.control_progress = FI_PROGRESS_MANUAL;
    domain.data_progress = FI_PROGRESS_MANUAL;
    domain.resource_mgmt = FI_RM_ENABLED;
    domain.av_type = FI_AV_UNSPEC;
    domain.mr_mode = memory_mode(version, hints);
    domain.mr_key_size = sizeof(uint64_t);
    domain.cq_data_size = sizeof(uint64_t);
    domain.cq_cnt = 1024;
    domain.ep_cnt = 1024;
    domain.tx_ctx_cnt = 1024;
    domain.rx_ctx_cnt = 1024;
    domain.max_ep_tx_ctx = kMaxContexts;
    domain.max_ep_rx_ctx = kMaxContexts;
    domain.max_ep_stx_ctx = 1024;
    domain.max_ep_srx_ctx = 1024;
    domain.cntr_cnt = 1024;
    domain.mr_iov_limit = TW_IOV_LIMIT;
    domain.caps = kDomainCaps;
    domain.mr_cnt = 65536;
    if (hints == nullptr || hints->domain_attr == nullptr) {
        return;
    }
    const fi_domain_attr& wanted = *hints->domain_attr;
    if (wanted.threading != FI_THREAD_UNSPEC) {
        domain.threading = wanted.threading;
    }
    if (wanted.control_progress != FI_PROGRESS_UNSPEC) {
        domain.control_progress = wanted.control_progress;
    }
    if (wanted.data_progress != FI_PROGRESS_UNSPEC) {
        domain.data_progress = wanted.data_progress;
    }
    if (wanted.resource_mgmt == FI_RM_DISABLED) {
        domain.resource_mgmt = FI_RM_DISABLED;
    }
    domain.av_type = wanted.av_type;
#ifdef FI_AV_AUTH_KEY
    if (wanted.auth_key_size == kKeysOfVector) {
        domain.auth_key_size = kKeysOfVector;
        domain.max_ep_auth_key = 65536;  // and more
    }
#endif
}

// Not a warning: they may be meant for another provider.
int not_resolved(const char* node, const char* service) {
    FI_INFO(&provider, FI_LOG_CORE, "node %s, service %s: not resolved to an IPv4 address\n",
            node != nullptr ? node : "(none)", service != nullptr ? service : "(none)");
    return -FI_ENODATA;
}

// The address of this process, with the port that the application wants.
int fill_source(const char* node, const char* service, uint64_t flags, const fi_info* hints,
                const port::Settings& settings, fi_info* info) {
    tw_address own = port::address_of_worker(settings, 0);
    own.udp_port = 0;
    tw_address wanted{};
    if ((flags & FI_SOURCE) != 0 && (node != nullptr || service != nullptr)) {
        if (resolve(node, service, (flags & FI_NUMERICHOST) != 0, &wanted) != 0) {
            return not_resolved(node, service);
        }
    } else if (hints != nullptr && hints->src_addr != nullptr &&
               from_sockaddr(hints->src_addr, hints->src_addrlen, &wanted) != 0) {
        return -FI_ENODATA;
    }
    if (!names_no_card(wanted)) {
        std::memcpy(own.ip, wanted.ip, sizeof(own.ip));
    }
    own.udp_port = wanted.udp_port;
    own.endpoint = wanted.endpoint;
    set_address(own, info->addr_format, &info->src_addr, &info->src_addrlen);
    return 0;
}

// An endpoint that is opened with this information takes over the passive endpoint's address.
int inherit(fid_t handle, fi_info* info) {
    if (info->ep_attr->type != FI_EP_MSG) {
        FI_INFO(&provider, FI_LOG_CORE,
                "an FI_EP_RDM endpoint cannot have a passive endpoint's address\n");
        return -FI_ENODATA;
    }
    info->handle = handle;
    tw_address name{};
    if (const int error = name_of_passive(handle, &name); error != 0) {
        return error;
    }
    set_address(name, info->addr_format, &info->src_addr, &info->src_addrlen);
    return 0;
}

int fill_destination(const char* node, const char* service, uint64_t flags, const fi_info* hints,
                     fi_info* info) {
    tw_address peer{};
    int error = 0;
    if ((flags & FI_SOURCE) == 0 && node != nullptr) {
        error = resolve(node, service, (flags & FI_NUMERICHOST) != 0, &peer);
        if (error != 0) {
            return not_resolved(node, service);
        }
    } else if (hints != nullptr && hints->dest_addr != nullptr) {
        error = from_sockaddr(hints->dest_addr, hints->dest_addrlen, &peer);
    } else {
        return 0;
    }
    if (error != 0) {
        return -FI_ENODATA;
    }
    set_address(peer, info->addr_format, &info->dest_addr, &info->dest_addrlen);
    return 0;
}

int make_info(uint32_t version, const char* node, const char* service, uint64_t flags,
              const fi_info* hints, fi_ep_type type, const port::Settings& settings,
              fi_info** made) {
    const port::Prospect prospect = port::prospect(settings);
    if (hints != nullptr && !hints_fit(version, *hints, type, prospect.device)) {
        return -FI_ENODATA;
    }
    fi_info* info = fi_allocinfo();
    if (info == nullptr) {
        return -FI_ENOMEM;
    }
    const uint64_t caps =
        with_modifiers(hints != nullptr && hints->caps != 0 ? hints->caps : caps_of(version, type));
    info->caps = caps | FI_LOCAL_COMM | FI_REMOTE_COMM;
    info->mode = 0;
    info->addr_format = hints != nullptr && hints->addr_format == FI_SOCKADDR_IN6 ? FI_SOCKADDR_IN6
                                                                                  : FI_SOCKADDR_IN;
    fill_contexts(hints, caps, info);
    fill_endpoint(hints, type, info);
    fill_domain(version, hints, prospect, info);
    info->fabric_attr->name = copy(kFabricName);
    info->fabric_attr->prov_version = provider.version;
    info->fabric_attr->api_version = version;
    if ((flags & FI_PROV_ATTR_ONLY) == 0) {
        const bool inherits =
            hints != nullptr && hints->handle != nullptr && hints->handle->fclass == FI_CLASS_PEP;
        int error = inherits ? inherit(hints->handle, info)
                             : fill_source(node, service, flags, hints, settings, info);
        if (error == 0) {
            error = fill_destination(node, service, flags, hints, info);
        }
        if (error != 0) {
            fi_freeinfo(info);
            return error;
        }
    }
    *made = info;
    return 0;
}

}  // namespace

int get_info(uint32_t version, const char* node, const char* service, uint64_t flags,
             const fi_info* hints, fi_info** info) {
    const fi_ep_type wanted =
        hints != nullptr && hints->ep_attr != nullptr ? hints->ep_attr->type : FI_EP_UNSPEC;
    // Layered providers of libfabric ask for connected endpoints and datagrams, to put what we have
    // upon them.
    const bool for_layers = (flags & kForLayers) != 0;
    if (!for_layers && !type_is_offered(wanted)) {
        return -FI_ENODATA;
    }
    try {
        const port::Settings settings = read_settings();
        fi_info* last = nullptr;
        int result = -FI_ENODATA;
        for (const fi_ep_type type : {FI_EP_RDM, FI_EP_MSG}) {
            fi_info* entry = nullptr;
            if ((wanted != FI_EP_UNSPEC && wanted != type) || (type == FI_EP_MSG && for_layers)) {
                continue;
            }
            result = make_info(version, node, service, flags, hints, type, settings, &entry);
            if (result != 0) {
                break;
            }
            (last == nullptr ? *info : last->next) = entry;
            last = entry;
        }
        return last != nullptr ? 0 : result;
    } catch (const port::Failure& failure) {
        FI_WARN(&provider, FI_LOG_CORE, "%s\n", failure.text().c_str());
    }
    return -FI_ENODATA;
}

}  // namespace tagwire::fi
