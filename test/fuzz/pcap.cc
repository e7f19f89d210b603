// SPDX-License-Identifier: BSD-3-Clause
// A capture file of arbitrary bytes is refused, or read to its end.
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/softcx/wire/frame_ring.h"
#include "drivers/softcx/wire/pcap_file.h"
#include "test/fuzz/input.h"

namespace softcx::fuzz {
namespace {

// Each record takes 16 bytes at least.
void read_all(PcapReader& reader, size_t bytes) {
    for (size_t records = 0; records <= bytes / 16 + 1; ++records) {
        const PcapReader::Record record = reader.next();
        if (record == PcapReader::Record::kEnd || record == PcapReader::Record::kBroken)
            return;
        if (record != PcapReader::Record::kFrame)
            continue;
        require(reader.frame().size() <= kMaxFrame, "a frame fits a wire");
        const std::vector<uint8_t> copy(reader.frame().begin(), reader.frame().end());
    }
    require(false, "a file has an end");
}

}  // namespace

void run(Input& input) {
    const std::vector<uint8_t> data = input.take_bytes(input.left());
    const int fd = ::memfd_create("pcap", MFD_CLOEXEC);
    require(::write(fd, data.data(), data.size()) == static_cast<ssize_t>(data.size()),
            "a memory file");
    ::lseek(fd, 0, SEEK_SET);
    std::string error;
    const std::unique_ptr<PcapReader> reader = PcapReader::adopt(fd, "input", &error);
    require((reader == nullptr) == !error.empty(), "what is refused has a reason");
    if (reader != nullptr) {
        read_all(*reader, data.size());
        reader->rewind();
        read_all(*reader, data.size());
    }
}

}  // namespace softcx::fuzz
