// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/pcap_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "drivers/softcx/log.h"
#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {

namespace {

constexpr uint32_t kMicroseconds = 0xa1b2c3d4, kNanoseconds = 0xa1b23c4d;
constexpr uint32_t kNextGeneration = 0x0a0d0d0a;  // the first block of a pcapng file
constexpr uint32_t kEthernet = 1;                 // LINKTYPE_ETHERNET
constexpr uint32_t kFcsPresent = 0x04000000;
constexpr uint32_t kMostCaptured = 262144;  // no tool writes longer records
constexpr size_t kBuffer = 64 * 1024;  // to begin with

constexpr uint32_t swapped(uint32_t value) {
    return __builtin_bswap32(value);
}

bool file_status(int fd, struct stat& status) noexcept {
    return ::fstat(fd, &status) == 0;
}

}  // namespace

PcapReader::PcapReader(int fd) : fd_(fd), buffer_(kBuffer) {}

PcapReader::~PcapReader() {
    ::close(fd_);
}

std::unique_ptr<PcapReader> PcapReader::open(const std::string& path, std::string* error) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *error = path + ": " + std::strerror(errno);
        return nullptr;
    }
    struct stat status;
    if (!file_status(fd, status) || !S_ISREG(status.st_mode)) {
        ::close(fd);
        *error = path + " is no regular file: a device can't wait for a pipe";
        return nullptr;
    }
    return adopt(fd, path, error);
}

std::unique_ptr<PcapReader> PcapReader::adopt(int fd, const std::string& path, std::string* error) {
    std::unique_ptr<PcapReader> made(new PcapReader(fd));
    return made->read_header(path, error) ? std::move(made) : nullptr;
}

bool PcapReader::read_header(const std::string& path, std::string* error) {
    const uint8_t* bytes = need(sizeof(PcapFileHeader));
    PcapFileHeader header{};
    if (bytes != nullptr)
        std::memcpy(&header, bytes, sizeof(header));
    if (header.magic == kNextGeneration) {
        *error = path +
                 " is a pcapng file: convert it, as with tcpdump -r FILE -w FILE.pcap or "
                 "editcap -F pcap";
        return false;
    }
    swapped_ = header.magic == swapped(kMicroseconds) || header.magic == swapped(kNanoseconds);
    if (!swapped_ && header.magic != kMicroseconds && header.magic != kNanoseconds) {
        *error = path + " is no capture file: pcap is wanted, as tcpdump -w writes it";
        return false;
    }
    const uint32_t link_type = in_host_order(header.link_type);
    if ((link_type & 0xffff) != kEthernet) {
        *error = path + " was not captured on Ethernet (link type " +
                 std::to_string(link_type & 0xffff) + "): capture on an Ethernet device";
        return false;
    }
    fcs_bytes_ = (link_type & kFcsPresent) != 0 ? (link_type >> 28) * 2 : 0;
    begin_ += sizeof(header);
    return true;
}

// `bytes` of the file in one piece; nullptr when it ends before.
const uint8_t* PcapReader::need(uint32_t bytes) noexcept {
    if (end_ - begin_ < bytes) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        if (buffer_.size() < bytes)
            buffer_.resize(bytes);
        while (end_ < bytes) {
            const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0)
                return nullptr;
            end_ += static_cast<size_t>(got);
        }
    }
    return buffer_.data() + begin_;
}

PcapReader::Record PcapReader::next() noexcept {
    const uint8_t* at = need(sizeof(PcapRecordHeader));
    if (at == nullptr)
        return begin_ == end_ ? Record::kEnd : Record::kBroken;
    PcapRecordHeader header;
    std::memcpy(&header, at, sizeof(header));
    const uint32_t captured = in_host_order(header.captured);
    if (captured > kMostCaptured)
        return Record::kBroken;
    at = need(sizeof(header) + captured);
    if (at == nullptr)
        return Record::kBroken;
    begin_ += sizeof(header) + captured;
    if (captured < in_host_order(header.original))
        return Record::kTruncated;
    if (captured > kMaxFrame + fcs_bytes_)
        return Record::kTooLong;
    frame_ = {at + sizeof(header), captured - std::min(captured, fcs_bytes_)};
    return Record::kFrame;
}

void PcapReader::rewind() noexcept {
    ::lseek(fd_, sizeof(PcapFileHeader), SEEK_SET);
    begin_ = end_ = 0;
}

bool PcapReader::is_same_file(int fd) const noexcept {
    struct stat mine, other;
    return file_status(fd_, mine) && file_status(fd, other) && mine.st_dev == other.st_dev &&
           mine.st_ino == other.st_ino;
}

PcapWriter::PcapWriter(int fd, std::string path)
    : fd_(fd), path_(std::move(path)), buffer_(kBuffer) {
    PcapFileHeader header{};
    header.magic = kMicroseconds;
    header.major = 2;
    header.minor = 4;
    header.snap_length = kMostCaptured;
    header.link_type = kEthernet;
    std::memcpy(buffer_.data(), &header, sizeof(header));
    used_ = sizeof(header);
}

PcapWriter::~PcapWriter() {
    flush();
    ::close(fd_);
}

std::unique_ptr<PcapWriter> PcapWriter::create(const std::string& path, std::string* error) {
    // Emptied below, when it is known to be no other file that is in use.
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    struct stat status;
    if (fd < 0) {
        *error = path + ": " + std::strerror(errno);
        return nullptr;
    }
    if (!file_status(fd, status) || !S_ISREG(status.st_mode)) {
        ::close(fd);
        *error = path + " is no regular file: a device can't wait for a pipe";
        return nullptr;
    }
    return std::unique_ptr<PcapWriter>(new PcapWriter(fd, path));
}

uint32_t PcapWriter::write(std::span<const Wire::Piece> pieces, uint32_t total) noexcept {
    const size_t bytes = sizeof(PcapRecordHeader) + total;
    const uint32_t lost = used_ + bytes > buffer_.size() ? flush() : 0;
    if (failed_)
        return lost + 1;
    timespec now;
    ::clock_gettime(CLOCK_REALTIME, &now);
    const PcapRecordHeader header{static_cast<uint32_t>(now.tv_sec),
                                  static_cast<uint32_t>(now.tv_nsec / 1000), total, total};
    std::memcpy(buffer_.data() + used_, &header, sizeof(header));
    gather(pieces, buffer_.data() + used_ + sizeof(header));
    used_ += bytes;
    ++frames_;
    return lost;
}

uint32_t PcapWriter::flush() noexcept {
    size_t written = 0;
    while (written < used_ && !failed_) {
        const ssize_t part = ::write(fd_, buffer_.data() + written, used_ - written);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0) {
            log(LogLevel::kError, "%s takes no more frames: %s", path_.c_str(),
                part < 0 ? std::strerror(errno) : "the file is full");
            failed_ = true;
            break;
        }
        written += static_cast<size_t>(part);
    }
    const uint32_t lost = failed_ ? frames_ : 0;
    if (failed_ && written != 0) {
        // What was there before is still a capture file.
        if (::ftruncate(fd_, good_length_) == 0)
            ::lseek(fd_, good_length_, SEEK_SET);
    }
    if (!failed_)
        good_length_ += static_cast<int64_t>(used_);
    used_ = 0;
    frames_ = 0;
    return lost;
}

}  // namespace softcx
