// SPDX-License-Identifier: BSD-3-Clause
// Capture files: every classic form is read, and what cannot be used is named.
#include "drivers/softcx/wire/pcap_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace softcx {
namespace {

using Bytes = std::vector<uint8_t>;

class PcapFile : public ::testing::Test {
  protected:
    void TearDown() override { ::unlink(path.c_str()); }

    void put32(uint32_t value) {
        value = foreign ? __builtin_bswap32(value) : value;
        const auto* raw = reinterpret_cast<const uint8_t*>(&value);
        bytes.insert(bytes.end(), raw, raw + 4);
    }

    void header(uint32_t magic = 0xa1b2c3d4, uint32_t link_type = 1) {
        put32(magic);
        put32(foreign ? 2 << 16 | 4 : 4 << 16 | 2);
        put32(0);
        put32(0);
        put32(65535);
        put32(link_type);
    }

    void record(size_t captured, size_t original, uint8_t seed = 1) {
        put32(1);
        put32(2);
        put32(static_cast<uint32_t>(captured));
        put32(static_cast<uint32_t>(original));
        for (size_t i = 0; i < captured; ++i)
            bytes.push_back(static_cast<uint8_t>(seed + i));
    }

    std::unique_ptr<PcapReader> open() {
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
        return PcapReader::open(path, &error);
    }

    const std::string path =
        ::testing::TempDir() + "softcx-" + std::to_string(::getpid()) + ".pcap";
    bool foreign = false;
    Bytes bytes;
    std::string error;
};

TEST_F(PcapFile, EveryClassicFormIsRead) {
    for (const uint32_t magic : {0xa1b2c3d4, 0xa1b23c4d})
        for (const bool other_end : {false, true}) {
            foreign = other_end;
            bytes.clear();
            header(magic);
            record(60, 60);
            record(1514, 1514, 9);
            const auto reader = open();
            ASSERT_NE(reader, nullptr) << error;
            ASSERT_EQ(reader->next(), PcapReader::Record::kFrame);
            EXPECT_EQ(reader->frame().size(), 60u);
            EXPECT_EQ(reader->frame()[59], 60);
            ASSERT_EQ(reader->next(), PcapReader::Record::kFrame);
            EXPECT_EQ(reader->frame().size(), 1514u);
            EXPECT_EQ(reader->frame()[0], 9);
            EXPECT_EQ(reader->next(), PcapReader::Record::kEnd);
            reader->rewind();
            EXPECT_EQ(reader->next(), PcapReader::Record::kFrame);
            EXPECT_EQ(reader->frame().size(), 60u);
        }
}

TEST_F(PcapFile, TheFrameCheckSequenceIsTakenOff) {
    header(0xa1b2c3d4, 0x24000001);  // two 16-bit words of it
    record(64, 64);
    const auto reader = open();
    ASSERT_NE(reader, nullptr) << error;
    ASSERT_EQ(reader->next(), PcapReader::Record::kFrame);
    EXPECT_EQ(reader->frame().size(), 60u);
}

TEST_F(PcapFile, RecordsThatAreNoWholeFramesAreToldApart) {
    header();
    record(60, 1514);
    record(20000, 20000);
    record(60, 60);
    record(60, 60);
    bytes.pop_back();
    const auto reader = open();
    ASSERT_NE(reader, nullptr) << error;
    EXPECT_EQ(reader->next(), PcapReader::Record::kTruncated);
    EXPECT_EQ(reader->next(), PcapReader::Record::kTooLong);
    EXPECT_EQ(reader->next(), PcapReader::Record::kFrame);
    EXPECT_EQ(reader->next(), PcapReader::Record::kBroken);
}

TEST_F(PcapFile, ALengthThatIsNonsenseEndsTheFile) {
    header();
    put32(0);
    put32(0);
    put32(0xfffffff0);
    put32(0xfffffff0);
    const auto reader = open();
    ASSERT_NE(reader, nullptr) << error;
    EXPECT_EQ(reader->next(), PcapReader::Record::kBroken);
}

TEST_F(PcapFile, AFileLongerThanTheBufferIsReadToItsEnd) {
    header();
    for (int i = 0; i < 700; ++i)
        record(1514, 1514, static_cast<uint8_t>(i));
    const auto reader = open();
    ASSERT_NE(reader, nullptr) << error;
    for (int i = 0; i < 700; ++i) {
        ASSERT_EQ(reader->next(), PcapReader::Record::kFrame) << i;
        ASSERT_EQ(reader->frame()[0], static_cast<uint8_t>(i));
    }
    EXPECT_EQ(reader->next(), PcapReader::Record::kEnd);
}

TEST_F(PcapFile, WhatIsNoCaptureOnEthernetIsNamedWithTheRemedy) {
    put32(0x0a0d0d0a);
    put32(28);
    for (int i = 0; i < 5; ++i)
        put32(0);
    EXPECT_EQ(open(), nullptr);
    EXPECT_NE(error.find("is a pcapng file: convert it"), std::string::npos) << error;
    bytes.assign(24, 0x20);
    EXPECT_EQ(open(), nullptr);
    EXPECT_NE(error.find("is no capture file"), std::string::npos) << error;
    bytes.assign(3, 0);
    EXPECT_EQ(open(), nullptr);
    EXPECT_NE(error.find("is no capture file"), std::string::npos) << error;
    bytes.clear();
    header(0xa1b2c3d4, 113);
    EXPECT_EQ(open(), nullptr);
    EXPECT_NE(error.find("link type 113"), std::string::npos) << error;
    EXPECT_EQ(PcapReader::open("/no/such/file", &error), nullptr);
    EXPECT_NE(error.find("No such file"), std::string::npos) << error;
    EXPECT_EQ(PcapReader::open("/dev/null", &error), nullptr);
    EXPECT_NE(error.find("no regular file"), std::string::npos) << error;
}

TEST_F(PcapFile, WhatIsWrittenCanBeRead) {
    {
        const auto writer = PcapWriter::create(path, &error);
        ASSERT_NE(writer, nullptr) << error;
        for (uint32_t length = 60; length < 1500; ++length) {
            const Bytes frame(length, static_cast<uint8_t>(length));
            const Wire::Piece pieces[] = {{frame.data(), 14}, {frame.data() + 14, length - 14}};
            ASSERT_EQ(writer->write(pieces, length), 0u);
        }
    }
    const auto reader = PcapReader::open(path, &error);
    ASSERT_NE(reader, nullptr) << error;
    for (uint32_t length = 60; length < 1500; ++length) {
        ASSERT_EQ(reader->next(), PcapReader::Record::kFrame);
        ASSERT_EQ(reader->frame().size(), length);
        ASSERT_EQ(reader->frame()[length - 1], static_cast<uint8_t>(length));
    }
    EXPECT_EQ(reader->next(), PcapReader::Record::kEnd);
}

TEST_F(PcapFile, AFileThatTakesNoMoreEndsWithAWholeRecord) {
    const auto writer = PcapWriter::create(path, &error);
    ASSERT_NE(writer, nullptr) << error;
    const Bytes frame(1000, 0x5a);
    const Wire::Piece piece{frame.data(), 1000};
    ASSERT_EQ(writer->write({&piece, 1}, 1000), 0u);
    ASSERT_EQ(writer->flush(), 0u);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit tight{1500, before.rlim_max};
    ::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
    ASSERT_EQ(writer->write({&piece, 1}, 1000), 0u);
    ASSERT_EQ(writer->write({&piece, 1}, 1000), 0u);
    EXPECT_EQ(writer->flush(), 2u);
    EXPECT_EQ(writer->write({&piece, 1}, 1000), 1u);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    const auto reader = PcapReader::open(path, &error);
    ASSERT_NE(reader, nullptr) << error;
    EXPECT_EQ(reader->next(), PcapReader::Record::kFrame);
    EXPECT_EQ(reader->next(), PcapReader::Record::kEnd);
}

}  // namespace
}  // namespace softcx
