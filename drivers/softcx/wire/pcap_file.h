// SPDX-License-Identifier: BSD-3-Clause
// Capture files in the classic format (draft-ietf-opsawg-pcap), read and written without a
// library.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "drivers/softcx/wire/wire.h"

namespace softcx {

struct PcapFileHeader {
    uint32_t magic;
    uint16_t major, minor;
    uint32_t reserved[2];
    uint32_t snap_length;
    uint32_t link_type;  // low 28 bits; above: whether frames end in an FCS, and how long it is
};
static_assert(sizeof(PcapFileHeader) == 24);

struct PcapRecordHeader {
    uint32_t seconds;
    uint32_t fraction;
    uint32_t captured;  // bytes that follow
    uint32_t original;  // bytes on the cable
};
static_assert(sizeof(PcapRecordHeader) == 16);

class PcapReader {
  public:
    // nullptr, and why with a remedy.
    static std::unique_ptr<PcapReader> open(const std::string& path, std::string* error);
    // Takes the descriptor over; `path` is for messages.
    static std::unique_ptr<PcapReader> adopt(int fd, const std::string& path, std::string* error);

    ~PcapReader();
    PcapReader(const PcapReader&) = delete;
    PcapReader& operator=(const PcapReader&) = delete;

    enum class Record : uint8_t {
        kFrame,      // frame() is what was on the cable
        kTruncated,  // the capture cut the frame: it is not shown
        kTooLong,    // longer than a wire of ours carries: likewise
        kEnd,
        kBroken,  // ends inside a record, or a length is nonsense: nothing follows
    };
    Record next() noexcept;
    // Without FCS; until the next call.
    std::span<const uint8_t> frame() const noexcept { return frame_; }

    void rewind() noexcept;

    // The file that is open, to tell it from others.
    bool is_same_file(int fd) const noexcept;

  private:
    explicit PcapReader(int fd);

    bool read_header(const std::string& path, std::string* error);
    uint32_t in_host_order(uint32_t value) const noexcept {
        return swapped_ ? __builtin_bswap32(value) : value;
    }
    const uint8_t* need(uint32_t bytes) noexcept;
    bool skip(uint32_t bytes) noexcept;

    int fd_;
    bool swapped_ = false;
    uint32_t fcs_bytes_ = 0;
    std::vector<uint8_t> buffer_;
    size_t begin_ = 0;  // of what was read and not used
    size_t end_ = 0;
    std::span<const uint8_t> frame_;
};

class PcapWriter {
  public:
    static std::unique_ptr<PcapWriter> create(const std::string& path, std::string* error);

    ~PcapWriter();
    PcapWriter(const PcapWriter&) = delete;
    PcapWriter& operator=(const PcapWriter&) = delete;

    // Both return how many frames were lost: when the file takes no more, the reason is logged
    // once, and it ends with a whole record.
    uint32_t write(std::span<const Wire::Piece> pieces, uint32_t total) noexcept;
    uint32_t flush() noexcept;

    int fd() const noexcept { return fd_; }

  private:
    PcapWriter(int fd, std::string path);

    int fd_;
    std::string path_;
    std::vector<uint8_t> buffer_;
    size_t used_ = 0;
    uint32_t frames_ = 0;  // in the buffer
    int64_t good_length_ = 0;
    bool failed_ = false;
};

}  // namespace softcx
