// SPDX-License-Identifier: BSD-3-Clause
// Calls of connected endpoints with each argument wrong in turn.
#include "test/tagwire/argument_cases.h"
#include "test/tagwire/core_fixture.h"

#if __has_include(<tagwire/connect.h>)
#include <tagwire/connect.h>

namespace tagwire::test {

Cases connect_cases() {
    return {
        {"tw_eq_open", "worker", -EINVAL,
         [](Objects&) {
             tw_eq* eq = nullptr;
             return tw_eq_open(nullptr, nullptr, &eq);
         }},
        {"tw_eq_open", "eq", -EINVAL,
         [](Objects& o) { return tw_eq_open(o.worker, nullptr, nullptr); }},
        {"tw_eq_open", "size 0", -EINVAL,
         [](Objects& o) {
             const tw_eq_attr attr{};
             tw_eq* eq = nullptr;
             return tw_eq_open(o.worker, &attr, &eq);
         }},
        {"tw_eq_close", "eq", -EINVAL, [](Objects&) { return tw_eq_close(nullptr); }},
        {"tw_eq_read", "eq", -EINVAL,
         [](Objects&) {
             tw_eq_entry entry;
             return tw_eq_read(nullptr, &entry, 0);
         }},
        {"tw_eq_sread", "eq", -EINVAL,
         [](Objects&) {
             tw_eq_entry entry;
             return tw_eq_sread(nullptr, &entry, 0, 0);
         }},
        {"tw_eq_readerr", "eq", -EINVAL,
         [](Objects&) {
             tw_eq_error error;
             return tw_eq_readerr(nullptr, &error);
         }},
        {"tw_pep_open", "worker", -EINVAL,
         [](Objects&) {
             tw_pep_attr attr{};
             attr.size = sizeof(attr);
             tw_pep* pep = nullptr;
             return tw_pep_open(nullptr, &attr, &pep);
         }},
        {"tw_pep_open", "attr", -EINVAL,
         [](Objects& o) {
             tw_pep* pep = nullptr;
             return tw_pep_open(o.worker, nullptr, &pep);
         }},
        {"tw_pep_open", "pep", -EINVAL,
         [](Objects& o) {
             tw_pep_attr attr{};
             attr.size = sizeof(attr);
             return tw_pep_open(o.worker, &attr, nullptr);
         }},
        {"tw_pep_open", "no event queue", -EINVAL,
         [](Objects& o) {
             tw_pep_attr attr{};
             attr.size = sizeof(attr);
             attr.endpoint = TW_EP_ANY;
             tw_pep* pep = nullptr;
             return tw_pep_open(o.worker, &attr, &pep);
         }},
        {"tw_pep_close", "pep", -EINVAL, [](Objects&) { return tw_pep_close(nullptr); }},
        {"tw_pep_name", "pep", -EINVAL,
         [](Objects& o) { return tw_pep_name(nullptr, &o.results.address); }},
        {"tw_listen", "pep", -EINVAL, [](Objects&) { return tw_listen(nullptr); }},
        {"tw_reject", "pep", -EINVAL,
         [](Objects&) { return tw_reject(nullptr, nullptr, nullptr, 0); }},
        {"tw_ep_bind_eq", "ep", -EINVAL, [](Objects&) { return tw_ep_bind_eq(nullptr, nullptr); }},
        {"tw_ep_bind_eq", "eq", -EINVAL, [](Objects& o) { return tw_ep_bind_eq(o.idle, nullptr); }},
        {"tw_ep_bind_receiver", "ep", -EINVAL,
         [](Objects& o) { return tw_ep_bind_receiver(nullptr, o.ep); }},
        {"tw_ep_bind_receiver", "receiver", -EINVAL,
         [](Objects& o) { return tw_ep_bind_receiver(o.idle, nullptr); }},
        {"tw_ep_bind_receiver", "connectionless", -EINVAL,
         [](Objects& o) { return tw_ep_bind_receiver(o.idle, o.ep); }},
        {"tw_ep_bind_receiver", "enabled", -TW_EOPBADSTATE,
         [](Objects& o) { return tw_ep_bind_receiver(o.ep, o.idle); }},
        {"tw_connect", "ep", -EINVAL,
         [](Objects&) {
             const tw_address name = address("10.0.0.9:4791");
             return tw_connect(nullptr, &name, nullptr, 0);
         }},
        {"tw_connect", "address", -EINVAL,
         [](Objects& o) { return tw_connect(o.ep, nullptr, nullptr, 0); }},
        {"tw_connect", "connectionless", -EOPNOTSUPP,
         [](Objects& o) {
             const tw_address name = address("10.0.0.9:4791");
             return tw_connect(o.ep, &name, nullptr, 0);
         }},
        {"tw_accept", "ep", -EINVAL, [](Objects&) { return tw_accept(nullptr, nullptr, 0); }},
        {"tw_accept", "connectionless", -EOPNOTSUPP,
         [](Objects& o) { return tw_accept(o.ep, nullptr, 0); }},
        {"tw_shutdown", "ep", -EINVAL, [](Objects&) { return tw_shutdown(nullptr, 0); }},
        {"tw_shutdown", "flags", -EINVAL, [](Objects& o) { return tw_shutdown(o.ep, 1); }},
        {"tw_shutdown", "connectionless", -EOPNOTSUPP,
         [](Objects& o) { return tw_shutdown(o.ep, 0); }},
        {"tw_getpeer", "ep", -EINVAL,
         [](Objects& o) { return tw_getpeer(nullptr, &o.results.address); }},
        {"tw_getpeer", "address", -EINVAL, [](Objects& o) { return tw_getpeer(o.ep, nullptr); }},
        {"tw_getpeer", "connectionless", -EOPNOTSUPP,
         [](Objects& o) { return tw_getpeer(o.ep, &o.results.address); }},
    };
}

}  // namespace tagwire::test
#else
tagwire::test::Cases tagwire::test::connect_cases() {
    return {};
}
#endif
