// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/faults.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace softcx {

namespace {

constexpr uint32_t kMostHeld = 4096;
constexpr uint64_t kLongestDelay = 10'000'000'000;  // ten seconds
constexpr uint64_t kFastest = 1'000'000'000'000;    // a terabit per second

struct Unit {
    std::string_view name;
    uint64_t factor;
};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
constexpr Unit kRates[] = {{"", 1}, {"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}};

bool read_probability(std::string_view text, double& value) {
    const auto [stop, error] = std::from_chars(text.begin(), text.end(), value);
    return error == std::errc{} && stop == text.end() && value >= 0 && value <= 1;
}

template <typename T>
bool read_number(std::string_view text, T& value, T most) {
    const auto [stop, error] = std::from_chars(text.begin(), text.end(), value);
    return error == std::errc{} && stop == text.end() && value <= most;
}

template <size_t N>
bool read_scaled(std::string_view text, const Unit (&units)[N], uint64_t most, uint64_t& value) {
    uint64_t number = 0;
    const auto [stop, error] = std::from_chars(text.begin(), text.end(), number);
    if (error != std::errc{})
        return false;
    const std::string_view name(stop, static_cast<size_t>(text.end() - stop));
    for (const Unit& unit : units) {
        if (unit.name != name || number > most / unit.factor)
            continue;
        value = number * unit.factor;
        return true;
    }
    return false;
}

// The remedy, or nullptr.
const char* read_one(std::string_view name, std::string_view value, FaultPlan& plan) {
    constexpr const char* kProbability = "use a probability from 0 to 1";
    if (name == "loss")
        return read_probability(value, plan.loss) ? nullptr : kProbability;
    if (name == "dup")
        return read_probability(value, plan.duplication) ? nullptr : kProbability;
    if (name == "corrupt")
        return read_probability(value, plan.corruption) ? nullptr : kProbability;
    if (name == "reorder")
        return read_number(value, plan.reorder, kMostHeld) ? nullptr
                                                           : "use a number of frames, up to 4096";
    if (name == "queue")
        return read_number(value, plan.queue, kMostHeld) && plan.queue != 0
                   ? nullptr
                   : "use a number of frames from 1 to 4096";
    if (name == "delay")
        return read_scaled(value, kTimes, kLongestDelay, plan.delay)
                   ? nullptr
                   : "use a time such as 50us, up to 10s";
    if (name == "rate")
        return read_scaled(value, kRates, kFastest, plan.rate) && plan.rate != 0
                   ? nullptr
                   : "use bits per second, such as 100M or 10G";
    if (name == "seed")
        return read_number(value, plan.seed, ~uint64_t{0}) ? nullptr : "use a number";
    return "no such fault: use loss, dup, corrupt, reorder, delay, rate, queue, seed";
}

}  // namespace

bool parse_faults(const std::string& text, FaultPlan& plan, std::string& error) {
    std::string_view left = text;
    while (!left.empty()) {
        const std::string_view item = left.substr(0, left.find(','));
        left.remove_prefix(std::min(item.size() + 1, left.size()));
        const size_t equals = item.find('=');
        const std::string_view value =
            equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
        if (const char* remedy = read_one(item.substr(0, equals), value, plan)) {
            error.clear();
            error.append(1, '\'').append(item).append("': ").append(remedy);
            return false;
        }
    }
    return true;
}

}  // namespace softcx
