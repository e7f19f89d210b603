// SPDX-License-Identifier: BSD-3-Clause
#include "app/testpmd/command_table.h"

#include <cmdline.h>
#include <gtest/gtest.h>

#include "app/perf/failure.h"

namespace tagwire::testpmd {
namespace {

class CommandTableTest : public testing::Test {
  protected:
    CommandTableTest()
        : table_(
              {
                  {"start", "", "", [this](const Words& words) { ran_ = words; }},
                  {"start tx_first", "", "", [this](const Words& words) { ran_ = words; }},
                  {"start tx_first NUMBER", "", "", [this](const Words& words) { ran_ = words; }},
                  {"show port info|stats PORTS", "", "",
                   [this](const Words& words) { ran_ = words; }},
                  {"show fwd stats all", "", "", [this](const Words& words) { ran_ = words; }},
                  {"dump WORD", "", "", [this](const Words& words) { ran_ = words; }},
                  {"fail", "", "",
                   [](const Words&) { throw perf::Failure("no luck", "try again"); }},
              },
              [this](const std::string& what, const std::string& remedy) {
                  failure_ = what + "/" + remedy;
              }),
          cl_(cmdline_new(table_.context(), "", -1, -1)) {
        CommandTable::on_diagnosis([this](const std::string& text) { told_ = text; });
    }
    ~CommandTableTest() override {
        cmdline_free(cl_);
        CommandTable::on_diagnosis(nullptr);
    }

    int run(const std::string& line) {
        ran_.clear();
        told_.clear();
        return cmdline_parse(cl_, (line + "\n").c_str());
    }
    // What is told of a line that rte_cmdline calls wrong.
    std::string wrong(const std::string& line) {
        EXPECT_EQ(run(line), CMDLINE_PARSE_BAD_ARGS) << line;
        EXPECT_TRUE(ran_.empty()) << line;
        EXPECT_EQ(CommandTable::diagnosis(), told_);
        return told_;
    }

    Words ran_;
    std::string failure_, told_;
    CommandTable table_;
    cmdline* cl_;
};

TEST_F(CommandTableTest, RunsWhatFits) {
    EXPECT_GE(run("start"), 0);
    EXPECT_EQ(ran_, (Words{"start"}));
    EXPECT_GE(run("  start \t tx_first  "), 0);
    EXPECT_EQ(ran_, (Words{"start", "tx_first"}));
    EXPECT_GE(run("start tx_first 12 # twelve"), 0);
    EXPECT_EQ(ran_, (Words{"start", "tx_first", "12"}));
    EXPECT_GE(run("show port stats all"), 0);
    EXPECT_EQ(ran_, (Words{"show", "port", "stats", "all"}));
    EXPECT_GE(run("show port info 3"), 0);
    EXPECT_EQ(ran_, (Words{"show", "port", "info", "3"}));
    EXPECT_GE(run("dump mb_pool_0"), 0);
    EXPECT_EQ(ran_, (Words{"dump", "mb_pool_0"}));
    EXPECT_TRUE(told_.empty());
}

TEST_F(CommandTableTest, SaysWhichWordDoesNotFit) {
    EXPECT_EQ(wrong("show prot info 0"),
              "'prot' does not fit after 'show': there comes one of port, fwd");
    EXPECT_EQ(wrong("show port infos 0"),
              "'infos' does not fit after 'show port': there comes one of info, stats");
    EXPECT_EQ(wrong("show port info 1x"),
              "'1x' does not fit after 'show port info': there comes one of a port number, all");
    EXPECT_EQ(wrong("start tx_first -1"),
              "'-1' does not fit after 'start tx_first': there comes a number");
    EXPECT_EQ(wrong("start tx_first 9999999999"),
              "'9999999999' does not fit after 'start tx_first': there comes a number");
}

TEST_F(CommandTableTest, SaysWhatIsMissingOrTooMuch) {
    EXPECT_EQ(wrong("show"), "'show' is not complete: next comes one of port, fwd");
    EXPECT_EQ(wrong("show port info"),
              "'show port info' is not complete: next comes one of a port number, all");
    EXPECT_EQ(wrong("dump"), "'dump' is not complete: next comes a word");
    EXPECT_EQ(wrong("start tx_first 1 2"), "'2' is too much after 'start tx_first 1'");
    EXPECT_EQ(wrong("show fwd stats all of it"), "'of' is too much after 'show fwd stats all'");
}

TEST_F(CommandTableTest, IsSilentAboutUnknownCommandsAndEmptyLines) {
    EXPECT_EQ(run("frob 1"), CMDLINE_PARSE_NOMATCH);
    EXPECT_TRUE(told_.empty());
    EXPECT_GE(run(""), 0);
    EXPECT_GE(run("# show prot"), 0);
    EXPECT_TRUE(told_.empty());
}

TEST_F(CommandTableTest, AWordThatIsTooLongDoesNotFit) {
    EXPECT_NE(wrong("dump " + std::string(200, 'x')).find("does not fit"), std::string::npos);
}

TEST_F(CommandTableTest, WhatACommandThrowsIsReported) {
    EXPECT_GE(run("fail"), 0);
    EXPECT_EQ(failure_, "no luck/try again");
}

TEST_F(CommandTableTest, CompletesWords) {
    char to[128];
    int state = 0;
    EXPECT_EQ(cmdline_complete(cl_, "show po", &state, to, sizeof(to)),
              CMDLINE_PARSE_COMPLETED_BUFFER);
    EXPECT_STREQ(to, "rt ");
    state = 0;
    EXPECT_EQ(cmdline_complete(cl_, "show port st", &state, to, sizeof(to)),
              CMDLINE_PARSE_COMPLETED_BUFFER);
    EXPECT_STREQ(to, "ats ");
    EXPECT_TRUE(told_.empty());
    EXPECT_GE(run("start"), 0);
}

}  // namespace
}  // namespace tagwire::testpmd
