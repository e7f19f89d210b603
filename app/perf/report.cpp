// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "failure.h"

namespace tagwire::perf {
namespace {

std::string cell(const Json& value) {
    if (value.is_number_float()) {
        const auto number = value.get<double>();
        return number < 10 ? fmt::format("{:.3f}", number) : fmt::format("{:.2f}", number);
    }
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string aligned(const std::string& text, int width) {
    return width == 0 ? "  " + text : fmt::format("{:>{}}", text, width);
}

}  // namespace

Report::Report(std::string json_target)
    : json_target_(std::move(json_target)), text_(json_target_ == "-" ? stderr : stdout) {
    document_ = Json{{"program", "tagwire-perf"}, {"version", TAGWIRE_VERSION}};
    document_["results"] = Json::array();
}

void Report::say(const std::string& line) const {
    fmt::print(text_, "{}\n", line);
    std::fflush(text_);
}

void Report::set_path(const port::PortPath& path) {
    document_["path"] = {{"driver", path.driver}, {"port", path.port},     {"device", path.device},
                         {"wire", path.wire},     {"memory", path.memory}, {"mac", path.mac},
                         {"mtu", path.mtu},       {"link", path.link}};
    say(fmt::format("path: driver {}, port {}, device {}, wire: {}", path.driver, path.port,
                    path.device, path.wire));
    say(fmt::format("      {}, MTU {}, link {}, MAC {}", path.memory, path.mtu, path.link,
                    path.mac));
}

void Report::begin_table(std::vector<Column> columns) {
    columns_ = std::move(columns);
    std::string line;
    for (const Column& column : columns_) {
        line += aligned(column.title, column.width);
    }
    say(line);
}

void Report::add_row(Json row) {
    std::string line;
    for (const Column& column : columns_) {
        line += aligned(row.contains(column.key) ? cell(row[column.key]) : "-", column.width);
    }
    if (row.value("partial", false)) {
        line += "  (partial)";
    }
    say(line);
    document_["results"].push_back(std::move(row));
}

void Report::fail(const std::string& what, const std::string& remedy) {
    document_["error"] = {{"message", what}, {"remedy", remedy}};
}

void Report::finish(bool complete) {
    document_["complete"] = complete;
    if (json_target_.empty()) {
        return;
    }
    const std::string text = document_.dump(2, ' ', false, Json::error_handler_t::replace);
    if (json_target_ == "-") {
        std::cout << text << std::endl;
        return;
    }
    std::ofstream file(json_target_);
    file << text << "\n";
    file.close();
    if (!file) {
        throw Failure("cannot write the JSON results to " + json_target_,
                      "check that its folder exists and is writable");
    }
}

}  // namespace tagwire::perf
