// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/uverbs/files.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "drivers/softcx/log.h"
#include "drivers/softcx/model/machine.h"

namespace softcx {

namespace {

constexpr int kMaxDescriptors = 65536;

enum class FileKind : uint8_t { kNone, kDevice, kEvents, kParents };

// Looked at on every close and ioctl of the process: one byte per descriptor.
std::array<std::atomic<FileKind>, kMaxDescriptors> kinds;

struct OpenFile {
    std::shared_ptr<Context> context;  // of a device file
    Context* event_context = nullptr;  // of an event file
    uint32_t channel = 0;
    uint32_t device_index = 0;
    dev_t device = 0;
    ino_t inode = 0;
};

struct Table {
    std::mutex mutex;
    std::map<int, OpenFile> files;
};

Table* table = nullptr;
Table* abandoned = nullptr;

// A child has its parent's descriptors, but the devices behind them work for the
// parent only.
void after_fork_in_child() {
    abandoned = table;
    table = new Table;
    for (const auto& [fd, file] : abandoned->files)
        kinds[fd].store(file.context ? FileKind::kParents : FileKind::kNone,
                        std::memory_order_relaxed);
}

Table& files() {
    static const bool ready = [] {
        table = new Table;
        ::pthread_atfork(nullptr, nullptr, after_fork_in_child);
        return true;
    }();
    (void)ready;
    return *table;
}

// Not fstat: in this library that is the one that asks us.
bool status_of(int fd, struct ::stat& status) {
    return ::syscall(SYS_fstat, fd, &status) == 0;
}

// The descriptor may have been replaced (dup2) behind our back.
bool same_file(int fd, const OpenFile& file) {
    struct ::stat status;
    return status_of(fd, status) && status.st_dev == file.device && status.st_ino == file.inode;
}

int make_sparse_file(int flags) {
    const int fd = ::memfd_create("uverbs", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
    if (fd < 0)
        return -errno;
    const off_t size = off_t{kFirstUarPage + kMaxUarPages} * ::getpagesize();
    if (fd >= kMaxDescriptors || ::ftruncate(fd, size) != 0) {
        const int error = fd >= kMaxDescriptors ? EMFILE : errno;
        ::close(fd);
        return -error;
    }
    return fd;
}

// Another descriptor stands for the same open file.
bool is_shared(const Table& open_files, const OpenFile& file) {
    return std::any_of(open_files.files.begin(), open_files.files.end(), [&](const auto& entry) {
        const OpenFile& other = entry.second;
        return file.context
                   ? other.context == file.context
                   : file.event_context != nullptr && other.event_context == file.event_context &&
                         other.channel == file.channel;
    });
}

void release(const OpenFile& file) {
    if (file.context) {
        const std::lock_guard lock(file.context->device.mutex);
        tear_down(*file.context);
        return;
    }
    if (file.event_context == nullptr)
        return;
    Device& device = file.event_context->device;
    const std::lock_guard lock(device.mutex);
    const auto found = device.channels.find(file.channel);
    if (found == device.channels.end())
        return;
    // CQs may outlive their channel's descriptor; it goes with the context then.
    if (found->second->use_count == 0) {
        std::erase(file.event_context->channels, file.channel);
        device.channels.erase(found);
    }
}

}  // namespace

bool may_be_ours(int fd) noexcept {
    return fd >= 0 && fd < kMaxDescriptors &&
           kinds[fd].load(std::memory_order_relaxed) != FileKind::kNone;
}

int open_device_file(uint32_t index, int flags) {
    Machine& owner = machine();
    if (index >= owner.devices.size())
        return -ENOENT;
    Device& device = *owner.devices[index];
    if (!start_device(device))
        return -EIO;
    const int fd = make_sparse_file(flags);
    if (fd < 0)
        return fd;
    struct ::stat status;
    if (!status_of(fd, status)) {
        ::close(fd);
        return -EIO;
    }
    OpenFile file;
    file.context = std::make_shared<Context>(device);
    file.context->clock = ClockPages::map(fd, static_cast<size_t>(::getpagesize()));
    if (!file.context->clock) {
        ::close(fd);
        return -ENOMEM;
    }
    file.device_index = index;
    file.device = status.st_dev;
    file.inode = status.st_ino;
    {
        const std::lock_guard lock(device.mutex);
        device.contexts.push_back(file.context.get());
    }
    OpenFile stale;
    {
        Table& open_files = files();
        const std::lock_guard lock(open_files.mutex);
        stale = std::exchange(open_files.files[fd], std::move(file));
        kinds[fd].store(FileKind::kDevice, std::memory_order_relaxed);
    }
    release(stale);
    return fd;
}

std::shared_ptr<Context> context_of(int fd) {
    if (!may_be_ours(fd))
        return nullptr;
    Table& open_files = files();
    const std::lock_guard lock(open_files.mutex);
    const auto found = open_files.files.find(fd);
    if (found == open_files.files.end() || !found->second.context || !same_file(fd, found->second))
        return nullptr;
    return found->second.context;
}

void describe_device_node(uint32_t index, struct ::stat& status) {
    status.st_mode = S_IFCHR | 0666;
    status.st_nlink = 1;
    status.st_uid = 0;
    status.st_gid = 0;
    status.st_rdev = makedev(kUverbsMajor, kUverbsFirstMinor + index);
    status.st_size = 0;
    status.st_blocks = 0;
}

bool describe_device_file(int fd, struct ::stat& status) {
    Table& open_files = files();
    const std::lock_guard lock(open_files.mutex);
    for (Table* searched : {&open_files, abandoned}) {
        if (searched == nullptr)
            continue;
        const auto found = searched->files.find(fd);
        if (found == searched->files.end() || !found->second.context ||
            found->second.device != status.st_dev || found->second.inode != status.st_ino)
            continue;
        describe_device_node(found->second.device_index, status);
        return true;
    }
    return false;
}

void remember_event_file(int fd, Context& context, uint32_t channel) {
    if (fd >= kMaxDescriptors)
        return;
    OpenFile file;
    file.event_context = &context;
    file.channel = channel;
    Table& open_files = files();
    const std::lock_guard lock(open_files.mutex);
    open_files.files[fd] = std::move(file);
    kinds[fd].store(FileKind::kEvents, std::memory_order_relaxed);
}

std::optional<uint32_t> channel_of(int fd, const Context& context) {
    if (!may_be_ours(fd))
        return std::nullopt;
    Table& open_files = files();
    const std::lock_guard lock(open_files.mutex);
    const auto found = open_files.files.find(fd);
    if (found == open_files.files.end() || found->second.event_context != &context)
        return std::nullopt;
    return found->second.channel;
}

void share_file(int fd, int copy) {
    if (copy < 0 || copy >= kMaxDescriptors)
        return;
    Table& open_files = files();
    const std::lock_guard lock(open_files.mutex);
    const auto found = open_files.files.find(fd);
    if (found == open_files.files.end())
        return;
    open_files.files[copy] = found->second;
    kinds[copy].store(kinds[fd].load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void forget_file(int fd) {
    OpenFile file;
    {
        Table& open_files = files();
        const std::lock_guard lock(open_files.mutex);
        kinds[fd].store(FileKind::kNone, std::memory_order_relaxed);
        const auto found = open_files.files.find(fd);
        if (found == open_files.files.end())
            return;
        file = std::move(found->second);
        open_files.files.erase(found);
        if (is_shared(open_files, file))
            return;
        // The event files of a context go with it.
        if (file.context)
            std::erase_if(open_files.files, [&](const auto& entry) {
                const bool gone = entry.second.event_context == file.context.get();
                if (gone)
                    kinds[entry.first].store(FileKind::kNone, std::memory_order_relaxed);
                return gone;
            });
    }
    release(file);
}

}  // namespace softcx
