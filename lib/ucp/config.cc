// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/config.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace {

struct Option {
    const char* name;
    const char* preset;
    const char* text;  // NULL: taken and without effect
};

// Sorted. Options of UCX choose among its transports; there is one here. A program that sets them
// must still start.
constexpr Option kOptions[] = {
    {"ACC_DEVICES", "all", nullptr},
    {"ADAPTIVE_PROGRESS", "y", nullptr},
    {"ADDRESS_DEBUG_INFO", "n", nullptr},
    {"ADDRESS_VERSION", "v1", nullptr},
    {"ALLOC_PRIO", "mmap,heap", nullptr},
    {"ATOMIC_MODE", "guess", nullptr},
    {"BCOPY_BW", "auto", nullptr},
    {"BCOPY_THRESH", "auto", nullptr},
    {"CM_USE_ALL_DEVICES", "y", nullptr},
    {"CONNECT_ALL_TO_ALL", "n", nullptr},
    {"DYNAMIC_TL_PROGRESS_FACTOR", "10", nullptr},
    {"DYNAMIC_TL_SWITCH_INTERVAL", "infq", nullptr},
    {"ESTIMATED_NUM_EPS", "0", nullptr},
    {"ESTIMATED_NUM_PPN", "0", nullptr},
    {"FENCE_MODE", "auto", nullptr},
    {"FLUSH_WORKER_EPS", "y", nullptr},
    {"GVA_ENABLE", "n", nullptr},
    {"GVA_MLOCK", "y", nullptr},
    {"GVA_PREFETCH", "y", nullptr},
    {"IFACE_ESTIMATED_NUM_EPS", "0", nullptr},
    {"KEEPALIVE_INTERVAL", "20s",
     "How often a quiet peer is asked for a sign of life, for endpoints with the error handling "
     "mode UCP_ERR_HANDLING_MODE_PEER: seconds, or with a unit (us, ms, s, m). inf: never"},
    {"KEEPALIVE_NUM_EPS", "128", nullptr},
    {"LISTENER_BACKLOG", "auto", nullptr},
    {"MAX_EAGER_LANES", "1", nullptr},
    {"MAX_EAGER_RAILS", "1", nullptr},
    {"MAX_RMA_LANES", "1", nullptr},
    {"MAX_RMA_RAILS", "1", nullptr},
    {"MAX_RNDV_LANES", "1", nullptr},
    {"MAX_RNDV_RAILS", "1", nullptr},
    {"MAX_WORKER_ADDRESS_NAME", "32", nullptr},
    {"MAX_WORKER_NAME", "32", nullptr},
    {"MEMTYPE_REG_WHOLE_ALLOC_TYPES", "", nullptr},
    {"MIN_RNDV_CHUNK_SIZE", "16k", nullptr},
    {"MULTI_LANE_MAX_RATIO", "4", nullptr},
    {"MULTI_PATH_RATIO", "auto", nullptr},
    {"NET_DEVICES", "all", nullptr},
    {"NUM_EPS", "auto", nullptr},
    {"NUM_PPN", "auto", nullptr},
    {"PREFER_OFFLOAD", "y", nullptr},
    {"PROTOS", "all", nullptr},
    {"PROTO_ENABLE", "n", nullptr},
    {"PROTO_INDIRECT_ID", "auto", nullptr},
    {"PROTO_INFO", "n", nullptr},
    {"PROTO_INFO_DIR", "", nullptr},
    {"PROTO_OVERHEAD", "", nullptr},
    {"PROTO_REQUEST_RESET", "n", nullptr},
    {"RCACHE_ENABLE", "try", nullptr},
    {"REG_NONBLOCK_MEM_TYPES", "", nullptr},
    {"REG_WHOLE_ALLOC_BITMAP", "", nullptr},
    {"RESOLVE_REMOTE_EP_ID", "auto", nullptr},
    {"RKEY_MPOOL_MAX_MD", "2", nullptr},
    {"RKEY_PTR_SEG_SIZE", "512K", nullptr},
    {"RMA_ZCOPY_MAX_SEG_SIZE", "auto", nullptr},
    {"RNDV_ALIGN_THRESH", "64kb", nullptr},
    {"RNDV_FRAG_ALLOC_COUNT", "", nullptr},
    {"RNDV_FRAG_MEM_TYPE", "host", nullptr},
    {"RNDV_FRAG_MEM_TYPES", "host", nullptr},
    {"RNDV_FRAG_SIZE", "", nullptr},
    {"RNDV_MEMTYPE_DIRECT_SIZE", "inf", nullptr},
    {"RNDV_PERF_DIFF", "1", nullptr},
    {"RNDV_PIPELINE_ERROR_HANDLING", "n", nullptr},
    {"RNDV_PIPELINE_SEND_THRESH", "inf", nullptr},
    {"RNDV_PIPELINE_SHM_ENABLE", "y", nullptr},
    {"RNDV_PUT_FORCE_FLUSH", "n", nullptr},
    {"RNDV_SCHEME", "auto", nullptr},
    {"RNDV_SEND_NBR_THRESH", "256K", nullptr},
    {"RNDV_THRESH", "auto",
     "Bytes of data from which on an active message offers its data, and sends it when the "
     "receiver "
     "asks. auto: 8192"},
    {"RNDV_THRESH_FALLBACK", "inf", nullptr},
    {"RX_MPOOL_SIZES", "64,1kb", nullptr},
    {"SA_DATA_VERSION", "v2", nullptr},
    {"SEG_SIZE", "8256", nullptr},
    {"SELECT_DISTANCE_MD", "cuda_cpy", nullptr},
    {"SELF_DEVICES", "all", nullptr},
    {"SHM_DEVICES", "all", nullptr},
    {"SOCKADDR_AUX_TLS", "", nullptr},
    {"SOCKADDR_CM_ENABLE", "y", nullptr},
    {"SOCKADDR_TLS_PRIORITY", "tagwire", nullptr},
    {"TLS", "all", nullptr},
    {"TM_FORCE_THRESH", "8K", nullptr},
    {"TM_MAX_BB_SIZE", "1K", nullptr},
    {"TM_SW_RNDV", "n", nullptr},
    {"TM_THRESH", "1K", nullptr},
    {"UNIFIED_MODE", "n", nullptr},
    {"USE_MT_MUTEX", "n", nullptr},
    {"WARN_INVALID_CONFIG", "y", nullptr},
    {"WORKER_ADDR_VERSION", "v1", nullptr},
    {"ZCOPY_THRESH", "auto", nullptr},
};

const Option* find(const char* name) {
    const auto* found = std::lower_bound(
        std::begin(kOptions), std::end(kOptions), name,
        [](const Option& option, const char* key) { return std::strcmp(option.name, key) < 0; });
    return found != std::end(kOptions) && std::strcmp(found->name, name) == 0 ? found : nullptr;
}

constexpr size_t kOfferThreshold = 8192;

// "8192", "8k", "1mb", "inf", "auto"; `otherwise` for what is none of them.
size_t bytes_of(const std::string& text, size_t otherwise) {
    if (text == "inf") {
        return SIZE_MAX;
    }
    char* end;
    size_t value = std::strtoull(text.c_str(), &end, 10);
    if (end == text.c_str()) {
        return otherwise;
    }
    switch (*end | 0x20) {
        case 'k':
            return value << 10;
        case 'm':
            return value << 20;
        case 'g':
            return value << 30;
        default:
            return value;
    }
}

// "20s", "500ms", "inf". Seconds without a unit.
std::chrono::nanoseconds time_of(const std::string& text) {
    constexpr auto kNever = std::chrono::nanoseconds::max();
    char* end;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || !(value > 0)) {
        return kNever;
    }
    const std::string unit = end;
    const double ns = value * (unit == "us" ? 1e3 : unit == "ms" ? 1e6 : unit == "m" ? 60e9 : 1e9);
    return ns < 9e18 ? std::chrono::nanoseconds(static_cast<int64_t>(ns)) : kNever;
}

}  // namespace

ucp_config ucp_config::from_environment(const char* prefix) {
    ucp_config config;
    for (const Option& option : kOptions) {
        config.values[option.name] = option.preset;
        const std::string name = std::string("UCX_") + option.name;
        const std::string prefixed =
            prefix != nullptr && *prefix != '\0' ? std::string(prefix) + "_" + name : name;
        for (const std::string& variable : {name, prefixed}) {
            if (const char* value = std::getenv(variable.c_str()); value != nullptr) {
                config.values[option.name] = value;
            }
        }
    }
    return config;
}

size_t ucp_config::offer_threshold() const {
    return bytes_of(values.at("RNDV_THRESH"), kOfferThreshold);
}

std::chrono::nanoseconds ucp_config::keepalive_interval() const {
    return time_of(values.at("KEEPALIVE_INTERVAL"));
}

ucs_status_t ucp_config_read(const char* env_prefix, const char* /* unused in UCX too */,
                             ucp_config_t** config) {
    *config = new (std::nothrow) ucp_config(ucp_config::from_environment(env_prefix));
    return *config == nullptr ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void ucp_config_release(ucp_config_t* config) {
    delete config;
}

ucs_status_t ucp_config_modify(ucp_config_t* config, const char* name, const char* value) {
    if (find(name) == nullptr) {
        return UCS_ERR_NO_ELEM;
    }
    config->values[name] = value;
    return UCS_OK;
}

void ucp_config_print(const ucp_config_t* config, FILE* stream, const char* title,
                      ucs_config_print_flags_t flags) {
    if ((flags & UCS_CONFIG_PRINT_HEADER) != 0) {
        std::fprintf(stream, "#\n# %s\n#\n\n", title);
    }
    if ((flags & UCS_CONFIG_PRINT_CONFIG) == 0) {
        return;
    }
    for (const auto& [name, value] : config->values) {
        const Option* option = find(name.c_str());
        if ((flags & UCS_CONFIG_PRINT_DOC) != 0) {
            std::fprintf(
                stream, "#\n# %s\n#\n",
                option->text != nullptr ? option->text : "Taken, and without effect in Tagwire.");
        }
        const bool comment =
            (flags & UCS_CONFIG_PRINT_COMMENT_DEFAULT) != 0 && value == option->preset;
        std::fprintf(stream, "%sUCX_%s=%s\n", comment ? "# " : "", name.c_str(), value.c_str());
    }
}
