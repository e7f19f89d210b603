// SPDX-License-Identifier: BSD-3-Clause
// The results: rows printed as they come, and one JSON document at the end.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "lib/port/port.h"

namespace tagwire::perf {

using Json = nlohmann::ordered_json;

class Report {
  public:
    struct Column {
        std::string key;    // in the JSON row
        std::string title;  // over the column
        int width;          // right-aligned; 0: left-aligned, for the last one
    };

    // json_target: "" none, "-" standard output (text for people then goes to standard error).
    explicit Report(std::string json_target);

    // A line for people.
    void say(const std::string& line) const;
    void set(const std::string& key, Json value) { document_[key] = std::move(value); }
    void set_path(const port::PortPath& path);

    void begin_table(std::vector<Column> columns);
    void add_row(Json row);  // partial results carry "partial": true

    void fail(const std::string& what, const std::string& remedy);
    // Writes the JSON document; `complete` is false after an error or an interrupt.
    void finish(bool complete);

  private:
    std::string json_target_;
    std::FILE* text_;
    std::vector<Column> columns_;
    Json document_;
};

}  // namespace tagwire::perf
