// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/switch_segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "drivers/softcx/log.h"

namespace softcx {

namespace {

constexpr uint64_t kDataOffset = (sizeof(SwitchLayout) + 4095) & ~uint64_t{4095};
constexpr uint64_t kSegmentSize = kDataOffset + kSwitchPorts * kSwitchPorts * kSwitchRingSize;

// Locks behind the end of the file, the same in every version of the layout.
constexpr off_t kUseByte = off_t{1} << 48;
constexpr off_t kPortByte = kUseByte + 1;

bool set_lock(int fd, short type, off_t byte) noexcept {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

std::string system_error(const std::string& what) {
    return what + ": " + std::strerror(errno);
}

bool is_valid_name(std::string_view name) {
    constexpr std::string_view kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return !name.empty() && name.size() <= 64 &&
           name.find_first_not_of(kAllowed) == std::string_view::npos;
}

// Ports come and go one at a time.
class FileLock {
  public:
    explicit FileLock(int fd) noexcept : fd_(fd) {
        while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
        }
    }
    ~FileLock() { flock(fd_, LOCK_UN); }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

  private:
    int fd_;
};

bool same_file(int fd, const std::string& path) noexcept {
    struct stat opened {};
    struct stat named {};
    return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

constexpr const char* kFolder = "/dev/shm";
constexpr std::string_view kPrefix = "softcx-";

// Removes the switch at `path` if every process that used it was killed. Whoever
// opens it at this moment finds under the lock that the file is another, and tries again.
void remove_if_stale(const std::string& path) noexcept {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    struct stat status {};
    uint64_t magic = 0;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) && magic == SwitchLayout::kMagic &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
        if (set_lock(fd, F_WRLCK, kUseByte) && same_file(fd, path) && unlink(path.c_str()) == 0)
            log(LogLevel::kInfo, "removed %s, which killed processes left behind", path.c_str());
    }
    close(fd);
}

// Killed processes cannot tidy up: the next one that opens any switch does.
void sweep_stale_segments() noexcept {
    DIR* folder = opendir(kFolder);
    if (folder == nullptr)
        return;
    while (const dirent* entry = readdir(folder)) {
        if (std::string_view(entry->d_name).starts_with(kPrefix))
            remove_if_stale(std::string(kFolder) + "/" + entry->d_name);
    }
    closedir(folder);
}

}  // namespace

std::unique_ptr<SwitchSegment> SwitchSegment::attach(const std::string& name, std::string* error) {
    if (!is_valid_name(name)) {
        *error =
            "bad switch name '" + name + "': use letters, digits, '.', '_' and '-', at most 64";
        return nullptr;
    }
    sweep_stale_segments();
    std::unique_ptr<SwitchSegment> segment(new SwitchSegment);
    const std::string path = std::string(kFolder) + "/" + std::string(kPrefix) + name;
    for (;;) {
        if (!segment->open_file(path, error))
            return nullptr;
        const FileLock guard(segment->fd_);
        if (!same_file(segment->fd_, path)) {
            // The last port of an earlier life unlinked it in between. The lock goes
            // with the file.
            continue;
        }
        // Nobody uses it: new, or left behind by processes that died.
        const bool unused = set_lock(segment->fd_, F_WRLCK, kUseByte);
        if (!(unused ? segment->initialise(error) : segment->check_version(error)) ||
            !segment->map(error) || !segment->take_port(error))
            return nullptr;
        return segment;
    }
}

bool SwitchSegment::open_file(const std::string& path, std::string* error) {
    if (fd_ >= 0)
        close(fd_);
    path_ = path;
    process_ = getpid();
    fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0)
        *error = system_error("cannot open " + path);
    return fd_ >= 0;
}

bool SwitchSegment::initialise(std::string* error) {
    if (ftruncate(fd_, 0) != 0 || ftruncate(fd_, static_cast<off_t>(kSegmentSize)) != 0) {
        *error = system_error("cannot size " + path_);
        return false;
    }
    // Reserved now, so that a full /dev/shm is an error here and not a signal later.
    if (const int full = posix_fallocate(fd_, 0, static_cast<off_t>(kDataOffset)); full != 0) {
        *error = "no room in /dev/shm for a switch of " + std::to_string(kDataOffset >> 10) +
                 " KiB: " + std::strerror(full) +
                 "; enlarge it, as with mount -o remount,size=1g "
                 "/dev/shm or docker run --shm-size=1g";
        unlink(path_.c_str());
        return false;
    }
    return true;
}

bool SwitchSegment::check_version(std::string* error) const {
    struct Head {
        uint64_t magic;
        uint32_t version;
        uint32_t ports;
    } head{};
    static_assert(offsetof(SwitchLayout, version) == offsetof(Head, version));
    struct stat status {};
    if (pread(fd_, &head, sizeof(head), 0) != sizeof(head) || head.magic != SwitchLayout::kMagic ||
        fstat(fd_, &status) != 0) {
        *error = path_ + " is in use and is not a softcx switch: choose another name";
        return false;
    }
    if (head.version != SwitchLayout::kVersion || head.ports != kSwitchPorts ||
        static_cast<uint64_t>(status.st_size) != kSegmentSize) {
        *error = path_ + " is in use by another version of softcx (layout " +
                 std::to_string(head.version) + ", this is " +
                 std::to_string(SwitchLayout::kVersion) + "): choose another name";
        return false;
    }
    return true;
}

bool SwitchSegment::map(std::string* error) {
    void* memory =
        mmap(nullptr, kSegmentSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (memory == MAP_FAILED) {
        *error = system_error("cannot map " + path_);
        return false;
    }
    // Zero bytes are the initial value of every field.
    layout_ = static_cast<SwitchLayout*>(memory);
    if (layout_->magic.load(std::memory_order_acquire) != SwitchLayout::kMagic) {
        layout_->version = SwitchLayout::kVersion;
        layout_->ports = kSwitchPorts;
        layout_->ring_size = kSwitchRingSize;
        layout_->magic.store(SwitchLayout::kMagic, std::memory_order_release);
    }
    return true;
}

bool SwitchSegment::take_port(std::string* error) {
    // From write to read lock: others may join.
    if (!set_lock(fd_, F_RDLCK, kUseByte)) {
        *error = system_error("cannot lock " + path_);
        return false;
    }
    const uint64_t active = layout_->active.load(std::memory_order_acquire);
    for (uint32_t port = 0; port < kSwitchPorts; ++port) {
        if (!set_lock(fd_, F_WRLCK, kPortByte + port))
            continue;
        if ((active >> port & 1) != 0)
            release_port(port);  // its process died
        port_ = port;
        // What was sent to the port's last owner is not for this one.
        for (uint32_t source = 0; source < kSwitchPorts; ++source)
            open_consumer(source).discard();
        layout_->port[port].tail_drops.store(0, std::memory_order_relaxed);
        layout_->port[port].owner.store(static_cast<uint32_t>(process_), std::memory_order_relaxed);
        layout_->active.fetch_or(uint64_t{1} << port, std::memory_order_release);
        return true;
    }
    *error = "all " + std::to_string(kSwitchPorts) + " ports of " + path_ +
             " are in use: end a program that has one, give each job a switch of its own "
             "(another name), or start fewer processes";
    return false;
}

SwitchSegment::~SwitchSegment() {
    if (fd_ >= 0 && getpid() == process_) {
        const FileLock guard(fd_);
        if (port_ < kSwitchPorts) {
            release_port(port_);
            set_lock(fd_, F_UNLCK, kPortByte + port_);
        }
        // The last one out removes the file. Nobody else does: under the lock each tells the next
        // that it no longer uses it.
        if (set_lock(fd_, F_WRLCK, kUseByte) && same_file(fd_, path_))
            unlink(path_.c_str());
        set_lock(fd_, F_UNLCK, kUseByte);
    }
    if (layout_ != nullptr)
        munmap(layout_, kSegmentSize);
    if (fd_ >= 0)
        close(fd_);
}

void SwitchSegment::release_port(uint32_t port) noexcept {
    layout_->active.fetch_and(~(uint64_t{1} << port), std::memory_order_release);
    layout_->fdb.forget_port(port);
}

bool SwitchSegment::is_dead(uint32_t port) const noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = kPortByte + port;
    lock.l_len = 1;
    return fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void SwitchSegment::reclaim_dead_ports() noexcept {
    for (uint64_t left = others(); left != 0; left &= left - 1) {
        const auto port = static_cast<uint32_t>(std::countr_zero(left));
        if (!is_dead(port))
            continue;
        if (flock(fd_, LOCK_EX | LOCK_NB) != 0)
            return;  // somebody comes or goes: at the next look
        // Under the lock once more: the port may have a new owner.
        if (is_dead(port)) {
            log(LogLevel::kInfo, "switch %s: port %u, process %u is gone", path_.c_str(), port,
                layout_->port[port].owner.load(std::memory_order_relaxed));
            release_port(port);
        }
        flock(fd_, LOCK_UN);
    }
}

uint8_t* SwitchSegment::ring_data(uint32_t source, uint32_t destination) noexcept {
    return reinterpret_cast<uint8_t*>(layout_) + kDataOffset +
           (uint64_t{source} * kSwitchPorts + destination) * kSwitchRingSize;
}

FrameProducer SwitchSegment::open_producer(uint32_t destination) noexcept {
    uint8_t* data = ring_data(port_, destination);
    const auto offset = static_cast<off_t>(data - reinterpret_cast<uint8_t*>(layout_));
    int status;
    do {
        status = fallocate(fd_, 0, offset, static_cast<off_t>(kSwitchRingSize));
    } while (status != 0 && errno == EINTR);
    if (status != 0) {
        log(LogLevel::kError, "no room in /dev/shm for a ring of the switch (%s): enlarge it",
            std::strerror(errno));
        return {};
    }
    layout_->port[destination].sources.fetch_or(uint64_t{1} << port_, std::memory_order_release);
    return {&layout_->ring[port_][destination], data, kSwitchRingSize};
}

FrameConsumer SwitchSegment::open_consumer(uint32_t source) noexcept {
    return {&layout_->ring[source][port_], ring_data(source, port_), kSwitchRingSize};
}

}  // namespace softcx
