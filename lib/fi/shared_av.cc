// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/shared_av.h"

#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace tagwire::fi {
namespace {

constexpr const char* kFolder = "/dev/shm";

std::string prefix() {
    return "tagwire-av-" + std::to_string(geteuid()) + "-";
}

// Files whose writer was killed: their lock is free.
void remove_stale() {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored)) {
        if (!entry.path().filename().string().starts_with(prefix())) {
            continue;
        }
        const int fd = open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            unlink(entry.path().c_str());
        }
        if (fd >= 0) {
            close(fd);
        }
    }
}

}  // namespace

int SharedTable::open(const std::string& name, bool read_only,
                      std::unique_ptr<SharedTable>* opened) {
    std::string file = name;
    std::replace(file.begin(), file.end(), '/', '_');
    if (!read_only) {
        remove_stale();
    }
    std::unique_ptr<SharedTable> table(new SharedTable);
    table->read_only_ = read_only;
    table->path_ = std::string(kFolder) + "/" + prefix() + file;
    table->fd_ = ::open(table->path_.c_str(),
                        (read_only ? O_RDONLY : O_RDWR | O_CREAT) | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (table->fd_ < 0) {
        return -errno;
    }
    if (!read_only && flock(table->fd_, LOCK_EX | LOCK_NB) != 0) {
        table->read_only_ = true;  // it is the other one's to remove
        return -FI_EADDRINUSE;
    }
    if (!read_only && ftruncate(table->fd_, sizeof(Layout)) != 0) {
        return -errno;
    }
    void* memory = mmap(nullptr, sizeof(Layout), read_only ? PROT_READ : PROT_READ | PROT_WRITE,
                        MAP_SHARED, table->fd_, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    table->layout_ = static_cast<Layout*>(memory);
    *opened = std::move(table);
    return 0;
}

SharedTable::~SharedTable() {
    if (layout_ != nullptr) {
        munmap(layout_, sizeof(Layout));
    }
    if (fd_ >= 0) {
        if (!read_only_) {
            unlink(path_.c_str());
        }
        close(fd_);
    }
}

bool SharedTable::append(const sockaddr_in& name, fi_addr_t address) {
    const size_t index = count();
    if (index == kCapacity) {
        return false;
    }
    layout_->names[index] = name;
    layout_->addresses[index] = address;
    layout_->count.store(index + 1, std::memory_order_release);
    return true;
}

}  // namespace tagwire::fi
