// SPDX-License-Identifier: BSD-3-Clause
// Calls that UCX has had since 1.14 to 1.18: built where its headers have them.
#include <ucp/api/ucp.h>

#include "lib/ucp/endpoint.h"

#if UCP_API_VERSION >= UCP_VERSION(1, 18)

#include <string>

#include "lib/ucp/fabric.h"
#include "lib/ucp/memory.h"
#include "lib/ucp/payload.h"

void tagwire::ucp::query_newer(const Endpoint& endpoint, ucp_ep_attr_t* attr) {
    if ((attr->field_mask & UCP_EP_ATTR_FIELD_USER_DATA) != 0) {
        attr->user_data = endpoint.user_data();
    }
    if ((attr->field_mask & UCP_EP_ATTR_FIELD_TRANSPORTS) == 0) {
        return;
    }
    // Entries have the size that the program was built with.
    ucp_transports_t& transports = attr->transports;
    const bool fits =
        transports.num_entries != 0 && transports.entry_size >= sizeof(ucp_transport_entry_t);
    if (fits) {
        static const std::string device = fabric().device_name();
        transports.entries[0].transport_name = "tagwire";
        transports.entries[0].device_name = device.c_str();
    }
    transports.num_entries = fits ? 1 : 0;
}

ucs_status_t ucp_memh_pack(ucp_mem_h memory, const ucp_memh_pack_params_t* params, void** buffer,
                           size_t* size) {
    const bool exports = (params->field_mask & UCP_MEMH_PACK_PARAM_FIELD_FLAGS) != 0 &&
                         (params->flags & UCP_MEMH_PACK_FLAG_EXPORT) != 0;
    // Exporting lets another process map the memory, which takes a card's help.
    return exports ? UCS_ERR_UNSUPPORTED : ucp_rkey_pack(nullptr, memory, buffer, size);
}

void ucp_memh_buffer_release(void* buffer, const ucp_memh_buffer_release_params_t* /* params */) {
    ucp_rkey_buffer_release(buffer);
}

ucs_status_t ucp_rkey_compare(ucp_worker_h /* worker */, ucp_rkey_h first, ucp_rkey_h second,
                              const ucp_rkey_compare_params_t* params, int* result) {
    if (params->field_mask != 0) {
        return UCS_ERR_INVALID_PARAM;
    }
    *result = first->key < second->key ? -1 : first->key > second->key ? 1 : 0;
    return UCS_OK;
}

ucs_status_t ucp_dt_query(ucp_datatype_t datatype, ucp_datatype_attr_t* attr) {
    if ((attr->field_mask & UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE) == 0) {
        return UCS_OK;
    }
    const void* buffer =
        (attr->field_mask & UCP_DATATYPE_ATTR_FIELD_BUFFER) != 0 ? attr->buffer : nullptr;
    const size_t count = (attr->field_mask & UCP_DATATYPE_ATTR_FIELD_COUNT) != 0 ? attr->count : 1;
    switch (datatype & UCP_DATATYPE_CLASS_MASK) {
        case UCP_DATATYPE_CONTIG:
            attr->packed_size = (datatype >> UCP_DATATYPE_SHIFT) * count;
            return UCS_OK;
        case UCP_DATATYPE_IOV: {
            if (buffer == nullptr) {
                return UCS_ERR_INVALID_PARAM;
            }
            attr->packed_size = 0;
            for (size_t i = 0; i < count; ++i) {
                attr->packed_size += static_cast<const ucp_dt_iov_t*>(buffer)[i].length;
            }
            return UCS_OK;
        }
        case UCP_DATATYPE_GENERIC: {
            const auto* type = reinterpret_cast<const tagwire::ucp::GenericType*>(
                datatype & ~uint64_t{UCP_DATATYPE_CLASS_MASK});
            void* state = type->ops.start_pack(type->context, buffer, count);
            attr->packed_size = type->ops.packed_size(state);
            type->ops.finish(state);
            return UCS_OK;
        }
        default:
            return UCS_ERR_INVALID_PARAM;
    }
}

#else

void tagwire::ucp::query_newer(const Endpoint& /* endpoint */, ucp_ep_attr_t* /* attr */) {}

#endif
