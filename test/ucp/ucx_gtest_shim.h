// SPDX-License-Identifier: BSD-3-Clause
// Read before each file of UCX's own gtest (scripts/ucx-gtest.sh). Those tests come with UCX's
// internal headers, and some look into its structures, which a worker or endpoint of another
// library does not have. Here the looks that merely choose sizes or skip a transport are
// answered from what lib/ucp documents; tests that judge the insides are left out by name
// (test/ucp/ucx-gtest-expected.txt).
#pragma once

extern "C" {
#include <ucp/api/ucp.h>
#include <ucp/core/ucp_am.h>
#include <ucp/core/ucp_ep.h>
#include <ucp/core/ucp_ep.inl>
#include <ucp/core/ucp_mm.h>
#include <ucp/core/ucp_request.h>
#include <ucp/core/ucp_request.inl>
#include <ucp/core/ucp_resource.h>
#include <ucp/core/ucp_types.h>
#include <ucp/core/ucp_worker.h>
#include <ucp/core/ucp_worker.inl>
#include <ucp/dt/dt.inl>
#include <ucp/tag/tag_match.h>
#include <ucs/datastruct/mpool.inl>
}

#include <cstddef>

namespace tagwire_shim {

// Endpoints have no lanes; an eager active message holds 8192 bytes (doc/ucp.md).
inline ucp_ep_config_t* endpoint_config() {
    static ucp_ep_config_t config = [] {
        ucp_ep_config_t made{};
        made.am.max_bcopy = 8192;
        made.key.tag_lane = UCP_NULL_LANE;
        return made;
    }();
    return &config;
}

inline const uct_md_attr_t* memory_domain() {
    static const uct_md_attr_t attributes = [] {
        uct_md_attr_t made{};
        made.cap.max_alloc = SIZE_MAX;
        made.cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        return made;
    }();
    return &attributes;
}

// Names of ucp_dt_type's classes, in the names of cases.
inline const char** datatype_names() {
    static const char* names[UCP_DATATYPE_CLASS_MASK + 1] = {};
    names[UCP_DATATYPE_CONTIG] = "contiguous";
    names[UCP_DATATYPE_STRIDED] = "strided";
    names[UCP_DATATYPE_IOV] = "iov";
    names[UCP_DATATYPE_GENERIC] = "generic";
    return names;
}

// A look at the queue of unexpected messages, the public way.
inline bool none_unexpected(const ucp_tag_match_t* matching) {
    const char* worker = reinterpret_cast<const char*>(matching) - offsetof(ucp_worker_t, tm);
    ucp_tag_recv_info_t info;
    return ucp_tag_probe_nb(reinterpret_cast<ucp_worker_h>(const_cast<char*>(worker)), 0, 0, 0,
                            &info) == nullptr;
}

}  // namespace tagwire_shim

#define ucp_datatype_class_names tagwire_shim::datatype_names()
#define ucp_ep_config(_ep) ((void)(_ep), tagwire_shim::endpoint_config())
#define ucp_ep_num_lanes(_ep) ((void)(_ep), 1)
#define ucp_ep_md_attr(_ep, _lane) ((void)(_ep), (void)(_lane), tagwire_shim::memory_domain())
#define ucp_ep_config_rndv_zcopy_commit(_lanes, _config) ((void)(_config))
#define ucp_ep_tag_offload_min_rndv_thresh(_config) ((void)(_config), size_t{0})
#define ucp_context_find_tl_md(_context, _name) ((void)(_context), (uct_md_h) nullptr)
#define ucp_config_modify_internal ucp_config_modify
#define ucp_tag_unexp_is_empty(_matching) tagwire_shim::none_unexpected(_matching)
