// SPDX-License-Identifier: BSD-3-Clause
// Control calls with each argument wrong in turn, and what the pages of doc/api say of it.
#include "test/tagwire/argument_cases.h"
#include "test/tagwire/core_fixture.h"

namespace tagwire::test {
namespace {

tw_address spoiled(void (*spoil)(tw_address&)) {
    tw_address result = address("10.0.0.9:4791");
    spoil(result);
    return result;
}

int open_worker(Objects& o, void (*spoil)(tw_worker_attr&)) {
    tw_worker_attr attr = worker_attributes();
    spoil(attr);
    return tw_worker_open(&attr, &o.results.worker);
}

int open_endpoint(Objects& o, void (*spoil)(tw_ep_attr&)) {
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = TW_EP_ANY;
    spoil(attr);
    return tw_ep_open(o.worker, &attr, &o.results.ep);
}

// As a program that was compiled with a later version: what is unknown here must be zero.
template <typename Attr>
struct Later {
    Attr known{};
    uint64_t unknown = 1;
};

// Whatever bit is set beside those that are allowed.
void add_flags(Cases& cases, const char* call, uint64_t allowed,
               const std::function<int64_t(Objects&, uint64_t)>& run) {
    for (unsigned bit = 0; bit < 64; ++bit) {
        if ((allowed >> bit & 1) == 0) {
            cases.push_back({call, "flag", -EINVAL,
                             [run, bit](Objects& o) { return run(o, uint64_t{1} << bit); }});
        }
    }
}

// Where the library has it.
template <typename Endpoint>
void add_reset_of_a_peer(Cases& cases) {
    if constexpr (requires(Endpoint * ep) { tw_ep_reset_peer(ep, tw_addr{}); }) {
        cases.push_back({"tw_ep_reset_peer", "ep", -EINVAL, [](Objects& o) {
                             return tw_ep_reset_peer(static_cast<Endpoint*>(nullptr), o.peer);
                         }});
    }
}

}  // namespace

Cases worker_cases() {
    return {
        {"tw_worker_open", "attr", -EINVAL,
         [](Objects& o) { return tw_worker_open(nullptr, &o.results.worker); }},
        {"tw_worker_open", "worker", -EINVAL,
         [](Objects&) {
             const tw_worker_attr attr = worker_attributes();
             return tw_worker_open(&attr, nullptr);
         }},
        {"tw_worker_open", "size 0", -EINVAL,
         [](Objects& o) { return open_worker(o, [](tw_worker_attr& a) { a.size = 0; }); }},
        {"tw_worker_open", "size of a later version", -E2BIG,
         [](Objects& o) {
             Later<tw_worker_attr> attr{worker_attributes()};
             attr.known.size = sizeof(attr);
             return tw_worker_open(&attr.known, &o.results.worker);
         }},
        {"tw_worker_open", "no nic and no port", -ENODEV,
         [](Objects& o) { return open_worker(o, [](tw_worker_attr& a) { a.nic = nullptr; }); }},
        {"tw_worker_open", "family", -EINVAL,
         [](Objects& o) {
             return open_worker(o, [](tw_worker_attr& a) { a.address.family = 5; });
         }},
        {"tw_worker_open", "UDP port", -EINVAL,
         [](Objects& o) {
             return open_worker(o, [](tw_worker_attr& a) { a.address.udp_port = 0; });
         }},
        {"tw_worker_open", "mac", -EINVAL,
         [](Objects& o) { return open_worker(o, [](tw_worker_attr& a) { a.mac[5] = 0; }); }},
        {"tw_worker_open", "packet_pool", -EINVAL,
         [](Objects& o) {
             return open_worker(o, [](tw_worker_attr& a) { a.packet_pool = nullptr; });
         }},
        {"tw_worker_open", "max_peers", -EINVAL,
         [](Objects& o) {
             return open_worker(o, [](tw_worker_attr& a) { a.max_peers = UINT32_MAX; });
         }},
        {"tw_worker_open", "max_operations", -EINVAL,
         [](Objects& o) {
             return open_worker(o, [](tw_worker_attr& a) { a.max_operations = UINT32_MAX; });
         }},
        {"tw_worker_open", "what the transport refuses", -EINVAL,
         [](Objects& o) {
             FakeTransport::refuse_creation = true;
             const int result = open_worker(o, [](tw_worker_attr&) {});
             FakeTransport::refuse_creation = false;
             return result;
         }},
        {"tw_worker_close", "worker", -EINVAL, [](Objects&) { return tw_worker_close(nullptr); }},
        {"tw_worker_close", "has children", -EBUSY,
         [](Objects& o) { return tw_worker_close(o.worker); }},
        {"tw_worker_shutdown", "worker", -EINVAL,
         [](Objects&) { return tw_worker_shutdown(nullptr); }},
        {"tw_progress", "worker", -EINVAL, [](Objects&) { return tw_progress(nullptr); }},
        {"tw_worker_input", "worker", 2,
         [](Objects&) {
             rte_mbuf* frames[2] = {};
             return tw_worker_input(nullptr, frames, 2);
         }},
        {"tw_worker_input", "mbufs", 2,
         [](Objects& o) { return tw_worker_input(o.worker, nullptr, 2); }},
        {"tw_worker_stats", "worker", -EINVAL,
         [](Objects& o) { return tw_worker_stats(nullptr, &o.results.stat, 1); }},
        {"tw_worker_stats", "stats", -EINVAL,
         [](Objects& o) { return tw_worker_stats(o.worker, nullptr, 1); }},
        {"tw_worker_stats", "count", -EINVAL,
         [](Objects& o) { return tw_worker_stats(o.worker, &o.results.stat, -1); }},
        {"tw_peer_stats", "ep", -EINVAL,
         [](Objects& o) { return tw_peer_stats(nullptr, o.peer, &o.results.stat, 1); }},
        {"tw_peer_stats", "peer", -EINVAL,
         [](Objects& o) { return tw_peer_stats(o.ep, 9999, &o.results.stat, 1); }},
        {"tw_peer_stats", "stats", -EINVAL,
         [](Objects& o) { return tw_peer_stats(o.ep, o.peer, nullptr, 1); }},
        {"tw_peer_stats", "count", -EINVAL,
         [](Objects& o) { return tw_peer_stats(o.ep, o.peer, &o.results.stat, -1); }},
    };
}

Cases vector_cases() {
    Cases cases = {
        {"tw_address_parse", "text", -EINVAL,
         [](Objects& o) { return tw_address_parse(nullptr, &o.results.address); }},
        {"tw_address_parse", "address", -EINVAL,
         [](Objects&) { return tw_address_parse("10.0.0.1:4791", nullptr); }},
        {"tw_address_format", "address", -EINVAL,
         [](Objects& o) { return tw_address_format(nullptr, o.results.text, 64); }},
        {"tw_address_format", "text", -EINVAL,
         [](Objects&) {
             const tw_address name = address("10.0.0.9:4791");
             return tw_address_format(&name, nullptr, 64);
         }},
        {"tw_address_format", "size", -ENOSPC,
         [](Objects& o) {
             const tw_address name = address("10.0.0.9:4791");
             return tw_address_format(&name, o.results.text, 13);
         }},
        {"tw_address_format", "family", -EINVAL,
         [](Objects& o) {
             const tw_address name = spoiled([](tw_address& a) { a.family = 5; });
             return tw_address_format(&name, o.results.text, 64);
         }},
        {"tw_address_format", "UDP port", -EINVAL,
         [](Objects& o) {
             const tw_address name = spoiled([](tw_address& a) { a.udp_port = 0; });
             return tw_address_format(&name, o.results.text, 64);
         }},
        {"tw_av_open", "worker", -EINVAL,
         [](Objects& o) { return tw_av_open(nullptr, &o.results.av); }},
        {"tw_av_open", "av", -EINVAL, [](Objects& o) { return tw_av_open(o.worker, nullptr); }},
        {"tw_av_close", "av", -EINVAL, [](Objects&) { return tw_av_close(nullptr); }},
        {"tw_av_close", "is bound", -EBUSY, [](Objects& o) { return tw_av_close(o.av); }},
        {"tw_av_lookup", "av", -EINVAL,
         [](Objects& o) { return tw_av_lookup(nullptr, o.peer, &o.results.address); }},
        {"tw_av_lookup", "index", -EINVAL,
         [](Objects& o) { return tw_av_lookup(o.av, 12345, &o.results.address); }},
        {"tw_av_lookup", "TW_ADDR_UNSPEC", -EINVAL,
         [](Objects& o) { return tw_av_lookup(o.av, TW_ADDR_UNSPEC, &o.results.address); }},
        {"tw_av_lookup", "address", -EINVAL,
         [](Objects& o) { return tw_av_lookup(o.av, o.peer, nullptr); }},
        {"tw_av_remove", "av", -EINVAL, [](Objects& o) { return tw_av_remove(nullptr, o.peer); }},
        {"tw_av_remove", "index", -EINVAL, [](Objects& o) { return tw_av_remove(o.av, 12345); }},
        {"tw_av_remove", "the key of bound endpoints", -EBUSY,
         [](Objects& o) { return tw_av_remove(o.av, o.key_index); }},
        {"tw_av_insert_auth_key", "av", -EINVAL,
         [](Objects& o) { return tw_av_insert_auth_key(nullptr, "key", 3, &o.results.index); }},
        {"tw_av_insert_auth_key", "key", -EINVAL,
         [](Objects& o) { return tw_av_insert_auth_key(o.av, nullptr, 3, &o.results.index); }},
        {"tw_av_insert_auth_key", "size 0", -EINVAL,
         [](Objects& o) { return tw_av_insert_auth_key(o.av, "key", 0, &o.results.index); }},
        {"tw_av_insert_auth_key", "size", -EINVAL,
         [](Objects& o) {
             const char key[TW_AUTH_KEY_MAX + 1] = {};
             return tw_av_insert_auth_key(o.av, key, sizeof(key), &o.results.index);
         }},
        {"tw_av_insert_auth_key", "key_index", -EINVAL,
         [](Objects& o) { return tw_av_insert_auth_key(o.av, "key", 3, nullptr); }},
    };
    for (const char* text :
         {"", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:1x", ":4791",
          "10.0.0:4791", "10.0.0.256:4791", "10.0.0.1:4791/", "10.0.0.1:4791/65535",
          "10.0.0.1:4791/-1", "2001:db8::1:4791", "[2001:db8::1:4791", "[2001:db8::g]:4791"}) {
        cases.push_back({"tw_address_parse", text, -EINVAL, [text](Objects& o) {
                             return tw_address_parse(text, &o.results.address);
                         }});
    }
    // Both ways to insert an address check it alike.
    using Insert = int (*)(Objects&, tw_av*, const tw_address*, tw_addr*);
    const auto plain = [](Objects&, tw_av* av, const tw_address* a, tw_addr* index) {
        return tw_av_insert(av, a, index);
    };
    const auto with_key = [](Objects& o, tw_av* av, const tw_address* a, tw_addr* index) {
        return tw_av_insert_with_key(av, a, o.key_index, index);
    };
    for (const auto& [call, insert] :
         {std::pair<const char*, Insert>{"tw_av_insert", plain},
          std::pair<const char*, Insert>{"tw_av_insert_with_key", with_key}}) {
        const auto add = [&, call = call, insert = insert](const char* wrong, int error,
                                                           void (*spoil)(tw_address&)) {
            cases.push_back({call, wrong, -error, [insert, spoil](Objects& o) {
                                 const tw_address name = spoiled(spoil);
                                 return insert(o, o.av, &name, &o.results.index);
                             }});
        };
        add("family", EINVAL, [](tw_address& a) { a.family = 5; });
        add("another family than the worker's", EAFNOSUPPORT, [](tw_address& a) { a.family = 6; });
        add("UDP port", EINVAL, [](tw_address& a) { a.udp_port = 0; });
        add("endpoint", EINVAL, [](tw_address& a) { a.endpoint = TW_EP_ANY; });
        cases.push_back({call, "av", -EINVAL, [insert = insert](Objects& o) {
                             const tw_address name = address("10.0.0.9:4791");
                             return insert(o, nullptr, &name, &o.results.index);
                         }});
        cases.push_back({call, "address", -EINVAL, [insert = insert](Objects& o) {
                             return insert(o, o.av, nullptr, &o.results.index);
                         }});
        cases.push_back({call, "index", -EINVAL, [insert = insert](Objects& o) {
                             const tw_address name = address("10.0.0.9:4791");
                             return insert(o, o.av, &name, nullptr);
                         }});
    }
    cases.push_back({"tw_av_insert_with_key", "key_index", -EINVAL, [](Objects& o) {
                         const tw_address name = address("10.0.0.9:4791");
                         return tw_av_insert_with_key(o.av, &name, o.peer, &o.results.index);
                     }});
    return cases;
}

Cases queue_cases() {
    Cases cases = {
        {"tw_cq_open", "worker", -EINVAL,
         [](Objects& o) { return tw_cq_open(nullptr, nullptr, &o.results.cq); }},
        {"tw_cq_open", "cq", -EINVAL,
         [](Objects& o) { return tw_cq_open(o.worker, nullptr, nullptr); }},
        {"tw_cq_open", "size 0", -EINVAL,
         [](Objects& o) {
             const tw_cq_attr attr{0, 16};
             return tw_cq_open(o.worker, &attr, &o.results.cq);
         }},
        {"tw_cq_open", "size of a later version", -E2BIG,
         [](Objects& o) {
             Later<tw_cq_attr> attr;
             attr.known.size = sizeof(attr);
             return tw_cq_open(o.worker, &attr.known, &o.results.cq);
         }},
        {"tw_cq_open", "entries", -EINVAL,
         [](Objects& o) {
             const tw_cq_attr attr{sizeof(attr), UINT32_MAX};
             return tw_cq_open(o.worker, &attr, &o.results.cq);
         }},
        {"tw_cq_close", "cq", -EINVAL, [](Objects&) { return tw_cq_close(nullptr); }},
        {"tw_cq_close", "is bound", -EBUSY, [](Objects& o) { return tw_cq_close(o.cq); }},
        {"tw_cq_read", "cq", -EINVAL,
         [](Objects& o) { return tw_cq_read(nullptr, &o.results.entry, 1); }},
        {"tw_cq_read", "entries", -EINVAL, [](Objects& o) { return tw_cq_read(o.cq, nullptr, 1); }},
        {"tw_cq_readerr", "cq", -EINVAL,
         [](Objects& o) { return tw_cq_readerr(nullptr, &o.results.error); }},
        {"tw_cq_readerr", "error", -EINVAL,
         [](Objects& o) { return tw_cq_readerr(o.cq, nullptr); }},
        {"tw_cntr_open", "worker", -EINVAL,
         [](Objects& o) { return tw_cntr_open(nullptr, &o.results.cntr); }},
        {"tw_cntr_open", "cntr", -EINVAL,
         [](Objects& o) { return tw_cntr_open(o.worker, nullptr); }},
        {"tw_cntr_close", "cntr", -EINVAL, [](Objects&) { return tw_cntr_close(nullptr); }},
        {"tw_cntr_close", "is bound", -EBUSY, [](Objects& o) { return tw_cntr_close(o.cntr); }},
        {"tw_cntr_add", "cntr", -EINVAL, [](Objects&) { return tw_cntr_add(nullptr, 1); }},
        {"tw_cntr_adderr", "cntr", -EINVAL, [](Objects&) { return tw_cntr_adderr(nullptr, 1); }},
        {"tw_cntr_set", "cntr", -EINVAL, [](Objects&) { return tw_cntr_set(nullptr, 1); }},
        {"tw_cntr_seterr", "cntr", -EINVAL, [](Objects&) { return tw_cntr_seterr(nullptr, 1); }},
        {"tw_cntr_wait", "cntr", -EINVAL, [](Objects&) { return tw_cntr_wait(nullptr, 1, 0); }},
        {"tw_cntr_wait", "what is not reached", -ETIMEDOUT,
         [](Objects& o) { return tw_cntr_wait(o.cntr, UINT64_MAX, 0); }},
    };
    return cases;
}

Cases endpoint_cases() {
    Cases cases = {
        {"tw_ep_open", "worker", -EINVAL,
         [](Objects& o) { return tw_ep_open(nullptr, nullptr, &o.results.ep); }},
        {"tw_ep_open", "ep", -EINVAL,
         [](Objects& o) { return tw_ep_open(o.worker, nullptr, nullptr); }},
        {"tw_ep_open", "size 0", -EINVAL,
         [](Objects& o) { return open_endpoint(o, [](tw_ep_attr& a) { a.size = 0; }); }},
        {"tw_ep_open", "size of a later version", -E2BIG,
         [](Objects& o) {
             Later<tw_ep_attr> attr;
             attr.known.size = sizeof(attr);
             attr.known.endpoint = TW_EP_ANY;
             return tw_ep_open(o.worker, &attr.known, &o.results.ep);
         }},
        {"tw_ep_open", "endpoint in use", -EADDRINUSE,
         [](Objects& o) { return open_endpoint(o, [](tw_ep_attr& a) { a.endpoint = 0; }); }},
        {"tw_ep_open", "two levels", -EINVAL,
         [](Objects& o) {
             return open_endpoint(o, [](tw_ep_attr& a) {
                 a.tx_flags = TW_TRANSMIT_COMPLETE | TW_DELIVERY_COMPLETE;
             });
         }},
        {"tw_ep_open", "key without size", -EINVAL,
         [](Objects& o) { return open_endpoint(o, [](tw_ep_attr& a) { a.auth_key = "key"; }); }},
        {"tw_ep_open", "size without key", -EINVAL,
         [](Objects& o) { return open_endpoint(o, [](tw_ep_attr& a) { a.auth_key_size = 3; }); }},
        {"tw_ep_open", "long key", -EINVAL,
         [](Objects& o) {
             return open_endpoint(o, [](tw_ep_attr& a) {
                 a.auth_key = "key";
                 a.auth_key_size = TW_AUTH_KEY_MAX + 1;
             });
         }},
        {"tw_ep_close", "ep", -EINVAL, [](Objects&) { return tw_ep_close(nullptr); }},
        {"tw_ep_bind_av", "ep", -EINVAL, [](Objects& o) { return tw_ep_bind_av(nullptr, o.av); }},
        {"tw_ep_bind_av", "av", -EINVAL, [](Objects& o) { return tw_ep_bind_av(o.idle, nullptr); }},
        {"tw_ep_bind_av", "another worker's", -EINVAL,
         [](Objects& o) { return tw_ep_bind_av(o.idle, o.other_av); }},
        {"tw_ep_bind_av", "enabled", -TW_EOPBADSTATE,
         [](Objects& o) { return tw_ep_bind_av(o.ep, o.av); }},
        {"tw_ep_bind_cq", "ep", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cq(nullptr, o.cq, TW_SEND); }},
        {"tw_ep_bind_cq", "cq", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cq(o.idle, nullptr, TW_SEND); }},
        {"tw_ep_bind_cq", "another worker's", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cq(o.idle, o.other_cq, TW_SEND); }},
        {"tw_ep_bind_cq", "no direction", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cq(o.idle, o.cq, 0); }},
        {"tw_ep_bind_cq", "no direction, selective", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cq(o.idle, o.cq, TW_SELECTIVE_COMPLETION); }},
        {"tw_ep_bind_cq", "enabled", -TW_EOPBADSTATE,
         [](Objects& o) { return tw_ep_bind_cq(o.ep, o.cq, TW_SEND); }},
        {"tw_ep_bind_cntr", "ep", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cntr(nullptr, o.free_cntr, TW_SEND); }},
        {"tw_ep_bind_cntr", "cntr", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cntr(o.idle, nullptr, TW_SEND); }},
        {"tw_ep_bind_cntr", "another worker's", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cntr(o.idle, o.other_cntr, TW_SEND); }},
        {"tw_ep_bind_cntr", "no direction", -EINVAL,
         [](Objects& o) { return tw_ep_bind_cntr(o.idle, o.free_cntr, 0); }},
        {"tw_ep_bind_cntr", "enabled", -TW_EOPBADSTATE,
         [](Objects& o) { return tw_ep_bind_cntr(o.ep, o.free_cntr, TW_SEND); }},
        {"tw_ep_enable", "ep", -EINVAL, [](Objects&) { return tw_ep_enable(nullptr); }},
        {"tw_ep_enable", "no vector", -TW_ENOAV, [](Objects& o) { return tw_ep_enable(o.idle); }},
        {"tw_ep_enable", "enabled", -TW_EOPBADSTATE, [](Objects& o) { return tw_ep_enable(o.ep); }},
        {"tw_ep_name", "ep", -EINVAL,
         [](Objects& o) { return tw_ep_name(nullptr, &o.results.address); }},
        {"tw_ep_name", "address", -EINVAL, [](Objects& o) { return tw_ep_name(o.ep, nullptr); }},
        {"tw_ep_set_name", "ep", -EINVAL,
         [](Objects&) {
             const tw_address any{};
             return tw_ep_set_name(nullptr, &any);
         }},
        {"tw_ep_set_name", "address", -EINVAL,
         [](Objects& o) { return tw_ep_set_name(o.idle, nullptr); }},
        {"tw_ep_set_name", "another worker's port", -EADDRNOTAVAIL,
         [](Objects& o) {
             tw_address other{};
             other.udp_port = 1;
             return tw_ep_set_name(o.idle, &other);
         }},
        {"tw_ep_set_name", "taken", -EADDRINUSE,
         [](Objects& o) {
             tw_address taken{};
             tw_ep_name(o.ep, &taken);
             return tw_ep_set_name(o.idle, &taken);
         }},
        {"tw_ep_set_name", "enabled", -TW_EOPBADSTATE,
         [](Objects& o) {
             const tw_address any{};
             return tw_ep_set_name(o.ep, &any);
         }},
        {"tw_ep_setopt", "ep", -EINVAL,
         [](Objects&) {
             const size_t value = 1;
             return tw_ep_setopt(nullptr, TW_OPT_MIN_MULTI_RECV, &value, sizeof(value));
         }},
        {"tw_ep_setopt", "option", -EINVAL,
         [](Objects& o) {
             const size_t value = 1;
             return tw_ep_setopt(o.ep, 4711, &value, sizeof(value));
         }},
        {"tw_ep_setopt", "negative option", -EINVAL,
         [](Objects& o) {
             const size_t value = 1;
             return tw_ep_setopt(o.ep, -1, &value, sizeof(value));
         }},
        {"tw_ep_setopt", "value", -EINVAL,
         [](Objects& o) {
             return tw_ep_setopt(o.ep, TW_OPT_MIN_MULTI_RECV, nullptr, sizeof(size_t));
         }},
        {"tw_ep_setopt", "size", -EINVAL,
         [](Objects& o) {
             const size_t value = 1;
             return tw_ep_setopt(o.ep, TW_OPT_MIN_MULTI_RECV, &value, sizeof(value) - 1);
         }},
        {"tw_ep_setopt", "too much", -EINVAL,
         [](Objects& o) {
             const size_t value = size_t{1} << 32;
             return tw_ep_setopt(o.ep, TW_OPT_MIN_MULTI_RECV, &value, sizeof(value));
         }},
        {"tw_ep_setopt", "neither 0 nor 1", -EINVAL,
         [](Objects& o) {
             const size_t value = 2;
             return tw_ep_setopt(o.ep, TW_OPT_WATCH_SOURCES, &value, sizeof(value));
         }},
        {"tw_ep_setopt", "neither 0 nor 1 either", -EINVAL,
         [](Objects& o) {
             const size_t value = 2;
             return tw_ep_setopt(o.ep, TW_OPT_WHOLE_MESSAGES, &value, sizeof(value));
         }},
        {"tw_ep_setopt", "read only", -EOPNOTSUPP,
         [](Objects& o) {
             const size_t value = 1;
             return tw_ep_setopt(o.ep, TW_OPT_INJECT_SIZE, &value, sizeof(value));
         }},
        {"tw_ep_setopt", "read only too", -EOPNOTSUPP,
         [](Objects& o) {
             const size_t value = 1;
             return tw_ep_setopt(o.ep, TW_OPT_MAX_MESSAGE_SIZE, &value, sizeof(value));
         }},
        {"tw_ep_getopt", "ep", -EINVAL,
         [](Objects& o) {
             size_t size = sizeof(size_t);
             return tw_ep_getopt(nullptr, TW_OPT_INJECT_SIZE, &o.results.value, &size);
         }},
        {"tw_ep_getopt", "option", -EINVAL,
         [](Objects& o) {
             size_t size = sizeof(size_t);
             return tw_ep_getopt(o.ep, 4711, &o.results.value, &size);
         }},
        {"tw_ep_getopt", "value", -EINVAL,
         [](Objects& o) {
             size_t size = sizeof(size_t);
             return tw_ep_getopt(o.ep, TW_OPT_INJECT_SIZE, nullptr, &size);
         }},
        {"tw_ep_getopt", "size", -EINVAL,
         [](Objects& o) {
             return tw_ep_getopt(o.ep, TW_OPT_INJECT_SIZE, &o.results.value, nullptr);
         }},
        {"tw_ep_getopt", "too little room", -EINVAL,
         [](Objects& o) {
             size_t size = sizeof(size_t) - 1;
             return tw_ep_getopt(o.ep, TW_OPT_INJECT_SIZE, &o.results.value, &size);
         }},
        {"tw_ep_peer_is_up", "ep", -EINVAL,
         [](Objects& o) { return tw_ep_peer_is_up(nullptr, o.peer); }},
        {"tw_ep_peer_is_up", "unknown peer", -EINVAL,
         [](Objects& o) { return tw_ep_peer_is_up(o.ep, TW_ADDR_UNSPEC); }},
        {"tw_ep_peer_is_up", "not enabled", -TW_EOPBADSTATE,
         [](Objects& o) { return tw_ep_peer_is_up(o.idle, o.peer); }},
        {"tw_cancel", "ep", -EINVAL, [](Objects& o) { return tw_cancel(nullptr, &o); }},
        {"tw_cancel", "context", -ENOENT, [](Objects& o) { return tw_cancel(o.ep, nullptr); }},
        {"tw_cancel", "unknown context", -ENOENT, [](Objects& o) { return tw_cancel(o.ep, &o); }},
        {"tw_cancel", "not enabled", -TW_EOPBADSTATE,
         [](Objects& o) { return tw_cancel(o.idle, &o); }},
    };
    add_reset_of_a_peer<tw_ep>(cases);
    add_flags(cases, "tw_ep_open",
              TW_COMPLETION | TW_INJECT | TW_INJECT_COMPLETE | TW_TRANSMIT_COMPLETE |
                  TW_DELIVERY_COMPLETE | TW_MATCH_COMPLETE,
              [](Objects& o, uint64_t flag) {
                  tw_ep_attr attr{};
                  attr.size = sizeof(attr);
                  attr.endpoint = TW_EP_ANY;
                  attr.tx_flags = flag;
                  return tw_ep_open(o.worker, &attr, &o.results.ep);
              });
    add_flags(cases, "tw_ep_open", TW_COMPLETION | TW_MULTI_RECV, [](Objects& o, uint64_t flag) {
        tw_ep_attr attr{};
        attr.size = sizeof(attr);
        attr.endpoint = TW_EP_ANY;
        attr.rx_flags = flag;
        return tw_ep_open(o.worker, &attr, &o.results.ep);
    });
    add_flags(
        cases, "tw_ep_bind_cq", TW_SEND | TW_RECV | TW_SELECTIVE_COMPLETION,
        [](Objects& o, uint64_t flag) { return tw_ep_bind_cq(o.idle, o.cq, TW_SEND | flag); });
    return cases;
}

Cases wait_cases() {
    return {
        {"tw_cq_sread", "cq", -EINVAL,
         [](Objects& o) { return tw_cq_sread(nullptr, &o.results.entry, 1, 0); }},
        {"tw_cq_sread", "entries", -EINVAL,
         [](Objects& o) { return tw_cq_sread(o.cq, nullptr, 1, 0); }},
        {"tw_cq_signal", "cq", -EINVAL, [](Objects&) { return tw_cq_signal(nullptr); }},
        {"tw_worker_wait_fd", "worker", -EINVAL,
         [](Objects& o) { return tw_worker_wait_fd(nullptr, &o.results.fd); }},
        {"tw_worker_wait_fd", "fd", -EINVAL,
         [](Objects& o) { return tw_worker_wait_fd(o.worker, nullptr); }},
        {"tw_worker_arm", "worker", -EINVAL, [](Objects&) { return tw_worker_arm(nullptr); }},
        {"tw_worker_arm", "no descriptor yet", -EINVAL,
         [](Objects& o) { return tw_worker_arm(o.worker); }},
        {"tw_worker_signal", "worker", -EINVAL, [](Objects&) { return tw_worker_signal(nullptr); }},
        {"tw_wait_open", "worker", -EINVAL,
         [](Objects& o) { return tw_wait_open(nullptr, &o.results.wait); }},
        {"tw_wait_open", "wait", -EINVAL,
         [](Objects& o) { return tw_wait_open(o.worker, nullptr); }},
        {"tw_wait_close", "wait", -EINVAL, [](Objects&) { return tw_wait_close(nullptr); }},
        {"tw_wait_fd", "wait", -EINVAL,
         [](Objects& o) { return tw_wait_fd(nullptr, &o.results.fd); }},
        {"tw_wait_fd", "fd", -EINVAL, [](Objects& o) { return tw_wait_fd(o.wait, nullptr); }},
        {"tw_wait_arm", "wait", -EINVAL, [](Objects&) { return tw_wait_arm(nullptr); }},
        {"tw_wait_signal", "wait", -EINVAL, [](Objects&) { return tw_wait_signal(nullptr); }},
        {"tw_worker_open", "threading", -EINVAL,
         [](Objects& o) { return open_worker(o, [](tw_worker_attr& a) { a.threading = 2; }); }},
        {"tw_worker_open", "probe_ms with a nic", -EINVAL,
         [](Objects& o) { return open_worker(o, [](tw_worker_attr& a) { a.probe_ms = 1; }); }},
    };
}

Cases memory_cases() {
    // The result is that nothing was given.
    const auto alloc = [](size_t size, size_t align, int socket) {
        return [=](Objects&) {
            return static_cast<int64_t>(reinterpret_cast<intptr_t>(tw_alloc(size, align, socket)));
        };
    };
    return {
        {"tw_alloc", "size 0", 0, alloc(0, 0, TW_SOCKET_ANY)},
        {"tw_alloc", "size", 0, alloc(size_t{1} << 40, 0, TW_SOCKET_ANY)},
        {"tw_alloc", "the largest size", 0, alloc(SIZE_MAX, 64, TW_SOCKET_ANY)},
        {"tw_alloc", "align", 0, alloc(64, 48, TW_SOCKET_ANY)},
        {"tw_alloc", "a large align", 0, alloc(64, size_t{1} << 31, TW_SOCKET_ANY)},
        {"tw_alloc", "socket", 0, alloc(64, 0, 77)},
        {"tw_alloc", "negative socket", 0, alloc(64, 0, -2)},
    };
}

}  // namespace tagwire::test
