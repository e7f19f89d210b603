// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/misspelling.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/port/settings.h"

namespace tagwire::port {
namespace {

constexpr std::string_view kPrefix = "TAGWIRE_";
constexpr size_t kLeastPart = 4;  // of a name that was cut short

// Letters that are missing, are too many, differ, or have changed places with their neighbours.
size_t distance(std::string_view left, std::string_view right) {
    std::vector<std::vector<size_t>> rows(left.size() + 1, std::vector<size_t>(right.size() + 1));
    for (size_t i = 0; i <= left.size(); ++i) {
        for (size_t j = 0; j <= right.size(); ++j) {
            if (i == 0 || j == 0) {
                rows[i][j] = i + j;
                continue;
            }
            const size_t differs = left[i - 1] == right[j - 1] ? 0 : 1;
            size_t& best = rows[i][j];
            best = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + differs});
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
                best = std::min(best, rows[i - 2][j - 2] + 1);
            }
        }
    }
    return rows.back().back();
}

}  // namespace

std::string meant_variable(std::string_view name) {
    std::string meant;
    size_t least = 3;  // two mistakes at most, and in short names one
    for (const Variable& variable : variables()) {
        const std::string_view known = variable.name;
        if (name == known) {
            return {};
        }
        const bool cut = name.size() >= kLeastPart && known.starts_with(name);
        const size_t mistakes = cut ? 1 : distance(name, known);
        if (mistakes < least && 2 * mistakes < known.size()) {
            least = mistakes;
            meant = known;
        }
    }
    return meant;
}

std::vector<std::string> misspelt_variables(const char* const* environment) {
    std::vector<std::string> lines;
    for (; *environment != nullptr; ++environment) {
        std::string_view name(*environment);
        name = name.substr(0, name.find('='));
        if (!name.starts_with(kPrefix)) {
            continue;
        }
        name.remove_prefix(kPrefix.size());
        if (const std::string meant = meant_variable(name); !meant.empty()) {
            lines.push_back(
                fmt::format("{0}{1} has no effect: is {0}{2} meant?", kPrefix, name, meant));
        }
    }
    return lines;
}

}  // namespace tagwire::port
