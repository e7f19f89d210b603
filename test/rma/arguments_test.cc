// SPDX-License-Identifier: BSD-3-Clause
// Every call on remote memory with each of its arguments wrong in turn: the documented
// error, and nothing has changed.
#include <functional>

#include "test/rma/rma_fixture.h"

namespace tagwire::test {
namespace {

constexpr size_t kTooMany = TW_IOV_LIMIT + 1;

// What a call is made with; each picks what it takes. Two elements of 8 bytes in all.
struct Given {
    tw_ep* ep = nullptr;
    tw_addr addr = 0;
    size_t length = 16;
    char* buffer = nullptr;
    iovec iov[kTooMany] = {};
    const iovec* vector = nullptr;
    size_t count = 2;
    tw_rma_iov remote[kTooMany] = {};
    const tw_rma_iov* remotes = nullptr;
    size_t remote_count = 2;
    tw_ioc ioc[kTooMany] = {};
    const tw_ioc* operands = nullptr;
    const tw_ioc* compares = nullptr;
    const tw_ioc* results = nullptr;
    size_t compare_count = 2;
    size_t result_count = 2;
    tw_rma_ioc remote_ioc[kTooMany] = {};
    const tw_rma_ioc* remote_iocs = nullptr;
    char* compare = nullptr;
    char* result = nullptr;
    size_t elements = 2;
    tw_datatype datatype = TW_UINT64;
    tw_op op = TW_SUM;
    uint64_t flags = 0;
    bool no_message = false;

    tw_msg_rma message() const { return {vector, count, addr, remotes, remote_count, nullptr, 1}; }
    tw_msg_atomic atomic() const {
        return {operands, count, addr, remote_iocs, remote_count, datatype, op, nullptr, 0};
    }
};

enum Takes : uint32_t {
    kBuffer = 1,
    kVector = 2,
    kMessage = 4,  // flags and remote places
    kOperands = 8,
    kOperandVector = 16,
    kResult = 32,
    kResultVector = 64,
    kCompare = 128,
    kCompareVector = 256,
    kInjects = 512,
    kRead = 1024,
};
constexpr uint32_t kAtomic = kOperands | kOperandVector;

struct Call {
    const char* name;
    uint32_t takes;
    std::function<int(const Given&)> call;
};

template <typename Message>
const Message* or_null(const Given& given, const Message& message) {
    return given.no_message ? nullptr : &message;
}

std::vector<Call> calls() {
    return {
        {"write", kBuffer,
         [](const Given& g) { return tw_write(g.ep, g.buffer, g.length, g.addr, 0, 1, nullptr); }},
        {"writev", kVector,
         [](const Given& g) { return tw_writev(g.ep, g.vector, g.count, g.addr, 0, 1, nullptr); }},
        {"writemsg", kVector | kMessage,
         [](const Given& g) {
             const tw_msg_rma m = g.message();
             return tw_writemsg(g.ep, or_null(g, m), g.flags);
         }},
        {"inject_write", kBuffer | kInjects,
         [](const Given& g) { return tw_inject_write(g.ep, g.buffer, g.length, g.addr, 0, 1); }},
        {"writedata", kBuffer,
         [](const Given& g) {
             return tw_writedata(g.ep, g.buffer, g.length, 7, g.addr, 0, 1, nullptr);
         }},
        {"inject_writedata", kBuffer | kInjects,
         [](const Given& g) {
             return tw_inject_writedata(g.ep, g.buffer, g.length, 7, g.addr, 0, 1);
         }},
        {"read", kBuffer,
         [](const Given& g) { return tw_read(g.ep, g.buffer, g.length, g.addr, 0, 1, nullptr); }},
        {"readv", kVector,
         [](const Given& g) { return tw_readv(g.ep, g.vector, g.count, g.addr, 0, 1, nullptr); }},
        {"readmsg", kVector | kMessage | kRead,
         [](const Given& g) {
             const tw_msg_rma m = g.message();
             return tw_readmsg(g.ep, or_null(g, m), g.flags);
         }},
        {"atomic", kOperands,
         [](const Given& g) {
             return tw_atomic(g.ep, g.buffer, g.elements, g.addr, 0, 1, g.datatype, g.op, nullptr);
         }},
        {"atomicv", kOperandVector,
         [](const Given& g) {
             return tw_atomicv(g.ep, g.operands, g.count, g.addr, 0, 1, g.datatype, g.op, nullptr);
         }},
        {"atomicmsg", kOperandVector | kMessage,
         [](const Given& g) {
             const tw_msg_atomic m = g.atomic();
             return tw_atomicmsg(g.ep, or_null(g, m), g.flags);
         }},
        {"inject_atomic", kOperands | kInjects,
         [](const Given& g) {
             return tw_inject_atomic(g.ep, g.buffer, g.elements, g.addr, 0, 1, g.datatype, g.op);
         }},
        {"fetch_atomic", kOperands | kResult,
         [](const Given& g) {
             return tw_fetch_atomic(g.ep, g.buffer, g.elements, g.result, g.addr, 0, 1, g.datatype,
                                    g.op, nullptr);
         }},
        {"fetch_atomicv", kOperandVector | kResultVector,
         [](const Given& g) {
             return tw_fetch_atomicv(g.ep, g.operands, g.count, g.results, g.result_count, g.addr,
                                     0, 1, g.datatype, g.op, nullptr);
         }},
        {"fetch_atomicmsg", kOperandVector | kResultVector | kMessage,
         [](const Given& g) {
             const tw_msg_atomic m = g.atomic();
             return tw_fetch_atomicmsg(g.ep, or_null(g, m), g.results, g.result_count, g.flags);
         }},
        {"compare_atomic", kOperands | kResult | kCompare,
         [](const Given& g) {
             return tw_compare_atomic(g.ep, g.buffer, g.elements, g.compare, g.result, g.addr, 0, 1,
                                      g.datatype, g.op, nullptr);
         }},
        {"compare_atomicv", kOperandVector | kResultVector | kCompareVector,
         [](const Given& g) {
             return tw_compare_atomicv(g.ep, g.operands, g.count, g.compares, g.compare_count,
                                       g.results, g.result_count, g.addr, 0, 1, g.datatype, g.op,
                                       nullptr);
         }},
        {"compare_atomicmsg", kOperandVector | kResultVector | kCompareVector | kMessage,
         [](const Given& g) {
             const tw_msg_atomic m = g.atomic();
             return tw_compare_atomicmsg(g.ep, or_null(g, m), g.compares, g.compare_count,
                                         g.results, g.result_count, g.flags);
         }},
    };
}

struct Wrong {
    const char* name;
    int error;
    uint32_t concerns;  // calls that take one of these; 0: all
    uint32_t needs;     // and all of these
    std::function<void(Given&)> make;
};

std::vector<Wrong> wrongs() {
    std::vector<Wrong> all = {
        {"no endpoint", EINVAL, 0, 0, [](Given& g) { g.ep = nullptr; }},
        {"unknown address", EINVAL, 0, 0, [](Given& g) { g.addr = 12345; }},
        {"no address", EINVAL, 0, 0, [](Given& g) { g.addr = TW_ADDR_UNSPEC; }},
        {"NULL buffer", EINVAL, kBuffer | kOperands, 0, [](Given& g) { g.buffer = nullptr; }},
        {"NULL vector", EINVAL, kVector, 0, [](Given& g) { g.vector = nullptr; }},
        {"too many buffers", EINVAL, kVector | kOperandVector, 0,
         [](Given& g) { g.count = kTooMany; }},
        {"NULL in the vector", EINVAL, kVector, 0, [](Given& g) { g.iov[1].iov_base = nullptr; }},
        {"lengths that wrap", EINVAL, kVector, 0, [](Given& g) { g.iov[1].iov_len = SIZE_MAX; }},
        {"no message", EINVAL, kMessage, 0, [](Given& g) { g.no_message = true; }},
        {"two levels", EINVAL, kMessage, 0,
         [](Given& g) { g.flags = TW_DELIVERY_COMPLETE | TW_TRANSMIT_COMPLETE; }},
        {"no remote place", EINVAL, kMessage, 0, [](Given& g) { g.remote_count = 0; }},
        {"too many remote places", EINVAL, kMessage, 0,
         [](Given& g) { g.remote_count = kTooMany; }},
        {"NULL remote places", EINVAL, kMessage, 0,
         [](Given& g) {
             g.remotes = nullptr;
             g.remote_iocs = nullptr;
         }},
        {"remote lengths that differ", EINVAL, kMessage, 0,
         [](Given& g) {
             ++g.remote[1].length;
             ++g.remote_ioc[1].count;
         }},
        {"remote lengths that wrap", EINVAL, kVector, kMessage,
         [](Given& g) { g.remote[1].length = SIZE_MAX - 3; }},
        {"no operation", EOPNOTSUPP, kAtomic, 0, [](Given& g) { g.op = static_cast<tw_op>(19); }},
        {"no datatype", EOPNOTSUPP, kAtomic, 0,
         [](Given& g) { g.datatype = static_cast<tw_datatype>(10); }},
        {"bits of a float", EOPNOTSUPP, kOperandVector | kOperands, 0,
         [](Given& g) {
             g.datatype = TW_DOUBLE;
             g.op = g.op == TW_SUM ? TW_BOR : TW_MSWAP;
         }},
        {"operation of another form", EOPNOTSUPP, kAtomic, 0,
         [](Given& g) { g.op = g.op == TW_SUM ? TW_CSWAP : TW_SUM; }},
        {"no elements", EINVAL, kOperands, 0, [](Given& g) { g.elements = 0; }},
        {"NULL operands", EINVAL, kOperandVector, 0, [](Given& g) { g.operands = nullptr; }},
        {"NULL in the operands", EINVAL, kOperandVector, 0,
         [](Given& g) { g.ioc[1].addr = nullptr; }},
        {"NULL result", EINVAL, kResult, 0, [](Given& g) { g.result = nullptr; }},
        {"NULL results", EINVAL, kResultVector, 0, [](Given& g) { g.results = nullptr; }},
        {"fewer results", EINVAL, kResultVector, 0, [](Given& g) { g.result_count = 1; }},
        {"too many results", EINVAL, kResultVector, 0, [](Given& g) { g.result_count = kTooMany; }},
        {"NULL compare", EINVAL, kCompare, 0, [](Given& g) { g.compare = nullptr; }},
        {"NULL compares", EINVAL, kCompareVector, 0, [](Given& g) { g.compares = nullptr; }},
        {"fewer compares", EINVAL, kCompareVector, 0, [](Given& g) { g.compare_count = 1; }},
    };
    for (unsigned bit = 0; bit < 64; ++bit) {
        constexpr uint64_t kPut = TW_COMPLETION | TW_MORE | TW_INJECT | TW_FENCE |
                                  TW_REMOTE_CQ_DATA | TW_INJECT_COMPLETE | TW_TRANSMIT_COMPLETE |
                                  TW_DELIVERY_COMPLETE | TW_MATCH_COMPLETE;
        const uint64_t flag = uint64_t{1} << bit;
        const auto make = [flag](Given& g) { g.flags = flag; };
        if ((kPut & flag) == 0) {
            all.push_back({"unknown flag", EINVAL, kMessage, 0, make});
        } else if (flag == TW_REMOTE_CQ_DATA) {
            all.push_back({"data", EINVAL, kOperandVector | kRead, kMessage, make});
        } else if (flag == TW_INJECT) {
            all.push_back({"inject", EINVAL, kRead, kMessage, make});
        }
    }
    return all;
}

class RmaArguments : public RmaPair {
  protected:
    Given good(uint32_t takes) {
        Given given;
        given.ep = a.ep;
        given.addr = a.address_of(b);
        given.buffer = given.result = given.compare = memory;
        for (size_t i = 0; i < kTooMany; ++i) {
            given.iov[i] = {memory, 8};
            given.remote[i] = {0, 8, 1};
            given.ioc[i] = {memory, 1};
            given.remote_ioc[i] = {0, 1, 1};
        }
        if ((takes & (kCompare | kCompareVector)) != 0) {
            given.op = TW_CSWAP;
        }
        return given;
    }
    // The vectors of a copy are its own.
    static void aim(Given& given) {
        given.vector = given.iov;
        given.remotes = given.remote;
        given.operands = given.compares = given.results = given.ioc;
        given.remote_iocs = given.remote_ioc;
    }

    alignas(8) char memory[64] = {};
};

TEST_F(RmaArguments, each_wrong_in_turn) {
    int made = 0;
    for (const Call& call : calls()) {
        for (const Wrong& wrong : wrongs()) {
            if ((wrong.concerns != 0 && (call.takes & wrong.concerns) == 0) ||
                (call.takes & wrong.needs) != wrong.needs) {
                continue;
            }
            Given given = good(call.takes);
            aim(given);
            wrong.make(given);
            EXPECT_EQ(call.call(given), -wrong.error) << call.name << ": " << wrong.name;
            EXPECT_STRNE(tw_last_error(), "");
            ++made;
        }
    }
    EXPECT_GT(made, 400);
    EXPECT_EQ(a.stat("rma_outstanding"), 0u);
    settle();
    EXPECT_EQ(a.ended(), 0u);
    EXPECT_EQ(a.stat("tx_messages"), 0u);
}

TEST_F(RmaArguments, too_long) {
    Given given = good(0);
    const tw_addr to = given.addr;
    const size_t beyond = TW_MAX_MESSAGE_SIZE + 1;
    EXPECT_EQ(tw_write(a.ep, memory, beyond, to, 0, 1, nullptr), -EMSGSIZE);
    EXPECT_EQ(tw_writedata(a.ep, memory, beyond, 1, to, 0, 1, nullptr), -EMSGSIZE);
    EXPECT_EQ(tw_read(a.ep, memory, beyond, to, 0, 1, nullptr), -EMSGSIZE);
    EXPECT_EQ(tw_inject_write(a.ep, memory, TW_INJECT_SIZE + 1, to, 0, 1), -EINVAL);
    EXPECT_EQ(tw_inject_writedata(a.ep, memory, TW_INJECT_SIZE + 1, 1, to, 0, 1), -EINVAL);
    const size_t many = TW_ATOMIC_SIZE / 8 + 1;
    for (const size_t count : {many, SIZE_MAX, SIZE_MAX / 8 + 2}) {
        EXPECT_EQ(tw_atomic(a.ep, memory, count, to, 0, 1, TW_UINT64, TW_SUM, nullptr), -EMSGSIZE);
        EXPECT_EQ(
            tw_fetch_atomic(a.ep, memory, count, memory, to, 0, 1, TW_UINT64, TW_SUM, nullptr),
            -EMSGSIZE);
    }
    EXPECT_EQ(tw_inject_atomic(a.ep, memory, TW_INJECT_SIZE / 8 + 1, to, 0, 1, TW_UINT64, TW_SUM),
              -EINVAL);
    EXPECT_EQ(a.stat("rma_outstanding"), 0u);
}

TEST_F(RmaArguments, before_enable) {
    tw_ep* ep = nullptr;
    ASSERT_EQ(tw_ep_open(a.worker, nullptr, &ep), 0);
    for (const Call& call : calls()) {
        Given given = good(call.takes);
        aim(given);
        given.ep = ep;
        EXPECT_EQ(call.call(given), -TW_EOPBADSTATE) << call.name;
    }
    EXPECT_EQ(tw_ep_flush(ep, 0, nullptr), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_ep_flush(ep, TW_ADDR_UNSPEC, nullptr), -TW_EOPBADSTATE);
    EXPECT_EQ(tw_ep_flush(nullptr, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_ep_flush(a.ep, 12345, nullptr), -EINVAL);
    EXPECT_EQ(tw_ep_close(ep), 0);
}

TEST_F(RmaArguments, of_regions) {
    const iovec good_iov[2] = {{memory, 8}, {memory + 8, 8}};
    const tw_mr_attr good_attr{sizeof(tw_mr_attr), good_iov, 1, TW_REMOTE_READ, 0, 0, nullptr};
    const auto open = [&](auto spoil) {
        tw_mr_attr attr = good_attr;
        spoil(attr);
        tw_mr* mr = nullptr;
        return tw_mr_open(a.worker, &attr, &mr);
    };
    const iovec null[] = {{nullptr, 8}}, wraps[] = {{memory, SIZE_MAX}};
    EXPECT_EQ(open([](tw_mr_attr& attr) { attr.iov = nullptr; }), -EINVAL);
    EXPECT_EQ(open([](tw_mr_attr& attr) { attr.iov_count = 0; }), -EINVAL);
    EXPECT_EQ(open([](tw_mr_attr& attr) { attr.iov_count = 2; }), -EINVAL);
    EXPECT_EQ(open([](tw_mr_attr& attr) {
                  attr.flags = TW_MR_OFFSET;
                  attr.iov_count = kTooMany;
              }),
              -EINVAL);
    EXPECT_EQ(open([&](tw_mr_attr& attr) { attr.iov = null; }), -EINVAL);
    EXPECT_EQ(open([&](tw_mr_attr& attr) { attr.iov = wraps; }), -EINVAL);
    EXPECT_EQ(open([](tw_mr_attr& attr) { attr.access = TW_TAGGED; }), -EINVAL);
    EXPECT_EQ(open([](tw_mr_attr& attr) { attr.flags = TW_FENCE; }), -EINVAL);
    EXPECT_EQ(open([](tw_mr_attr& attr) { attr.size = 1; }), -EINVAL);
    tw_mr* mr = nullptr;
    EXPECT_EQ(tw_mr_open(nullptr, &good_attr, &mr), -EINVAL);
    EXPECT_EQ(tw_mr_open(a.worker, nullptr, &mr), -EINVAL);
    EXPECT_EQ(tw_mr_open(a.worker, &good_attr, nullptr), -EINVAL);
    EXPECT_EQ(tw_mr_close(nullptr), -EINVAL);
    EXPECT_EQ(tw_mr_bind_cntr(nullptr, nullptr, TW_REMOTE_READ), -EINVAL);
    EXPECT_EQ(tw_mr_key(nullptr), 0u);
    EXPECT_EQ(tw_mr_context(nullptr), nullptr);
    size_t count;
    EXPECT_EQ(tw_atomic_valid(a.ep, TW_UINT64, TW_SUM, 0, nullptr), -EINVAL);
    EXPECT_EQ(tw_atomic_valid(a.ep, TW_UINT64, TW_SUM, TW_READ, &count), -EINVAL);
    EXPECT_EQ(a.stat("rma_regions"), 0u);
}

// As many as may be outstanding: then EAGAIN, and again room once they ended.
TEST(RmaAgain, when_operations_or_the_queue_are_full) {
    sim::Simulator simulator{sim::seed() + 1};
    PeerOptions operations, entries;
    operations.max_operations = 64;
    entries.cq_entries = 16;
    SimPeer b{simulator.add_node()};
    Memory memory(b, 64);
    uint64_t word = 0;
    const auto fill = [&](SimPeer& a) {
        int posted = 0;
        while (tw_read(a.ep, &word, 8, a.address_of(b), memory.address(), memory.key(), nullptr) ==
               0) {
            ++posted;
        }
        EXPECT_EQ(
            tw_write(a.ep, &word, 8, a.address_of(b), memory.address(), memory.key(), nullptr),
            -EAGAIN);
        EXPECT_EQ(tw_ep_flush(a.ep, a.address_of(b), nullptr), -EAGAIN);
        a.wake();
        EXPECT_TRUE(simulator.run_until([&] { return a.ended() == size_t(posted); }, kSecond));
        EXPECT_TRUE(a.errors.empty());
        return posted;
    };
    for (const PeerOptions& options : {operations, entries}) {
        SimPeer a{simulator.add_node(), options};
        const int posted = fill(a);
        EXPECT_EQ(posted, options.cq_entries != 0 ? 16 : 64);
        a.sent.clear();
        EXPECT_EQ(fill(a), posted);
    }
    memory.close();
}

}  // namespace
}  // namespace tagwire::test
