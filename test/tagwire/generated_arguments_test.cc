// SPDX-License-Identifier: BSD-3-Clause
// Every operation with each of its arguments wrong in turn: the documented error, and
// nothing has changed.
#include <functional>
#include <vector>

#include "test/tagwire/argument_cases.h"
#include "test/tagwire/core_fixture.h"

namespace tagwire::test {
namespace {

// What an operation is called with; each call picks what it takes.
struct Given {
    tw_ep* ep = nullptr;
    char* buffer = nullptr;
    size_t length = 8;
    iovec iov[TW_IOV_LIMIT + 1] = {};
    const iovec* vector = nullptr;
    size_t count = 2;
    tw_addr address = 0;
    uint64_t flags = 0;
    void* context = nullptr;
    bool no_message = false;

    tw_msg_tagged tagged() const { return {vector, count, address, 7, 0, context, 1}; }
    tw_msg untagged() const { return {vector, count, address, context, 1}; }
};

struct Call {
    const char* name;
    bool sends;
    bool has_buffer;  // and a length
    bool has_vector;  // and a count
    bool has_flags;   // and a message structure
    bool injects;
    std::function<int(const Given&)> call;
};

template <typename Message>
const Message* or_null(const Given& given, const Message& message) {
    return given.no_message ? nullptr : &message;
}

const std::vector<Call>& calls() {
    static const std::vector<Call> all = {
        {"tsend", true, true, false, false, false,
         [](const Given& g) {
             return tw_tsend(g.ep, g.buffer, g.length, g.address, 7, g.context);
         }},
        {"tsendv", true, false, true, false, false,
         [](const Given& g) {
             return tw_tsendv(g.ep, g.vector, g.count, g.address, 7, g.context);
         }},
        {"tsendmsg", true, false, true, true, false,
         [](const Given& g) {
             const tw_msg_tagged m = g.tagged();
             return tw_tsendmsg(g.ep, or_null(g, m), g.flags);
         }},
        {"tinject", true, true, false, false, true,
         [](const Given& g) { return tw_tinject(g.ep, g.buffer, g.length, g.address, 7); }},
        {"tsenddata", true, true, false, false, false,
         [](const Given& g) {
             return tw_tsenddata(g.ep, g.buffer, g.length, 1, g.address, 7, g.context);
         }},
        {"tinjectdata", true, true, false, false, true,
         [](const Given& g) { return tw_tinjectdata(g.ep, g.buffer, g.length, 1, g.address, 7); }},
        {"trecv", false, true, false, false, false,
         [](const Given& g) {
             return tw_trecv(g.ep, g.buffer, g.length, g.address, 7, 0, g.context);
         }},
        {"trecvv", false, false, true, false, false,
         [](const Given& g) {
             return tw_trecvv(g.ep, g.vector, g.count, g.address, 7, 0, g.context);
         }},
        {"trecvmsg", false, false, true, true, false,
         [](const Given& g) {
             const tw_msg_tagged m = g.tagged();
             return tw_trecvmsg(g.ep, or_null(g, m), g.flags);
         }},
        {"send", true, true, false, false, false,
         [](const Given& g) { return tw_send(g.ep, g.buffer, g.length, g.address, g.context); }},
        {"sendv", true, false, true, false, false,
         [](const Given& g) { return tw_sendv(g.ep, g.vector, g.count, g.address, g.context); }},
        {"sendmsg", true, false, true, true, false,
         [](const Given& g) {
             const tw_msg m = g.untagged();
             return tw_sendmsg(g.ep, or_null(g, m), g.flags);
         }},
        {"inject", true, true, false, false, true,
         [](const Given& g) { return tw_inject(g.ep, g.buffer, g.length, g.address); }},
        {"senddata", true, true, false, false, false,
         [](const Given& g) {
             return tw_senddata(g.ep, g.buffer, g.length, 1, g.address, g.context);
         }},
        {"injectdata", true, true, false, false, true,
         [](const Given& g) { return tw_injectdata(g.ep, g.buffer, g.length, 1, g.address); }},
        {"recv", false, true, false, false, false,
         [](const Given& g) { return tw_recv(g.ep, g.buffer, g.length, g.address, g.context); }},
        {"recvv", false, false, true, false, false,
         [](const Given& g) { return tw_recvv(g.ep, g.vector, g.count, g.address, g.context); }},
        {"recvmsg", false, false, true, true, false,
         [](const Given& g) {
             const tw_msg m = g.untagged();
             return tw_recvmsg(g.ep, or_null(g, m), g.flags);
         }},
    };
    return all;
}

struct Wrong {
    const char* name;
    int error;
    std::function<bool(const Call&)> concerns;
    std::function<void(Given&)> make;
};

std::vector<Wrong> wrongs() {
    const auto always = [](const Call&) { return true; };
    const auto buffer = [](const Call& call) { return call.has_buffer; };
    const auto vector = [](const Call& call) { return call.has_vector; };
    const auto flags = [](const Call& call) { return call.has_flags; };
    std::vector<Wrong> all = {
        {"no endpoint", EINVAL, always, [](Given& g) { g.ep = nullptr; }},
        {"unknown address", EINVAL, always, [](Given& g) { g.address = 12345; }},
        {"no destination", EINVAL, [](const Call& call) { return call.sends; },
         [](Given& g) { g.address = TW_ADDR_UNSPEC; }},
        {"NULL buffer", EINVAL, buffer, [](Given& g) { g.buffer = nullptr; }},
        {"too long", EMSGSIZE,
         [](const Call& call) { return call.sends && call.has_buffer && !call.injects; },
         [](Given& g) { g.length = TW_MAX_MESSAGE_SIZE + 1; }},
        {"too long to inject", EINVAL, [](const Call& call) { return call.injects; },
         [](Given& g) { g.length = TW_INJECT_SIZE + 1; }},
        {"NULL vector", EINVAL, vector, [](Given& g) { g.vector = nullptr; }},
        {"too many buffers", EINVAL, vector, [](Given& g) { g.count = TW_IOV_LIMIT + 1; }},
        {"NULL in the vector", EINVAL, vector, [](Given& g) { g.iov[1].iov_base = nullptr; }},
        {"lengths that wrap", EINVAL, vector, [](Given& g) { g.iov[1].iov_len = SIZE_MAX; }},
        {"no message", EINVAL, flags, [](Given& g) { g.no_message = true; }},
        {"two levels", EINVAL, flags,
         [](Given& g) { g.flags = TW_DELIVERY_COMPLETE | TW_MATCH_COMPLETE; }},
    };
    for (unsigned bit = 0; bit < 64; ++bit) {
        const uint64_t flag = 1ull << bit;
        constexpr uint64_t kSend = TW_COMPLETION | TW_MORE | TW_REMOTE_CQ_DATA | TW_INJECT |
                                   TW_FENCE | TW_INJECT_COMPLETE | TW_TRANSMIT_COMPLETE |
                                   TW_DELIVERY_COMPLETE | TW_MATCH_COMPLETE;
        constexpr uint64_t kReceive = TW_COMPLETION | TW_MORE;
        all.push_back({"flag", EINVAL,
                       [flag](const Call& call) {
                           // What remains of the receive flags is wrong for this address, vector
                           // or context, too.
                           return call.has_flags && (flag & (call.sends ? kSend : kReceive)) == 0 &&
                                  !(std::string(call.name) == "trecvmsg" && flag == TW_PEEK);
                       },
                       [flag](Given& g) { g.flags = flag; }});
    }
    return all;
}

class GeneratedArguments : public Core {
  protected:
    Given good() {
        Given given;
        given.ep = ep_;
        given.buffer = buffer_;
        given.address = peer_;
        given.context = &context_;
        for (iovec& entry : given.iov) {
            entry = {buffer_, 4};
        }
        return given;
    }
    int run(const Call& call, Given given) {
        if (!given.no_message && given.vector == nullptr && !null_vector_) {
            given.vector = given.iov;
        }
        return call.call(given);
    }
    std::vector<uint64_t> stats() const {
        std::vector<tw_stat> stats(static_cast<size_t>(tw_worker_stats(worker_, nullptr, 0)));
        tw_worker_stats(worker_, stats.data(), static_cast<int>(stats.size()));
        std::vector<uint64_t> values;
        for (const tw_stat& stat : stats) {
            values.push_back(stat.value);
        }
        return values;
    }

    char buffer_[64] = {};
    bool null_vector_ = false;
};

TEST_F(GeneratedArguments, are_refused_with_the_documented_error_and_without_effect) {
    enable();
    uint32_t cases = 0;
    for (const Call& call : calls()) {
        for (const Wrong& wrong : wrongs()) {
            if (!wrong.concerns(call)) {
                continue;
            }
            SCOPED_TRACE(std::string(call.name) + ": " + wrong.name);
            Given given = good();
            wrong.make(given);
            null_vector_ = std::string(wrong.name) == "NULL vector";
            const std::vector<uint64_t> before = stats();
            const size_t sends = transport().sends.size();
            EXPECT_EQ(run(call, given), -wrong.error);
            EXPECT_STRNE(tw_last_error(), "");
            EXPECT_EQ(stats(), before);
            EXPECT_EQ(transport().sends.size(), sends);
            EXPECT_TRUE(no_completion());
            null_vector_ = false;
            ++cases;
        }
        // And the same call with nothing wrong succeeds.
        SCOPED_TRACE(call.name);
        ASSERT_EQ(run(call, good()), 0) << tw_last_error();
        if (call.sends) {
            transport().finish_send(transport().sends.size() - 1, 0);
            tw_progress(worker_);
            EXPECT_EQ(no_completion(), call.injects);
        } else {
            ASSERT_EQ(tw_cancel(ep_, &context_), 0);
            EXPECT_EQ(error_completion().error, ECANCELED);
        }
    }
    EXPECT_GT(cases, 200u);
}

TEST_F(GeneratedArguments, before_enable_every_operation_is_in_a_bad_state) {
    for (const Call& call : calls()) {
        EXPECT_EQ(run(call, good()), -TW_EOPBADSTATE) << call.name;
    }
}

TEST_F(GeneratedArguments, a_full_queue_is_again_and_then_succeeds) {
    tw_cq* small = nullptr;
    const tw_cq_attr attr{sizeof(attr), 1};
    ASSERT_EQ(tw_cq_open(worker_, &attr, &small), 0);
    ASSERT_EQ(tw_ep_bind_av(ep_, av_), 0);
    ASSERT_EQ(tw_ep_bind_cq(ep_, small, TW_SEND | TW_RECV), 0);
    ASSERT_EQ(tw_ep_enable(ep_), 0);
    tw_cq_entry entry;
    for (const Call& call : calls()) {
        SCOPED_TRACE(call.name);
        ASSERT_EQ(tw_tsend(ep_, buffer_, 8, peer_, 1, nullptr), 0);
        const std::vector<uint64_t> before = stats();
        EXPECT_EQ(run(call, good()), -EAGAIN);
        EXPECT_EQ(stats(), before);
        transport().finish_send(transport().sends.size() - 1, 0);
        tw_progress(worker_);
        EXPECT_EQ(run(call, good()), -EAGAIN) << "the entry is not read";
        ASSERT_EQ(tw_cq_read(small, &entry, 1), 1);
        ASSERT_EQ(run(call, good()), 0);
        if (call.sends) {
            transport().finish_send(transport().sends.size() - 1, 0);
            tw_progress(worker_);
            EXPECT_EQ(tw_cq_read(small, &entry, 1), call.injects ? -EAGAIN : 1);
        } else {
            tw_cq_error error;
            ASSERT_EQ(tw_cancel(ep_, &context_), 0);
            ASSERT_EQ(tw_cq_readerr(small, &error), 1);
        }
    }
    ASSERT_EQ(tw_ep_close(ep_), 0);
    ep_ = nullptr;
    ASSERT_EQ(tw_cq_close(small), 0);
}

}  // namespace

std::set<std::string> generated_calls() {
    std::set<std::string> names;
    for (const Call& call : calls()) {
        names.insert(std::string("tw_") + call.name);
    }
    return names;
}

}  // namespace tagwire::test
