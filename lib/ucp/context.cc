// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/context.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "lib/ucp/config.h"
#include "lib/ucp/fabric.h"
#include "lib/ucp/log.h"
#include "lib/ucp/request.h"

namespace tagwire::ucp {
namespace {

constexpr uint64_t kFeatures = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 |
                               UCP_FEATURE_AMO64 | UCP_FEATURE_WAKEUP | UCP_FEATURE_STREAM |
                               UCP_FEATURE_AM;

void take_params(Context& context, const ucp_params_t& params) {
    const auto given = [&](uint64_t field) { return (params.field_mask & field) != 0; };
    context.features = given(UCP_PARAM_FIELD_FEATURES) ? params.features : 0;
    context.request_size = given(UCP_PARAM_FIELD_REQUEST_SIZE) ? params.request_size : 0;
    context.request_init = given(UCP_PARAM_FIELD_REQUEST_INIT) ? params.request_init : nullptr;
    context.request_cleanup =
        given(UCP_PARAM_FIELD_REQUEST_CLEANUP) ? params.request_cleanup : nullptr;
    context.shared_by_threads =
        given(UCP_PARAM_FIELD_MT_WORKERS_SHARED) && params.mt_workers_shared != 0;
    context.expected_endpoints =
        given(UCP_PARAM_FIELD_ESTIMATED_NUM_EPS) ? params.estimated_num_eps : 0;
    if (given(UCP_PARAM_FIELD_NAME)) {
        context.name = params.name;
    } else {
        static std::atomic<unsigned> count;
        context.name = "tagwire_" + std::to_string(getpid()) + "_" + std::to_string(count++);
    }
}

}  // namespace
}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_t ucp_lib_query(ucp_lib_attr_t* attr) {
    if ((attr->field_mask & UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL) != 0) {
        attr->max_thread_level = UCS_THREAD_MODE_MULTI;
    }
    return UCS_OK;
}

void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
    *major = UCP_API_MAJOR;
    *minor = UCP_API_MINOR;
    *release = 0;
}

#define TAGWIRE_TEXT_OF(number) #number
#define TAGWIRE_TEXT(number) TAGWIRE_TEXT_OF(number)

const char* ucp_get_version_string(void) {
    return TAGWIRE_TEXT(UCP_API_MAJOR) "." TAGWIRE_TEXT(UCP_API_MINOR) ".0";
}

ucs_status_t ucp_init_version(unsigned api_major, unsigned api_minor, const ucp_params_t* params,
                              const ucp_config_t* config, ucp_context_h* context_p) {
    if (api_major != UCP_API_MAJOR || api_minor > UCP_API_MINOR) {
        log_warning("the program was built for UCP %u.%u, this library has %d.%d", api_major,
                    api_minor, UCP_API_MAJOR, UCP_API_MINOR);
    }
    if ((params->field_mask & UCP_PARAM_FIELD_FEATURES) != 0 &&
        (params->features & ~kFeatures) != 0) {
        return UCS_ERR_INVALID_PARAM;
    }
    auto* context = new (std::nothrow) ucp_context;
    if (context == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    take_params(*context, *params);
    const ucp_config settings = config != nullptr ? *config : ucp_config::from_environment("");
    context->offer_threshold = settings.offer_threshold();
    context->keepalive_interval = settings.keepalive_interval();
    *context_p = context;
    return UCS_OK;
}

void ucp_cleanup(ucp_context_h context) {
    delete context;
}

ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t* attr) {
    if ((attr->field_mask & UCP_ATTR_FIELD_REQUEST_SIZE) != 0) {
        attr->request_size = sizeof(Request);
    }
    if ((attr->field_mask & UCP_ATTR_FIELD_THREAD_MODE) != 0) {
        attr->thread_mode =
            context->shared_by_threads ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE;
    }
    if ((attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) != 0) {
        attr->memory_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    }
    if ((attr->field_mask & UCP_ATTR_FIELD_NAME) != 0) {
        std::snprintf(attr->name, sizeof(attr->name), "%s", context->name.c_str());
    }
    return UCS_OK;
}

// In the form of UCX, which programs read to learn what they run on.
void ucp_context_print_info(const ucp_context_h context, FILE* stream) {
    std::fprintf(stream, "#\n# UCP context\n#\n");
    std::fprintf(stream, "#     component 0  :  tagwire\n");
    std::fprintf(stream, "#            md 0  :  component 0  tagwire \n#\n");
    std::fprintf(stream, "#      resource 0  :  md 0  dev 0  flags -- tagwire/%s\n#\n",
                 fabric().device_name().c_str());
    std::fprintf(stream, "# memory: host, context: %s\n#\n", context->name.c_str());
}
