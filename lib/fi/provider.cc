// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/provider.h"

#include <tagwire/types.h>

#include <cctype>
#include <cstdlib>
#include <string>

#include "lib/fi/fabric.h"
#include "lib/fi/info.h"
#include "lib/fi/refusal.h"

namespace tagwire::fi {
namespace {

std::string parameter_name(const char* name) {
    std::string lower(name);
    for (char& letter : lower) {
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return lower;
}

void cleanup() {}

}  // namespace

fi_provider provider = {
    .version = FI_VERSION(0, 1),
    .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
    .context = {},
    .name = "tagwire",
    .getinfo = get_info,
    .fabric = open_fabric,
    .cleanup = cleanup,
};

port::Settings read_settings() {
    return port::Settings::from([](const char* name) -> const char* {
        char* value = nullptr;
        if (fi_param_get_str(&provider, parameter_name(name).c_str(), &value) == 0) {
            return value;
        }
        return std::getenv((std::string("TAGWIRE_") + name).c_str());
    });
}

int log_failure(const char* what, int result) {
    FI_WARN(&provider, FI_LOG_CORE, "%s: %s (%s)\n", what, tw_strerror(result),
            in_libfabric_words(tw_last_error()).c_str());
    return result;
}

}  // namespace tagwire::fi

extern "C" FI_EXT_INI {
    using namespace tagwire;
    // The version of the library that loads us: a newer one ignores providers of older ones.
    fi::provider.fi_version = fi_version();
    for (const port::Variable& variable : port::variables()) {
        fi_param_define(&fi::provider, fi::parameter_name(variable.name).c_str(), FI_PARAM_STRING,
                        "%s", variable.help);
    }
    return &fi::provider;
}
