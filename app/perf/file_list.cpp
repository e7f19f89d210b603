// SPDX-License-Identifier: BSD-3-Clause
#include "file_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "failure.h"

namespace tagwire::perf {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestPart = 200;  // leaves room for the temporary file's suffix

void add_file(const fs::path& path, const std::string& name, std::vector<SourceFile>& files) {
    std::error_code error;
    const uint64_t size = fs::file_size(path, error);
    if (error) {
        throw Failure(fmt::format("cannot read {}: {}", path.string(), error.message()));
    }
    files.push_back({path.string(), name, size});
}

void add_folder(const fs::path& folder, std::vector<SourceFile>& files) {
    const fs::path base = fs::weakly_canonical(folder).filename();
    std::error_code error;
    fs::recursive_directory_iterator walk(folder, error);
    const size_t first = files.size();
    for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
        if (fs::is_regular_file(walk->path())) {
            add_file(walk->path(), (base / walk->path().lexically_relative(folder)).string(),
                     files);
        }
    }
    if (error) {
        throw Failure(
            fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end(),
              [](const SourceFile& a, const SourceFile& b) { return a.name < b.name; });
}

}  // namespace

std::vector<SourceFile> list_files(const std::vector<std::string>& paths) {
    std::vector<SourceFile> files;
    for (const std::string& text : paths) {
        const fs::path path(text);
        std::error_code error;
        const fs::file_status status = fs::status(path, error);
        if (fs::is_directory(status)) {
            add_folder(path, files);
        } else if (fs::is_regular_file(status)) {
            add_file(path, path.filename().string(), files);
        } else {
            throw Failure(fs::exists(status)
                              ? fmt::format("{} is neither a file nor a folder", text)
                              : fmt::format("cannot read {}: {}", text, std::strerror(ENOENT)),
                          "check the path", ExitCode::kUsage);
        }
    }
    for (const SourceFile& file : files) {
        if (!is_safe_name(file.name)) {
            throw Failure(fmt::format("the name of {} cannot be sent", file.path),
                          "a name has no control characters and at most 200 bytes in each part");
        }
    }
    return files;
}

bool is_safe_name(const std::string& name) {
    if (name.empty() || name.size() > 4096 || name.front() == '/' || name.back() == '/') {
        return false;
    }
    if (std::any_of(name.begin(), name.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
        return false;
    }
    for (size_t start = 0; start <= name.size();) {
        const size_t end = std::min(name.find('/', start), name.size());
        const std::string part = name.substr(start, end - start);
        if (part.empty() || part == "." || part == ".." || part.size() > kLongestPart) {
            return false;
        }
        start = end + 1;
    }
    return true;
}

}  // namespace tagwire::perf
