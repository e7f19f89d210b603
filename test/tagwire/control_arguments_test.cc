// SPDX-License-Identifier: BSD-3-Clause
// Every call with each of its arguments wrong in turn: the documented error, a text that says what
// to do, and nothing has changed. And no call of the public headers is forgotten.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "test/tagwire/argument_cases.h"
#include "test/tagwire/core_fixture.h"

namespace tagwire::test {
namespace {

Cases all_cases() {
    Cases all;
    for (const auto& table : {worker_cases, vector_cases, queue_cases, endpoint_cases, wait_cases,
                              memory_cases, connect_cases, region_cases, rma_cases, atomic_cases}) {
        Cases cases = table();
        std::move(cases.begin(), cases.end(), std::back_inserter(all));
    }
    return all;
}

class ControlArguments : public Core {
  protected:
    void SetUp() override {
        Core::SetUp();
        first_ = &transport();
        const tw_worker_attr attr = worker_attributes();
        ASSERT_EQ(tw_worker_open(&attr, &other_), 0) << tw_last_error();
        ASSERT_EQ(tw_av_open(other_, &o.other_av), 0);
        ASSERT_EQ(tw_cq_open(other_, nullptr, &o.other_cq), 0);
        ASSERT_EQ(tw_cntr_open(other_, &o.other_cntr), 0);
        o.worker = worker_;
        o.av = av_;
        o.cq = cq_;
        o.ep = ep_;
        o.peer = peer_;
        ASSERT_EQ(tw_cntr_open(worker_, &o.cntr), 0);
        ASSERT_EQ(tw_cntr_open(worker_, &o.free_cntr), 0);
        ASSERT_EQ(tw_ep_bind_cntr(ep_, o.cntr, TW_SEND | TW_RECV), 0);
        enable();
        ASSERT_EQ(tw_ep_open(worker_, nullptr, &o.idle), 0);
        ASSERT_EQ(tw_av_insert_auth_key(av_, "a key", 5, &o.key_index), 0);
        open_region(TW_RMA_EVENT, &o.mr);
        open_region(0, &o.silent_mr);
        ASSERT_EQ(tw_mr_bind_cntr(o.mr, o.cntr, TW_REMOTE_READ), 0) << tw_last_error();
        o.key = tw_mr_key(o.mr);
        ASSERT_EQ(tw_wait_open(worker_, &o.wait), 0) << tw_last_error();
        std::memset(static_cast<void*>(&o.results), 0xa5, sizeof(o.results));
    }

    // What a call that failed left open is missed here.
    void TearDown() override {
        EXPECT_EQ(tw_ep_close(o.idle), 0) << tw_last_error();
        EXPECT_EQ(tw_wait_close(o.wait), 0) << tw_last_error();
        EXPECT_EQ(tw_mr_close(o.mr), 0) << tw_last_error();
        EXPECT_EQ(tw_mr_close(o.silent_mr), 0) << tw_last_error();
        EXPECT_EQ(tw_ep_close(ep_), 0) << tw_last_error();
        ep_ = nullptr;
        EXPECT_EQ(tw_cntr_close(o.cntr), 0) << tw_last_error();
        EXPECT_EQ(tw_cntr_close(o.free_cntr), 0) << tw_last_error();
        EXPECT_EQ(tw_av_close(o.other_av), 0);
        EXPECT_EQ(tw_cq_close(o.other_cq), 0);
        EXPECT_EQ(tw_cntr_close(o.other_cntr), 0);
        EXPECT_EQ(tw_worker_close(other_), 0) << tw_last_error();
        Core::TearDown();
    }

    void open_region(uint64_t flags, tw_mr** mr) {
        tw_mr_attr attr{};
        const iovec iov{memory_, sizeof(memory_)};
        attr.size = sizeof(attr);
        attr.iov = &iov;
        attr.iov_count = 1;
        attr.access = TW_REMOTE_READ | TW_REMOTE_WRITE;
        attr.flags = flags;
        ASSERT_EQ(tw_mr_open(worker_, &attr, mr), 0) << tw_last_error();
    }

    // All that can be seen from outside, and what the transport was told.
    std::vector<uint64_t> state() {
        std::vector<uint64_t> seen;
        for (tw_worker* worker : {worker_, other_}) {
            std::vector<tw_stat> stats(static_cast<size_t>(tw_worker_stats(worker, nullptr, 0)));
            tw_worker_stats(worker, stats.data(), static_cast<int>(stats.size()));
            for (const tw_stat& stat : stats) {
                seen.push_back(stat.value);
            }
        }
        for (tw_addr index = 0; index < 8; ++index) {
            tw_address found{};
            const int result = tw_av_lookup(av_, index, &found);
            seen.push_back(static_cast<uint64_t>(result));
            seen.push_back(result == 0 ? found.udp_port + found.ip[3] * 65536u : 0);
        }
        for (const tw_cntr* cntr : {o.cntr, o.free_cntr, o.other_cntr}) {
            seen.push_back(tw_cntr_read(cntr));
            seen.push_back(tw_cntr_readerr(cntr));
        }
        for (const tw_ep* ep : {ep_, o.idle}) {
            size_t least = 0;
            size_t size = sizeof(least);
            tw_ep_getopt(ep, TW_OPT_MIN_MULTI_RECV, &least, &size);
            seen.push_back(least);
        }
        seen.push_back(static_cast<uint64_t>(tw_ep_enable(o.idle)));  // nothing is bound to it
        seen.push_back(first_->sends.size());
        seen.push_back(first_->endpoints.size());
        seen.push_back(no_completion());
        const auto* results = reinterpret_cast<const uint8_t*>(&o.results);
        seen.insert(seen.end(), results, results + sizeof(o.results));
        seen.insert(seen.end(), memory_, memory_ + sizeof(memory_));
        return seen;
    }

    Objects o;
    tw_worker* other_ = nullptr;
    uint8_t memory_[64] = {};
    FakeTransport* first_ = nullptr;  // worker_'s
};

TEST_F(ControlArguments, are_refused_with_the_documented_error_and_without_effect) {
    uint32_t count = 0;
    for (const Case& wrong : all_cases()) {
        SCOPED_TRACE(std::string(wrong.call) + ": " + wrong.wrong);
        const std::vector<uint64_t> before = state();
        // A text that no call here has.
        tw_address unused{};
        tw_address_parse("marker", &unused);
        const std::string marker = tw_last_error();
        EXPECT_EQ(wrong.run(o), wrong.result) << tw_last_error();
        EXPECT_NE(tw_last_error(), marker) << "no text of its own";
        EXPECT_GT(std::strlen(tw_last_error()), 20u) << tw_last_error();
        EXPECT_EQ(state(), before);
        ++count;
    }
    EXPECT_GT(count, 300u);
}

TEST_F(ControlArguments, are_harmless_to_calls_that_return_no_error) {
    EXPECT_EQ(tw_worker_deadline(nullptr), UINT64_MAX);
    EXPECT_EQ(tw_cntr_read(nullptr), 0u);
    EXPECT_EQ(tw_cntr_readerr(nullptr), 0u);
    EXPECT_EQ(tw_mr_key(nullptr), 0u);
    EXPECT_EQ(tw_mr_context(nullptr), nullptr);
    tw_free(nullptr);
    tw_worker_attr_init(nullptr);
    EXPECT_STRNE(tw_strerror(0x7fffffff), "");
    EXPECT_STRNE(tw_strerror(-0x7fffffff - 1), "");
    EXPECT_NE(tw_last_error(), nullptr);
}

// Names of functions that a header declares: outside of comments, not in parentheses as pointers.
std::set<std::string> declared_in(const std::filesystem::path& header) {
    std::stringstream text;
    text << std::ifstream(header).rdbuf();
    const std::string code =
        std::regex_replace(text.str(), std::regex(R"(/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)"), "");
    const std::regex declaration(R"(\b(tw_\w+)\s*\()");
    std::set<std::string> names;
    for (auto i = std::sregex_iterator(code.begin(), code.end(), declaration);
         i != std::sregex_iterator(); ++i) {
        names.insert((*i)[1]);
    }
    return names;
}

TEST(AllCalls, of_the_public_headers_are_tested_with_wrong_arguments) {
    std::set<std::string> tested = generated_calls();
    for (const Case& wrong : all_cases()) {
        tested.insert(wrong.call);
    }
    // The test above: no argument can make them fail.
    tested.insert({"tw_worker_deadline", "tw_cntr_read", "tw_cntr_readerr", "tw_mr_key",
                   "tw_mr_context", "tw_worker_attr_init", "tw_strerror", "tw_last_error",
                   "tw_free"});
    size_t headers = 0;
    std::set<std::string> declared;
    for (const auto& entry : std::filesystem::directory_iterator(TAGWIRE_HEADERS)) {
        declared.merge(declared_in(entry.path()));
        ++headers;
    }
    EXPECT_GE(headers, 12u);
    EXPECT_GE(declared.size(), 80u);
    for (const std::string& name : declared) {
        EXPECT_TRUE(tested.contains(name))
            << name << " has no case with a wrong argument: see test/tagwire/argument_cases.h";
    }
    for (const std::string& name : tested) {
        EXPECT_TRUE(declared.contains(name)) << name << " is in no header";
    }
}

}  // namespace
}  // namespace tagwire::test
