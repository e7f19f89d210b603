// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/perf/failure.h"
#include "app/perf/file_list.h"
#include "app/perf/mixed_sizes.h"
#include "app/perf/safe_file.h"
#include "app/perf/sha256.h"

namespace tagwire::perf {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
  protected:
    Files() {
        std::string pattern = (fs::temp_directory_path() / "tagwire-files-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
    }
    ~Files() override { fs::remove_all(folder_); }

    void write(const fs::path& name, const std::string& text) {
        fs::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / name) << text;
    }
    std::string read(const fs::path& name) {
        std::ostringstream text;
        text << std::ifstream(folder_ / name).rdbuf();
        return text.str();
    }
    void store(const std::string& name, const std::string& text) {
        SafeFile file(folder_.string(), name, 0644);
        file.write(reinterpret_cast<const std::byte*>(text.data()), text.size());
        file.commit();
    }
    size_t entries() {
        return static_cast<size_t>(std::distance(fs::recursive_directory_iterator(folder_),
                                                 fs::recursive_directory_iterator()));
    }

    fs::path folder_;
};

TEST(FileNames, SafeOnesAreRelativeAndStayBelow) {
    for (const char* name : {"a", "a/b", "..a", "a..b/c", "with space", "\xc3\xa4"}) {
        EXPECT_TRUE(is_safe_name(name)) << name;
    }
    for (const char* name :
         {"", "/a", "..", "../a", "a/../b", "a/..", "a//b", "a/", ".", "./a", "a\nb"}) {
        EXPECT_FALSE(is_safe_name(name)) << name;
    }
    EXPECT_FALSE(is_safe_name(std::string("a\0b", 3)));
    EXPECT_FALSE(is_safe_name(std::string(201, 'a')));
}

TEST_F(Files, FoldersAreWalkedAndLinksFollowed) {
    write("tree/one", "1");
    write("tree/sub/two", "22");
    fs::create_symlink("one", folder_ / "tree/link");
    fs::create_symlink("nowhere", folder_ / "tree/dangling");

    const auto files = list_files({(folder_ / "tree").string() + "/"});

    ASSERT_EQ(files.size(), 3u);
    EXPECT_EQ(files[0].name, "tree/link");
    EXPECT_EQ(files[1].name, "tree/one");
    EXPECT_EQ(files[2].name, "tree/sub/two");
    EXPECT_EQ(files[2].size, 2u);
}

TEST_F(Files, AMissingPathIsAnError) {
    EXPECT_THROW(list_files({(folder_ / "missing").string()}), Failure);
}

TEST_F(Files, ACommittedFileHasItsNameAndNothingElseIsLeft) {
    store("a/b/c", "contents");

    EXPECT_EQ(read("a/b/c"), "contents");
    EXPECT_EQ(entries(), 3u);
}

TEST_F(Files, AFileIsInvisibleUntilItIsCommittedAndGoneWithoutThat) {
    write("name", "old");
    {
        SafeFile file(folder_.string(), "name", 0644);
        file.write(reinterpret_cast<const std::byte*>("new"), 3);
        EXPECT_EQ(read("name"), "old");
    }
    EXPECT_EQ(read("name"), "old");
    EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, ALinkedFolderIsNotEntered) {
    fs::create_directory(folder_ / "inside");
    fs::create_directory(folder_ / "outside");
    fs::create_symlink("../outside", folder_ / "inside/link");

    EXPECT_THROW(SafeFile((folder_ / "inside").string(), "link/file", 0644), Failure);
    EXPECT_TRUE(fs::is_empty(folder_ / "outside"));
}

TEST_F(Files, UnsafeNamesAreRefused) {
    EXPECT_THROW(SafeFile(folder_.string(), "../file", 0644), Failure);
    EXPECT_EQ(entries(), 0u);
}

TEST_F(Files, ALinkInPlaceOfTheFileIsReplacedNotFollowed) {
    write("target", "kept");
    fs::create_symlink("target", folder_ / "name");

    store("name", "new");

    EXPECT_EQ(read("target"), "kept");
    EXPECT_EQ(read("name"), "new");
}

TEST(MixedSizes, CoverEveryOrderOfMagnitudeAndEndExactly) {
    MixedSizes sizes(1, 1 << 20);
    uint64_t left = uint64_t{64} << 20;
    bool small = false;
    bool large = false;
    while (left > 0) {
        const uint64_t length = sizes.next(left);
        ASSERT_GE(length, 1u);
        ASSERT_LE(length, uint64_t{1} << 20);
        ASSERT_LE(length, left);
        small |= length < 16;
        large |= length > (1 << 19);
        left -= length;
    }
    EXPECT_TRUE(small);
    EXPECT_TRUE(large);
}

TEST(Sha256, MatchesThePublishedVector) {  // FIPS 180-2, appendix B.1
    Sha256 sha256;
    sha256.update("ab", 2);
    sha256.update("c", 1);
    EXPECT_EQ(sha256.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256.finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace tagwire::perf
