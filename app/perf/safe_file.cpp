// SPDX-License-Identifier: BSD-3-Clause
#include "safe_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"
#include "file_list.h"

namespace tagwire::perf {
namespace {

Failure failed(const std::string& what, const std::string& name) {
    return Failure(fmt::format("cannot {} {}: {}", what, name, std::strerror(errno)),
                   "check --dir: it has to be a writable folder with enough room");
}

// One step down, created if needed. O_NOFOLLOW: a link is not a folder of ours.
UniqueFd enter(const UniqueFd& parent, const std::string& part, const std::string& name) {
    if (mkdirat(parent.get(), part.c_str(), 0777) != 0 && errno != EEXIST) {
        throw failed("create a folder for", name);
    }
    UniqueFd folder(
        openat(parent.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) {
        throw failed("enter the folder of", name);
    }
    return folder;
}

}  // namespace

SafeFile::SafeFile(const std::string& directory, const std::string& name, unsigned int mode)
    : name_(name), folder_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (!folder_) {
        throw failed("enter the folder", directory);
    }
    if (!is_safe_name(name)) {
        throw Failure(fmt::format("refused the file name '{}'", name),
                      "names are relative, without '..' and control characters");
    }
    size_t start = 0;
    for (size_t slash = 0; (slash = name.find('/', start)) != std::string::npos;
         start = slash + 1) {
        folder_ = enter(folder_, name.substr(start, slash - start), name);
    }
    leaf_ = name.substr(start);
    temporary_ = fmt::format(".{}.{}.part", leaf_, getpid());
    file_ = UniqueFd(openat(folder_.get(), temporary_.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777));
    if (!file_) {
        throw failed("create", name);
    }
}

SafeFile::~SafeFile() {
    if (file_ && !committed_) {
        unlinkat(folder_.get(), temporary_.c_str(), 0);
    }
}

void SafeFile::write(const std::byte* data, size_t length) {
    for (size_t done = 0; done < length;) {
        const ssize_t count = ::write(file_.get(), data + done, length - done);
        if (count < 0 && errno != EINTR) {
            throw failed("write", name_);
        }
        done += count > 0 ? static_cast<size_t>(count) : 0;
    }
}

void SafeFile::commit() {
    struct stat status {};
    if (fstatat(folder_.get(), leaf_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        throw failed("replace", name_);
    }
    if (renameat(folder_.get(), temporary_.c_str(), folder_.get(), leaf_.c_str()) != 0) {
        throw failed("rename", name_);
    }
    committed_ = true;
}

}  // namespace tagwire::perf
