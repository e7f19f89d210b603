// SPDX-License-Identifier: BSD-3-Clause
// Names of the forwarding modes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "app/perf/failure.h"
#include "options.h"

namespace tagwire::testpmd {
namespace {

constexpr std::array kPlain = {
    std::pair{"io", PlainMode::kIo},
    std::pair{"mac", PlainMode::kMac},
    std::pair{"rxonly", PlainMode::kRxonly},
    std::pair{"txonly", PlainMode::kTxonly},
};
constexpr std::array kTag = {
    std::pair{"tagecho", TagMode::kEcho},
    std::pair{"taggen", TagMode::kGenerate},
    std::pair{"tagsink", TagMode::kSink},
};

template <typename Table>
std::vector<std::string> names(const Table& table) {
    std::vector<std::string> list;
    for (const auto& [name, mode] : table) {
        list.emplace_back(name);
    }
    return list;
}

template <typename Table, typename Mode>
bool find(const Table& table, const std::string& text, Mode* mode) {
    for (const auto& [name, value] : table) {
        if (text == name) {
            *mode = value;
            return true;
        }
    }
    return false;
}

template <typename Table, typename Mode>
const char* name_in(const Table& table, Mode mode) {
    for (const auto& [name, value] : table) {
        if (mode == value) {
            return name;
        }
    }
    return "none";
}

}  // namespace

const char* name_of(PlainMode mode) {
    return name_in(kPlain, mode);
}

const char* name_of(TagMode mode) {
    return name_in(kTag, mode);
}

std::vector<std::string> plain_mode_names() {
    return names(kPlain);
}

std::vector<std::string> tag_mode_names() {
    return names(kTag);
}

std::string ForwardMode::name() const {
    return tag == TagMode::kNone ? name_of(plain)
                                 : fmt::format("{},{}", name_of(tag), name_of(plain));
}

ForwardMode parse_forward_mode(const std::string& text) {
    ForwardMode mode;
    const size_t comma = text.find(',');
    const std::string first = text.substr(0, comma);
    if (comma == std::string::npos && find(kPlain, first, &mode.plain)) {
        return mode;
    }
    if (find(kTag, first, &mode.tag)) {
        // Two that send a stray frame back at each other would do so for ever.
        mode.plain = PlainMode::kRxonly;
        if (comma == std::string::npos || find(kPlain, text.substr(comma + 1), &mode.plain)) {
            return mode;
        }
    }
    throw perf::Failure(
        fmt::format("Invalid {} packet forwarding mode", text),
        fmt::format("modes: {}; {}, alone or with one of the former: tagecho,mac",
                    fmt::join(plain_mode_names(), ", "), fmt::join(tag_mode_names(), ", ")));
}

}  // namespace tagwire::testpmd
