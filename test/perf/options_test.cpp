// SPDX-License-Identifier: BSD-3-Clause
#include "app/perf/options.h"

#include <gtest/gtest.h>

#include "app/perf/failure.h"

namespace tagwire::perf {
namespace {

Options parse(std::vector<std::string> words) {
    words.insert(words.begin(), "tagwire-perf");
    std::vector<char*> argv;
    for (std::string& word : words) {
        argv.push_back(word.data());
    }
    return parse_options(static_cast<int>(argv.size()), argv.data());
}

ExitCode exit_code_of(const std::vector<std::string>& words) {
    try {
        parse(words);
    } catch (const Failure& failure) {
        return failure.exit_code();
    }
    return ExitCode::kSuccess;
}

TEST(Options, AServerKnowsItsFolders) {
    const Options options = parse({"server", "--keep", "--dir", "/tmp", "--share", "a", "b"});
    EXPECT_EQ(options.role, Role::kServer);
    EXPECT_TRUE(options.keep);
    EXPECT_EQ(options.directory, "/tmp");
    EXPECT_EQ(options.share, (std::vector<std::string>{"a", "b"}));
}

TEST(Options, AClientHasAServerAndATest) {
    const Options options =
        parse({"client", "10.0.0.1", "stream", "-s", "8,4K", "-n", "5", "-w", "7"});
    EXPECT_EQ(options.role, Role::kClient);
    EXPECT_EQ(options.server, "10.0.0.1");
    EXPECT_EQ(options.test, TestKind::kStream);
    EXPECT_EQ(options.stream.sizes, (std::vector<uint64_t>{8, 4096}));
    EXPECT_EQ(options.stream.iterations, 5u);
    EXPECT_EQ(options.stream.window, 7u);
}

TEST(Options, CommonOptionsMayFollowTheTest) {
    const Options options =
        parse({"client", "10.0.0.1", "pingpong", "--timeout", "2.5", "--json", "-"});
    EXPECT_EQ(options.timeout_s, 2.5);
    EXPECT_EQ(options.json, "-");
}

TEST(Options, WrongUsageIsSaid) {
    EXPECT_EQ(exit_code_of({}), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of({"sideways"}), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of({"client"}), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of({"client", "10.0.0.1"}), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of({"client", "10.0.0.1", "file"}), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of({"client", "10.0.0.1", "pingpong", "-s", "many"}), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of({"client", "10.0.0.1", "pingpong", "-s", "4G"}), ExitCode::kUsage);
    EXPECT_EQ(exit_code_of({"server", "--udp-port", "0"}), ExitCode::kUsage);
}

}  // namespace
}  // namespace tagwire::perf
