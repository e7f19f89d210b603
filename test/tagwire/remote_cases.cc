// SPDX-License-Identifier: BSD-3-Clause
// Calls on remote memory with each argument wrong in turn, and what the pages of doc/api say of it.
#include <sys/uio.h>

#include "test/tagwire/argument_cases.h"

namespace tagwire::test {
namespace {

int open_region(Objects& o, void (*spoil)(tw_mr_attr&)) {
    static iovec iov[TW_IOV_LIMIT + 1];
    for (iovec& entry : iov) {
        entry = {o.results.memory, 64};
    }
    tw_mr_attr attr{};
    attr.size = sizeof(attr);
    attr.iov = iov;
    attr.iov_count = 1;
    attr.access = TW_REMOTE_READ;
    spoil(attr);
    return tw_mr_open(o.worker, &attr, &o.results.mr);
}

// What a put or get is called with; each call picks what it takes.
struct RmaGiven {
    explicit RmaGiven(Objects& o) : ep(o.ep), buffer(o.results.memory), address(o.peer) {
        for (iovec& entry : iov) {
            entry = {buffer, 8};
        }
        for (tw_rma_iov& entry : remote) {
            entry = {0, 8, o.key};
        }
    }
    tw_msg_rma message() const {
        return {vector_is_null ? nullptr : iov,
                count,
                address,
                remote_is_null ? nullptr : remote,
                remote_count,
                nullptr,
                1};
    }
    const iovec* vector() const { return vector_is_null ? nullptr : iov; }

    tw_ep* ep;
    void* buffer;
    size_t length = 16;
    iovec iov[TW_IOV_LIMIT + 1];
    size_t count = 2;
    tw_rma_iov remote[TW_IOV_LIMIT + 1];
    size_t remote_count = 2;
    tw_addr address;
    uint64_t flags = 0;
    bool vector_is_null = false;
    bool remote_is_null = false;
    bool message_is_null = false;
};

struct RmaCallUnderTest {
    const char* name;
    bool has_vector;
    bool has_message;
    bool injects;
    uint64_t flags;  // that it takes, with a message
    int (*call)(const RmaGiven&);
};

constexpr uint64_t kLevels =
    TW_INJECT_COMPLETE | TW_TRANSMIT_COMPLETE | TW_DELIVERY_COMPLETE | TW_MATCH_COMPLETE;
constexpr uint64_t kReadFlags = TW_COMPLETION | TW_MORE | TW_FENCE | kLevels;
constexpr uint64_t kWriteFlags = kReadFlags | TW_INJECT | TW_REMOTE_CQ_DATA;
constexpr uint64_t kAtomicFlags = kReadFlags | TW_INJECT;

const RmaCallUnderTest kRmaCalls[] = {
    {"tw_write", false, false, false, 0,
     [](const RmaGiven& g) {
         return tw_write(g.ep, g.buffer, g.length, g.address, 0, 1, nullptr);
     }},
    {"tw_writev", true, false, false, 0,
     [](const RmaGiven& g) {
         return tw_writev(g.ep, g.vector(), g.count, g.address, 0, 1, nullptr);
     }},
    {"tw_writemsg", true, true, false, kWriteFlags,
     [](const RmaGiven& g) {
         const tw_msg_rma m = g.message();
         return tw_writemsg(g.ep, g.message_is_null ? nullptr : &m, g.flags);
     }},
    {"tw_inject_write", false, false, true, 0,
     [](const RmaGiven& g) { return tw_inject_write(g.ep, g.buffer, g.length, g.address, 0, 1); }},
    {"tw_writedata", false, false, false, 0,
     [](const RmaGiven& g) {
         return tw_writedata(g.ep, g.buffer, g.length, 7, g.address, 0, 1, nullptr);
     }},
    {"tw_inject_writedata", false, false, true, 0,
     [](const RmaGiven& g) {
         return tw_inject_writedata(g.ep, g.buffer, g.length, 7, g.address, 0, 1);
     }},
    {"tw_read", false, false, false, 0,
     [](const RmaGiven& g) { return tw_read(g.ep, g.buffer, g.length, g.address, 0, 1, nullptr); }},
    {"tw_readv", true, false, false, 0,
     [](const RmaGiven& g) {
         return tw_readv(g.ep, g.vector(), g.count, g.address, 0, 1, nullptr);
     }},
    {"tw_readmsg", true, true, false, kReadFlags,
     [](const RmaGiven& g) {
         const tw_msg_rma m = g.message();
         return tw_readmsg(g.ep, g.message_is_null ? nullptr : &m, g.flags);
     }},
};

// What an atomic is called with.
struct AtomicGiven {
    explicit AtomicGiven(Objects& o)
        : ep(o.ep),
          buffer(o.results.memory),
          compare(o.results.memory),
          result(o.results.memory),
          address(o.peer) {
        for (int i = 0; i <= TW_IOV_LIMIT; ++i) {
            operands[i] = compares[i] = results[i] = {o.results.memory, 1};
            remote[i] = {0, 1, o.key};
        }
    }
    tw_msg_atomic message() const {
        return {operands_are_null ? nullptr : operands,
                operand_count,
                address,
                remote_is_null ? nullptr : remote,
                remote_count,
                datatype,
                op,
                nullptr,
                0};
    }

    tw_ep* ep;
    void* buffer;
    void* compare;
    void* result;
    size_t count = 2;
    tw_ioc operands[TW_IOV_LIMIT + 1], compares[TW_IOV_LIMIT + 1], results[TW_IOV_LIMIT + 1];
    size_t operand_count = 2, compare_count = 2, result_count = 2;
    tw_rma_ioc remote[TW_IOV_LIMIT + 1];
    size_t remote_count = 2;
    tw_addr address;
    tw_datatype datatype = TW_UINT64;
    tw_op op = TW_SUM;
    uint64_t flags = 0;
    bool operands_are_null = false, compares_are_null = false, results_are_null = false;
    bool remote_is_null = false, message_is_null = false;
};

enum class Form { kBase, kFetch, kCompare };

struct AtomicCallUnderTest {
    const char* name;
    Form form;
    bool has_vector;
    bool has_message;
    bool injects;
    int (*call)(const AtomicGiven&);
};

const AtomicCallUnderTest kAtomicCalls[] = {
    {"tw_atomic", Form::kBase, false, false, false,
     [](const AtomicGiven& g) {
         return tw_atomic(g.ep, g.buffer, g.count, g.address, 0, 1, g.datatype, g.op, nullptr);
     }},
    {"tw_atomicv", Form::kBase, true, false, false,
     [](const AtomicGiven& g) {
         return tw_atomicv(g.ep, g.operands_are_null ? nullptr : g.operands, g.operand_count,
                           g.address, 0, 1, g.datatype, g.op, nullptr);
     }},
    {"tw_atomicmsg", Form::kBase, true, true, false,
     [](const AtomicGiven& g) {
         const tw_msg_atomic m = g.message();
         return tw_atomicmsg(g.ep, g.message_is_null ? nullptr : &m, g.flags);
     }},
    {"tw_inject_atomic", Form::kBase, false, false, true,
     [](const AtomicGiven& g) {
         return tw_inject_atomic(g.ep, g.buffer, g.count, g.address, 0, 1, g.datatype, g.op);
     }},
    {"tw_fetch_atomic", Form::kFetch, false, false, false,
     [](const AtomicGiven& g) {
         return tw_fetch_atomic(g.ep, g.buffer, g.count, g.result, g.address, 0, 1, g.datatype,
                                g.op, nullptr);
     }},
    {"tw_fetch_atomicv", Form::kFetch, true, false, false,
     [](const AtomicGiven& g) {
         return tw_fetch_atomicv(g.ep, g.operands_are_null ? nullptr : g.operands, g.operand_count,
                                 g.results_are_null ? nullptr : g.results, g.result_count,
                                 g.address, 0, 1, g.datatype, g.op, nullptr);
     }},
    {"tw_fetch_atomicmsg", Form::kFetch, true, true, false,
     [](const AtomicGiven& g) {
         const tw_msg_atomic m = g.message();
         return tw_fetch_atomicmsg(g.ep, g.message_is_null ? nullptr : &m,
                                   g.results_are_null ? nullptr : g.results, g.result_count,
                                   g.flags);
     }},
    {"tw_compare_atomic", Form::kCompare, false, false, false,
     [](const AtomicGiven& g) {
         return tw_compare_atomic(g.ep, g.buffer, g.count, g.compare, g.result, g.address, 0, 1,
                                  g.datatype, g.op, nullptr);
     }},
    {"tw_compare_atomicv", Form::kCompare, true, false, false,
     [](const AtomicGiven& g) {
         return tw_compare_atomicv(g.ep, g.operands_are_null ? nullptr : g.operands,
                                   g.operand_count, g.compares_are_null ? nullptr : g.compares,
                                   g.compare_count, g.results_are_null ? nullptr : g.results,
                                   g.result_count, g.address, 0, 1, g.datatype, g.op, nullptr);
     }},
    {"tw_compare_atomicmsg", Form::kCompare, true, true, false,
     [](const AtomicGiven& g) {
         const tw_msg_atomic m = g.message();
         return tw_compare_atomicmsg(
             g.ep, g.message_is_null ? nullptr : &m, g.compares_are_null ? nullptr : g.compares,
             g.compare_count, g.results_are_null ? nullptr : g.results, g.result_count, g.flags);
     }},
};

// Calls `call` with what `spoil` makes of good arguments.
template <typename Given, typename Call>
void add(Cases& cases, const Call& call, const char* wrong, int error,
         std::function<void(Given&, Objects&)> spoil) {
    cases.push_back({call.name, wrong, -error, [&call, spoil](Objects& o) {
                         Given given(o);
                         if constexpr (requires { given.op; }) {
                             given.op = call.form == Form::kCompare ? TW_CSWAP : TW_SUM;
                         }
                         spoil(given, o);
                         return call.call(given);
                     }});
}

// What every call on remote memory has.
template <typename Given, typename Call>
void add_common(Cases& cases, const Call& call, uint64_t flags) {
    const auto wrong = [&](const char* what, int error,
                           std::function<void(Given&, Objects&)> spoil) {
        add<Given>(cases, call, what, error, spoil);
    };
    wrong("ep", EINVAL, [](Given& g, Objects&) { g.ep = nullptr; });
    wrong("not enabled", TW_EOPBADSTATE, [](Given& g, Objects& o) { g.ep = o.idle; });
    wrong("address", EINVAL, [](Given& g, Objects&) { g.address = 12345; });
    wrong("TW_ADDR_UNSPEC", EINVAL, [](Given& g, Objects&) { g.address = TW_ADDR_UNSPEC; });
    if (!call.has_message) {
        return;
    }
    wrong("msg", EINVAL, [](Given& g, Objects&) { g.message_is_null = true; });
    wrong("no remote memory", EINVAL, [](Given& g, Objects&) { g.remote_is_null = true; });
    wrong("remote count 0", EINVAL, [](Given& g, Objects&) { g.remote_count = 0; });
    wrong("remote count", EINVAL, [](Given& g, Objects&) { g.remote_count = TW_IOV_LIMIT + 1; });
    wrong("less remote memory", EINVAL, [](Given& g, Objects&) { g.remote_count = 1; });
    wrong("two levels", EINVAL,
          [](Given& g, Objects&) { g.flags = TW_TRANSMIT_COMPLETE | TW_DELIVERY_COMPLETE; });
    for (unsigned bit = 0; bit < 64; ++bit) {
        if ((flags >> bit & 1) == 0) {
            wrong("flag", EINVAL, [bit](Given& g, Objects&) { g.flags = uint64_t{1} << bit; });
        }
    }
}

}  // namespace

Cases region_cases() {
    Cases cases = {
        {"tw_mr_open", "worker", -EINVAL,
         [](Objects& o) {
             const iovec iov{o.results.memory, 8};
             tw_mr_attr attr{};
             attr.size = sizeof(attr);
             attr.iov = &iov;
             attr.iov_count = 1;
             return tw_mr_open(nullptr, &attr, &o.results.mr);
         }},
        {"tw_mr_open", "attr", -EINVAL,
         [](Objects& o) { return tw_mr_open(o.worker, nullptr, &o.results.mr); }},
        {"tw_mr_open", "mr", -EINVAL,
         [](Objects& o) {
             const iovec iov{o.results.memory, 8};
             tw_mr_attr attr{};
             attr.size = sizeof(attr);
             attr.iov = &iov;
             attr.iov_count = 1;
             return tw_mr_open(o.worker, &attr, nullptr);
         }},
        {"tw_mr_open", "requested key in use", -ENOKEY,
         [](Objects& o) {
             const iovec iov{o.results.memory, 8};
             tw_mr_attr attr{};
             attr.size = sizeof(attr);
             attr.iov = &iov;
             attr.iov_count = 1;
             attr.flags = TW_MR_REQUESTED_KEY;
             attr.requested_key = o.key;
             return tw_mr_open(o.worker, &attr, &o.results.mr);
         }},
        {"tw_mr_close", "mr", -EINVAL, [](Objects&) { return tw_mr_close(nullptr); }},
        {"tw_mr_bind_cntr", "mr", -EINVAL,
         [](Objects& o) { return tw_mr_bind_cntr(nullptr, o.free_cntr, TW_REMOTE_WRITE); }},
        {"tw_mr_bind_cntr", "cntr", -EINVAL,
         [](Objects& o) { return tw_mr_bind_cntr(o.mr, nullptr, TW_REMOTE_WRITE); }},
        {"tw_mr_bind_cntr", "another worker's", -EINVAL,
         [](Objects& o) { return tw_mr_bind_cntr(o.mr, o.other_cntr, TW_REMOTE_WRITE); }},
        {"tw_mr_bind_cntr", "no flags", -EINVAL,
         [](Objects& o) { return tw_mr_bind_cntr(o.mr, o.free_cntr, 0); }},
        {"tw_mr_bind_cntr", "a region that does not count", -EINVAL,
         [](Objects& o) { return tw_mr_bind_cntr(o.silent_mr, o.free_cntr, TW_REMOTE_WRITE); }},
        {"tw_mr_bind_cntr", "bound already", -EBUSY,
         [](Objects& o) {
             return tw_mr_bind_cntr(o.mr, o.free_cntr, TW_REMOTE_READ | TW_REMOTE_WRITE);
         }},
    };
    const auto attribute = [&](const char* wrong, void (*spoil)(tw_mr_attr&)) {
        cases.push_back(
            {"tw_mr_open", wrong, -EINVAL, [spoil](Objects& o) { return open_region(o, spoil); }});
    };
    attribute("size 0", [](tw_mr_attr& a) { a.size = 0; });
    attribute("iov", [](tw_mr_attr& a) { a.iov = nullptr; });
    attribute("iov_count 0", [](tw_mr_attr& a) { a.iov_count = 0; });
    attribute("iov_count", [](tw_mr_attr& a) {
        a.iov_count = TW_IOV_LIMIT + 1;
        a.flags = TW_MR_OFFSET;
    });
    attribute("pieces without TW_MR_OFFSET", [](tw_mr_attr& a) { a.iov_count = 2; });
    attribute("NULL memory", [](tw_mr_attr& a) {
        static const iovec null{nullptr, 8};
        a.iov = &null;
    });
    attribute("memory that wraps", [](tw_mr_attr& a) {
        static const iovec wraps{reinterpret_cast<void*>(64), SIZE_MAX};
        a.iov = &wraps;
    });
    for (unsigned bit = 0; bit < 64; ++bit) {
        const uint64_t flag = uint64_t{1} << bit;
        constexpr uint64_t kAccess =
            TW_REMOTE_READ | TW_REMOTE_WRITE | TW_READ | TW_WRITE | TW_SEND | TW_RECV;
        const auto open = [flag](Objects& o, bool access) {
            const iovec iov{o.results.memory, 8};
            tw_mr_attr attr{};
            attr.size = sizeof(attr);
            attr.iov = &iov;
            attr.iov_count = 1;
            (access ? attr.access : attr.flags) = flag;
            return tw_mr_open(o.worker, &attr, &o.results.mr);
        };
        if ((flag & (TW_MR_REQUESTED_KEY | TW_MR_OFFSET | TW_RMA_EVENT)) == 0) {
            cases.push_back(
                {"tw_mr_open", "flag", -EINVAL, [open](Objects& o) { return open(o, false); }});
        }
        if ((flag & kAccess) == 0) {
            cases.push_back(
                {"tw_mr_open", "access", -EINVAL, [open](Objects& o) { return open(o, true); }});
        }
        if ((flag & (TW_REMOTE_READ | TW_REMOTE_WRITE)) == 0) {
            cases.push_back({"tw_mr_bind_cntr", "flag", -EINVAL, [flag](Objects& o) {
                                 return tw_mr_bind_cntr(o.mr, o.free_cntr, TW_REMOTE_WRITE | flag);
                             }});
        }
    }
    return cases;
}

Cases rma_cases() {
    Cases cases = {
        {"tw_ep_flush", "ep", -EINVAL,
         [](Objects& o) { return tw_ep_flush(nullptr, o.peer, nullptr); }},
        {"tw_ep_flush", "not enabled", -TW_EOPBADSTATE,
         [](Objects& o) { return tw_ep_flush(o.idle, o.peer, nullptr); }},
        {"tw_ep_flush", "address", -EINVAL,
         [](Objects& o) { return tw_ep_flush(o.ep, 12345, nullptr); }},
    };
    for (const RmaCallUnderTest& call : kRmaCalls) {
        const auto wrong = [&](const char* what, int error,
                               std::function<void(RmaGiven&, Objects&)> spoil) {
            add<RmaGiven>(cases, call, what, error, spoil);
        };
        add_common<RmaGiven>(cases, call, call.flags);
        if (call.has_vector) {
            wrong("iov", EINVAL, [](RmaGiven& g, Objects&) { g.vector_is_null = true; });
            wrong("count", EINVAL, [](RmaGiven& g, Objects&) { g.count = TW_IOV_LIMIT + 1; });
            wrong("NULL in iov", EINVAL,
                  [](RmaGiven& g, Objects&) { g.iov[1].iov_base = nullptr; });
            wrong("lengths that wrap", EINVAL,
                  [](RmaGiven& g, Objects&) { g.iov[1].iov_len = SIZE_MAX; });
        } else {
            wrong("buffer", EINVAL, [](RmaGiven& g, Objects&) { g.buffer = nullptr; });
            wrong("length", call.injects ? EINVAL : EMSGSIZE, [&call](RmaGiven& g, Objects&) {
                g.length = call.injects ? TW_INJECT_SIZE + 1 : TW_MAX_MESSAGE_SIZE + 1;
            });
        }
        if (call.has_message) {
            wrong("remote lengths that wrap", EINVAL,
                  [](RmaGiven& g, Objects&) { g.remote[1].length = SIZE_MAX; });
        }
    }
    return cases;
}

Cases atomic_cases() {
    Cases cases = {
        {"tw_atomic_valid", "count", -EINVAL,
         [](Objects& o) { return tw_atomic_valid(o.ep, TW_INT8, TW_SUM, 0, nullptr); }},
        {"tw_atomic_valid", "kind", -EINVAL,
         [](Objects& o) { return tw_atomic_valid(o.ep, TW_INT8, TW_SUM, 1, &o.results.size); }},
        {"tw_atomic_valid", "both kinds", -EINVAL,
         [](Objects& o) {
             return tw_atomic_valid(o.ep, TW_INT8, TW_SUM, TW_FETCH_ATOMIC | TW_COMPARE_ATOMIC,
                                    &o.results.size);
         }},
        {"tw_atomic_valid", "datatype", -EOPNOTSUPP,
         [](Objects& o) {
             return tw_atomic_valid(o.ep, static_cast<tw_datatype>(31), TW_SUM, 0, &o.results.size);
         }},
        {"tw_atomic_valid", "op", -EOPNOTSUPP,
         [](Objects& o) {
             return tw_atomic_valid(o.ep, TW_INT8, static_cast<tw_op>(31), 0, &o.results.size);
         }},
        {"tw_atomic_valid", "a comparing operation that fetches", -EOPNOTSUPP,
         [](Objects& o) {
             return tw_atomic_valid(o.ep, TW_INT8, TW_CSWAP, TW_FETCH_ATOMIC, &o.results.size);
         }},
    };
    for (const AtomicCallUnderTest& call : kAtomicCalls) {
        const auto wrong = [&](const char* what, int error,
                               std::function<void(AtomicGiven&, Objects&)> spoil) {
            add<AtomicGiven>(cases, call, what, error, spoil);
        };
        add_common<AtomicGiven>(cases, call, kAtomicFlags);
        wrong("datatype", EOPNOTSUPP,
              [](AtomicGiven& g, Objects&) { g.datatype = static_cast<tw_datatype>(31); });
        wrong("op", EOPNOTSUPP, [](AtomicGiven& g, Objects&) { g.op = static_cast<tw_op>(31); });
        wrong("op of another call", EOPNOTSUPP, [&call](AtomicGiven& g, Objects&) {
            g.op = call.form == Form::kCompare ? TW_SUM : TW_CSWAP;
        });
        if (!call.has_vector) {
            wrong("buffer", EINVAL, [](AtomicGiven& g, Objects&) { g.buffer = nullptr; });
            wrong("count 0", EINVAL, [](AtomicGiven& g, Objects&) { g.count = 0; });
            wrong("count", call.injects ? EINVAL : EMSGSIZE, [&call](AtomicGiven& g, Objects&) {
                g.count = (call.injects ? TW_INJECT_SIZE : TW_ATOMIC_SIZE) / 8 + 1;
            });
            wrong("count that wraps", EMSGSIZE,
                  [](AtomicGiven& g, Objects&) { g.count = SIZE_MAX / 8 + 2; });
        } else {
            wrong("ioc", EINVAL, [](AtomicGiven& g, Objects&) { g.operands_are_null = true; });
            wrong("ioc_count 0", EINVAL, [](AtomicGiven& g, Objects&) { g.operand_count = 0; });
            wrong("ioc_count", EINVAL,
                  [](AtomicGiven& g, Objects&) { g.operand_count = TW_IOV_LIMIT + 1; });
            wrong("NULL in ioc", EINVAL,
                  [](AtomicGiven& g, Objects&) { g.operands[1].addr = nullptr; });
        }
        if (call.form != Form::kBase && !call.has_vector) {
            wrong("result", EINVAL, [](AtomicGiven& g, Objects&) { g.result = nullptr; });
        }
        if (call.form != Form::kBase && call.has_vector) {
            wrong("results", EINVAL, [](AtomicGiven& g, Objects&) { g.results_are_null = true; });
            wrong("result_count", EINVAL,
                  [](AtomicGiven& g, Objects&) { g.result_count = TW_IOV_LIMIT + 1; });
            wrong("fewer results", EINVAL, [](AtomicGiven& g, Objects&) { g.result_count = 1; });
            wrong("NULL in results", EINVAL,
                  [](AtomicGiven& g, Objects&) { g.results[1].addr = nullptr; });
        }
        if (call.form == Form::kCompare && !call.has_vector) {
            wrong("compare", EINVAL, [](AtomicGiven& g, Objects&) { g.compare = nullptr; });
        }
        if (call.form == Form::kCompare && call.has_vector) {
            wrong("compares", EINVAL, [](AtomicGiven& g, Objects&) { g.compares_are_null = true; });
            wrong("compare_count", EINVAL,
                  [](AtomicGiven& g, Objects&) { g.compare_count = TW_IOV_LIMIT + 1; });
            wrong("fewer compares", EINVAL, [](AtomicGiven& g, Objects&) { g.compare_count = 1; });
            wrong("NULL in compares", EINVAL,
                  [](AtomicGiven& g, Objects&) { g.compares[1].addr = nullptr; });
        }
    }
    return cases;
}

}  // namespace tagwire::test
