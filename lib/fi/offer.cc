// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/offer.h"

#include <fmt/format.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <tagwire/types.h>

#include <cstring>

#include "lib/fi/info.h"
#include "lib/fi/provider.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

constexpr uint64_t kAllCaps = kTransmitCaps | kReceiveCaps | kDomainCaps;

// A connected endpoint has one peer, which needs no address.
constexpr uint64_t kConnectedCaps = kAllCaps & ~(FI_DIRECTED_RECV | kTaggedDirectedReceive |
                                                 FI_SOURCE | FI_NAMED_RX_CTX | FI_SHARED_AV);

constexpr uint64_t kTransmitFlags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                    FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;
constexpr uint64_t kReceiveFlags = FI_COMPLETION | FI_MULTI_RECV;

// FI_PROGRESS_CONTROL_UNIFIED, which 1.17's headers lack: control calls progress like data ones.
constexpr auto kLastProgress = static_cast<fi_progress>(FI_PROGRESS_MANUAL + 1);

// One comparison of what is asked for with what is there; false where it asks for too much.
class Comparison {
  public:
    explicit Comparison(fi_log_level level) : level_(level) {}

    bool transmit(const fi_tx_attr& wanted) const;
    bool receive(const fi_rx_attr& wanted) const;
    bool endpoint(const fi_ep_attr& wanted) const;
    bool domain(const fi_domain_attr& wanted) const;
    bool among(const char* what, uint64_t wanted, uint64_t offered, fi_type type) const;
    bool refuse(const std::string& why) const {
        FI_LOG(&provider, level_, FI_LOG_CORE, "%s\n", why.c_str());
        return false;
    }

  private:
    bool at_most(const char* what, uint64_t wanted, uint64_t offered) const {
        return wanted <= offered ||
               refuse(fmt::format("{} is at most {}, asked for is {}", what, offered, wanted));
    }
    template <class Enumeration>
    bool defined(const char* what, Enumeration wanted, Enumeration last) const {
        const auto value = static_cast<unsigned>(wanted);
        return value <= static_cast<unsigned>(last) ||
               refuse(fmt::format("{} is undefined: {} (the largest is {})", what, value,
                                  static_cast<unsigned>(last)));
    }
    bool contexts(const char* what, size_t wanted) const {
        return wanted == FI_SHARED_CONTEXT || at_most(what, wanted, kMaxContexts);
    }
    bool unordered_completions(const char* what, uint64_t wanted) const {
        return wanted == 0 ||
               refuse(fmt::format("{} is FI_ORDER_NONE, asked for is {:#x}: completions come in "
                                  "any order",
                                  what, wanted));
    }

    fi_log_level level_;
};

bool Comparison::among(const char* what, uint64_t wanted, uint64_t offered, fi_type type) const {
    return (wanted & ~offered) == 0 ||
           refuse(fmt::format("{} {} are not offered; these are: {}", what,
                              names_of(wanted & ~offered, type), names_of(offered, type)));
}

bool Comparison::transmit(const fi_tx_attr& wanted) const {
    return among("transmit capabilities", wanted.caps, kAllCaps, FI_TYPE_CAPS) &&
           among("transmit op_flags", wanted.op_flags, kTransmitFlags, FI_TYPE_OP_FLAGS) &&
           among("transmit msg_order", wanted.msg_order, kMessageOrder, FI_TYPE_MSG_ORDER) &&
           unordered_completions("transmit comp_order", wanted.comp_order) &&
           at_most("inject_size", wanted.inject_size, TW_INJECT_SIZE) &&
           at_most("transmit size", wanted.size, kQueueSize) &&
           at_most("transmit iov_limit", wanted.iov_limit, TW_IOV_LIMIT) &&
           at_most("rma_iov_limit", wanted.rma_iov_limit, kRmaIovLimit);
}

bool Comparison::receive(const fi_rx_attr& wanted) const {
    return among("receive capabilities", wanted.caps, kAllCaps, FI_TYPE_CAPS) &&
           among("receive op_flags", wanted.op_flags, kReceiveFlags, FI_TYPE_OP_FLAGS) &&
           among("receive msg_order", wanted.msg_order, kMessageOrder, FI_TYPE_MSG_ORDER) &&
           unordered_completions("receive comp_order", wanted.comp_order) &&
           at_most("receive size", wanted.size, kQueueSize) &&
           at_most("receive iov_limit", wanted.iov_limit, TW_IOV_LIMIT);
}

bool Comparison::endpoint(const fi_ep_attr& wanted) const {
    if (wanted.protocol != FI_PROTO_UNSPEC) {
        return refuse(fmt::format("protocol is Tagwire's own (FI_PROTO_UNSPEC), asked for is {}",
                                  name_of(wanted.protocol, FI_TYPE_PROTOCOL)));
    }
    if (wanted.auth_key_size > TW_AUTH_KEY_MAX && wanted.auth_key_size != kKeysOfVector) {
        return refuse(fmt::format("authorization keys have at most {} bytes, asked for are {}",
                                  TW_AUTH_KEY_MAX, wanted.auth_key_size));
    }
    return at_most("max_msg_size", wanted.max_msg_size, TW_MAX_MESSAGE_SIZE) &&
           contexts("tx_ctx_cnt", wanted.tx_ctx_cnt) && contexts("rx_ctx_cnt", wanted.rx_ctx_cnt);
}

bool Comparison::domain(const fi_domain_attr& wanted) const {
    return defined("threading", wanted.threading, FI_THREAD_ENDPOINT) &&
           defined("control_progress", wanted.control_progress, kLastProgress) &&
           defined("data_progress", wanted.data_progress, kLastProgress) &&
           defined("resource_mgmt", wanted.resource_mgmt, FI_RM_ENABLED) &&
           defined("av_type", wanted.av_type, FI_AV_TABLE) &&
           among("domain capabilities", wanted.caps, kDomainCaps, FI_TYPE_CAPS) &&
           at_most("cq_data_size", wanted.cq_data_size, sizeof(uint64_t)) &&
           at_most("mr_key_size", wanted.mr_key_size, sizeof(uint64_t));
}

}  // namespace

// The bits of receives with tags meant something else before 2.0.
uint64_t caps_of(uint32_t version, fi_ep_type type) {
    const uint64_t caps = type == FI_EP_MSG ? kConnectedCaps : kAllCaps;
    return FI_VERSION_GE(version, FI_VERSION(2, 0))
               ? caps
               : caps & ~(kTaggedMultiReceive | kTaggedDirectedReceive);
}

bool type_is_offered(fi_ep_type type) {
    return type == FI_EP_UNSPEC || type == FI_EP_RDM || type == FI_EP_MSG ||
           Comparison(FI_LOG_INFO)
               .refuse(fmt::format("endpoints are FI_EP_RDM and FI_EP_MSG, asked for is {}",
                                   name_of(type, FI_TYPE_EP_TYPE)));
}

bool hints_fit(uint32_t version, const fi_info& hints, fi_ep_type type, const std::string& domain) {
    const Comparison with(FI_LOG_INFO);
    if (!with.among(type == FI_EP_MSG ? "capabilities of FI_EP_MSG" : "capabilities", hints.caps,
                    caps_of(version, type), FI_TYPE_CAPS)) {
        return false;
    }
    if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != FI_SOCKADDR &&
        hints.addr_format != FI_SOCKADDR_IN && hints.addr_format != FI_SOCKADDR_IN6) {
        return with.refuse(
            fmt::format("addresses are FI_SOCKADDR_IN or FI_SOCKADDR_IN6 with IPv4 in it, asked "
                        "for is {}",
                        name_of(hints.addr_format, FI_TYPE_ADDR_FORMAT)));
    }
    if (hints.fabric_attr != nullptr && hints.fabric_attr->name != nullptr &&
        std::strcmp(hints.fabric_attr->name, kFabricName) != 0) {
        return with.refuse(
            fmt::format("the fabric is {}, asked for is {}", kFabricName, hints.fabric_attr->name));
    }
    if (hints.domain_attr != nullptr && hints.domain_attr->name != nullptr &&
        domain != hints.domain_attr->name) {
        return with.refuse(
            fmt::format("the domain is {}, asked for is {}", domain, hints.domain_attr->name));
    }
    return (hints.tx_attr == nullptr || with.transmit(*hints.tx_attr)) &&
           (hints.rx_attr == nullptr || with.receive(*hints.rx_attr)) &&
           (hints.ep_attr == nullptr || with.endpoint(*hints.ep_attr)) &&
           (hints.domain_attr == nullptr || with.domain(*hints.domain_attr));
}

int check_domain(const fi_domain_attr& wanted) {
    return Comparison(FI_LOG_WARN).domain(wanted) ? 0 : -FI_EINVAL;
}

int check_transmit(const fi_tx_attr& wanted) {
    return Comparison(FI_LOG_WARN).transmit(wanted) ? 0 : -FI_EINVAL;
}

int check_receive(const fi_rx_attr& wanted) {
    return Comparison(FI_LOG_WARN).receive(wanted) ? 0 : -FI_EINVAL;
}

}  // namespace tagwire::fi
