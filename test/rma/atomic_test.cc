// SPDX-License-Identifier: BSD-3-Clause
// Atomics, from outside: results, exactly once, refusals.
#include <cmath>
#include <deque>
#include <limits>

#include "test/rma/rma_fixture.h"

namespace tagwire::test {
namespace {

// What fi_atomic(3) says, written down a second time, in floating point of 80 bits or in
// integers of 128: the values of the tests are small enough for neither to round or wrap.
template <typename Wide>
Wide model(tw_op op, Wide old, Wide operand, Wide compare) {
    const auto truth = [](bool value) { return static_cast<Wide>(value ? 1 : 0); };
    switch (op) {
        case TW_MIN:
            return operand < old ? operand : old;
        case TW_MAX:
            return operand > old ? operand : old;
        case TW_SUM:
            return old + operand;
        case TW_PROD:
            return old * operand;
        case TW_LOR:
            return truth(old != 0 || operand != 0);
        case TW_LAND:
            return truth(old != 0 && operand != 0);
        case TW_LXOR:
            return truth((old != 0) ^ (operand != 0));
        case TW_ATOMIC_READ:
            return old;
        case TW_ATOMIC_WRITE:
            return operand;
        case TW_CSWAP:
            return compare == old ? operand : old;
        case TW_CSWAP_NE:
            return compare != old ? operand : old;
        case TW_CSWAP_LE:
            return compare <= old ? operand : old;
        case TW_CSWAP_LT:
            return compare < old ? operand : old;
        case TW_CSWAP_GE:
            return compare >= old ? operand : old;
        case TW_CSWAP_GT:
            return compare > old ? operand : old;
        default:
            if constexpr (std::is_integral_v<Wide>) {
                switch (op) {
                    case TW_BOR:
                        return old | operand;
                    case TW_BAND:
                        return old & operand;
                    case TW_BXOR:
                        return old ^ operand;
                    default:
                        return (operand & compare) | (old & ~compare);
                }
            }
            ADD_FAILURE() << "no such operation: " << op;
            return 0;
    }
}

class Atomics : public RmaPair {
  protected:
    template <typename T>
    void check_type(tw_datatype datatype) {
        for (int op = TW_MIN; op <= TW_MSWAP; ++op) {
            check_operation<T>(datatype, static_cast<tw_op>(op));
        }
    }

    template <typename T>
    void check_operation(tw_datatype datatype, tw_op op) {
        for (const uint64_t kind : {0ull, TW_FETCH_ATOMIC, TW_COMPARE_ATOMIC}) {
            size_t most = 0;
            const bool bitwise = op == TW_BOR || op == TW_BAND || op == TW_BXOR || op == TW_MSWAP;
            const bool exists = (kind == TW_COMPARE_ATOMIC) == (op >= TW_CSWAP) &&
                                !(kind == 0 && op == TW_ATOMIC_READ) &&
                                !(bitwise && std::is_floating_point_v<T>);
            const int result = tw_atomic_valid(a.ep, datatype, op, kind, &most);
            ASSERT_EQ(result, exists ? 0 : -EOPNOTSUPP) << datatype << ' ' << op << ' ' << kind;
            if (exists) {
                EXPECT_EQ(most, TW_ATOMIC_SIZE / sizeof(T));
                check_call<T>(datatype, op, kind);
            }
        }
    }

    // Every pair of a few values, in one operation of many elements.
    template <typename T>
    void check_call(tw_datatype datatype, tw_op op, uint64_t kind) {
        const T values[] = {0, 1, 2, 3, 5, 7};
        std::vector<T> operands, compares, old;
        for (const T first : values) {
            for (const T second : values) {
                old.push_back(first);
                operands.push_back(second);
                compares.push_back(static_cast<T>((operands.size() % 3) * 2 + 1));
            }
        }
        const size_t count = old.size();
        Memory memory(b, count * sizeof(T) + 16);
        const size_t offset = 8;
        std::memcpy(memory.bytes.data() + offset, old.data(), count * sizeof(T));
        std::vector<T> results(count, T{99});
        const tw_addr to = a.address_of(b);
        const uint64_t address = memory.address(offset);
        if (kind == 0) {
            a.posted(tw_atomic(a.ep, operands.data(), count, to, address, memory.key(), datatype,
                               op, nullptr));
        } else if (kind == TW_FETCH_ATOMIC) {
            const void* const given = op == TW_ATOMIC_READ ? nullptr : operands.data();
            a.posted(tw_fetch_atomic(a.ep, given, count, results.data(), to, address, memory.key(),
                                     datatype, op, nullptr));
        } else {
            a.posted(tw_compare_atomic(a.ep, operands.data(), count, compares.data(),
                                       results.data(), to, address, memory.key(), datatype, op,
                                       nullptr));
        }
        const std::vector<T> sent = operands;
        operands.assign(count, T{77});  // they are free on return
        ASSERT_TRUE(finish());
        ASSERT_TRUE(a.errors.empty()) << a.errors[0].error << ' ' << datatype << ' ' << op;
        ASSERT_EQ(a.sent.size(), 1u);
        EXPECT_EQ(a.sent[0].flags, TW_ATOMIC | (kind == 0 ? TW_WRITE : TW_READ));
        a.sent.clear();
        using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, long double>;
        for (size_t i = 0; i < count; ++i) {
            const T expected = static_cast<T>(model<Wide>(op, old[i], sent[i], compares[i]));
            EXPECT_EQ(memory.at<T>(offset + i * sizeof(T)), expected)
                << datatype << " op " << op << ": " << +old[i] << ' ' << +sent[i] << ' '
                << +compares[i];
            EXPECT_EQ(results[i], kind == 0 ? T{99} : old[i]);
        }
        EXPECT_EQ(memory.bytes.substr(0, offset), std::string(offset, '\0'));
        EXPECT_EQ(memory.bytes.substr(offset + count * sizeof(T)), std::string(8, '\0'));
    }
};

TEST_F(Atomics, every_operation_of_8_bit_integers) {
    check_type<int8_t>(TW_INT8);
    check_type<uint8_t>(TW_UINT8);
}
TEST_F(Atomics, every_operation_of_16_bit_integers) {
    check_type<int16_t>(TW_INT16);
    check_type<uint16_t>(TW_UINT16);
}
TEST_F(Atomics, every_operation_of_32_bit_integers) {
    check_type<int32_t>(TW_INT32);
    check_type<uint32_t>(TW_UINT32);
}
TEST_F(Atomics, every_operation_of_64_bit_integers) {
    check_type<int64_t>(TW_INT64);
    check_type<uint64_t>(TW_UINT64);
}
TEST_F(Atomics, every_operation_of_floating_point_numbers) {
    check_type<float>(TW_FLOAT);
    check_type<double>(TW_DOUBLE);
}

TEST_F(Atomics, signs_matter_where_the_type_has_them) {
    const auto greatest = [&]<typename T>(tw_datatype datatype, T old, T operand) {
        Memory memory(b, sizeof(T));
        memory.at<T>(0) = old;
        a.posted(tw_atomic(a.ep, &operand, 1, a.address_of(b), memory.address(), memory.key(),
                           datatype, TW_MAX, nullptr));
        EXPECT_TRUE(finish());
        return memory.at<T>(0);
    };
    EXPECT_EQ(greatest(TW_INT8, int8_t{-5}, int8_t{3}), 3);
    EXPECT_EQ(greatest(TW_INT16, int16_t{-5}, int16_t{3}), 3);
    EXPECT_EQ(greatest(TW_INT32, int32_t{-5}, int32_t{3}), 3);
    EXPECT_EQ(greatest(TW_INT64, int64_t{-5}, int64_t{3}), 3);
    EXPECT_EQ(greatest(TW_UINT8, uint8_t{251}, uint8_t{3}), 251);
    EXPECT_EQ(greatest(TW_UINT16, uint16_t{65531}, uint16_t{3}), 65531);
    EXPECT_EQ(greatest(TW_UINT32, ~uint32_t{4}, uint32_t{3}), ~uint32_t{4});
    EXPECT_EQ(greatest(TW_UINT64, ~uint64_t{4}, uint64_t{3}), ~uint64_t{4});
}

TEST_F(Atomics, sums_wrap_around) {
    Memory memory(b, 8);
    memory.at<int32_t>(0) = std::numeric_limits<int32_t>::max();
    const int32_t one = 1;
    a.posted(tw_atomic(a.ep, &one, 1, a.address_of(b), memory.address(), memory.key(), TW_INT32,
                       TW_SUM, nullptr));
    ASSERT_TRUE(finish());
    EXPECT_EQ(memory.at<int32_t>(0), std::numeric_limits<int32_t>::min());
}

TEST_F(Atomics, the_most_elements_with_vectors_and_several_places) {
    constexpr size_t kCount = TW_ATOMIC_SIZE / 8;
    Memory first(b, TW_ATOMIC_SIZE), second(b, TW_ATOMIC_SIZE);
    std::vector<uint64_t> operands(kCount), compares(kCount, 0), results(kCount, 1);
    for (size_t i = 0; i < kCount; ++i) {
        operands[i] = i + 1;
    }
    const tw_ioc ioc[] = {{operands.data(), 5}, {operands.data() + 5, kCount - 5}};
    const tw_ioc compare[] = {{compares.data(), kCount}};
    const tw_ioc result[] = {{results.data(), 100}, {results.data() + 100, kCount - 100}};
    const tw_rma_ioc remote[] = {{first.address(8), 60, first.key()},
                                 {second.address(), kCount - 60, second.key()}};
    tw_msg_atomic message{ioc, 2, a.address_of(b), remote, 2, TW_UINT64, TW_CSWAP, nullptr, 0};
    a.posted(tw_compare_atomicmsg(a.ep, &message, compare, 1, result, 2, 0));
    ASSERT_TRUE(finish());
    ASSERT_EQ(a.sent.size(), 1u);
    EXPECT_EQ(a.sent[0].length, TW_ATOMIC_SIZE);
    EXPECT_EQ(results, std::vector<uint64_t>(kCount, 0));
    for (size_t i = 0; i < kCount; ++i) {
        const uint64_t there =
            i < 60 ? first.at<uint64_t>(8 + 8 * i) : second.at<uint64_t>(8 * (i - 60));
        ASSERT_EQ(there, i + 1);
    }
    EXPECT_EQ(first.at<uint64_t>(0), 0u);
}

TEST_F(Atomics, inject_and_own_memory) {
    Memory memory(a, 8);
    uint64_t one = 1;
    for (int i = 0; i < 3; ++i) {
        a.posted(tw_inject_atomic(a.ep, &one, 1, a.address_of(a), memory.address(), memory.key(),
                                  TW_UINT64, TW_SUM));
    }
    ASSERT_TRUE(finish());
    EXPECT_EQ(memory.at<uint64_t>(0), 3u);
    EXPECT_TRUE(a.sent.empty());
}

class RefusedAtomics : public RmaPair {
  protected:
    void add(uint64_t address, uint64_t key, void* fetched = nullptr) {
        const uint64_t one = 1;
        const tw_addr to = a.address_of(b);
        a.posted(fetched == nullptr
                     ? tw_atomic(a.ep, &one, 1, to, address, key, TW_UINT64, TW_SUM, nullptr)
                     : tw_fetch_atomic(a.ep, &one, 1, fetched, to, address, key, TW_UINT64, TW_SUM,
                                       nullptr));
    }
    uint64_t result = 5;
};

TEST_F(RefusedAtomics, misaligned) {
    Memory memory(b, 64);
    add(memory.address(4), memory.key());
    expect_refused(EINVAL, "rma_refused_alignment");
    EXPECT_EQ(memory.bytes, std::string(64, '\0'));
}

TEST_F(RefusedAtomics, across_pieces_of_a_region) {
    alignas(8) char bytes[16] = {};
    Memory memory(b, {{bytes, 4}, {bytes + 4, 12}});
    add(0, memory.key());
    expect_refused(EINVAL, "rma_refused_alignment");
    EXPECT_EQ(std::string(bytes, 16), std::string(16, '\0'));
    memory.close();
}

TEST_F(RefusedAtomics, beyond_the_region) {
    Memory memory(b, 64);
    add(memory.address(64), memory.key(), &result);
    expect_refused(EFAULT, "rma_refused_range");
    EXPECT_EQ(result, 5u);
}

TEST_F(RefusedAtomics, unknown_key) {
    Memory memory(b, 64);
    add(memory.address(), memory.key() + 1, &result);
    expect_refused(ENOKEY, "rma_refused_key");
    EXPECT_EQ(result, 5u);
}

TEST_F(RefusedAtomics, without_the_right_to_read_what_is_fetched) {
    Memory memory(b, 64, TW_REMOTE_WRITE);
    add(memory.address(), memory.key(), &result);
    expect_refused(EACCES, "rma_refused_access");
    add(memory.address(), memory.key());
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    EXPECT_EQ(memory.at<uint64_t>(0), 1u);
}

TEST_F(RefusedAtomics, without_the_right_to_write) {
    Memory memory(b, 64, TW_REMOTE_READ);
    add(memory.address(), memory.key(), &result);
    expect_refused(EACCES, "rma_refused_access");
    a.posted(tw_fetch_atomic(a.ep, nullptr, 1, &result, a.address_of(b), memory.address(),
                             memory.key(), TW_UINT64, TW_ATOMIC_READ, nullptr));
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    EXPECT_EQ(result, 0u);
}

// One counter at the target, several origins, and a bad network.
class Exactly : public testing::Test {
  protected:
    static constexpr int kOrigins = 4;
    static uint64_t increments() {
        return std::getenv("TAGWIRE_TEST_SLOW") != nullptr ? 1'000'000 : 3'000;
    }
    void SetUp() override {
        simulator.faults.loss = 0.01;
        simulator.faults.duplication = 0.01;
        simulator.faults.reordering = 0.01;
        for (int i = 0; i < kOrigins; ++i) {
            origins.emplace_back(simulator.add_node());
        }
    }
    bool run(const std::function<bool()>& done) {
        return simulator.run_until(done, 100'000 * kSecond);
    }

    sim::Simulator simulator{sim::seed() + 7};
    SimPeer target{simulator.add_node()};
    std::deque<SimPeer> origins;
};

TEST_F(Exactly, sums_are_exact_and_every_value_is_fetched_once) {
    Memory memory(target, 16);
    const uint64_t each = increments();
    std::vector<std::deque<uint64_t>> fetched(kOrigins);
    std::vector<uint64_t> posted(kOrigins, 0), plain(kOrigins, 0);
    const uint64_t one = 1;
    ASSERT_TRUE(run([&] {
        bool done = true;
        for (size_t i = 0; i < kOrigins; ++i) {
            SimPeer& origin = origins[i];
            const tw_addr to = origin.address_of(target);
            while (posted[i] < each && posted[i] + plain[i] - origin.ended() < 64) {
                origin.posted(tw_fetch_atomic(origin.ep, &one, 1, &fetched[i].emplace_back(), to,
                                              memory.address(), memory.key(), TW_UINT64, TW_SUM,
                                              nullptr));
                if (++posted[i] % 2 == 0) {
                    ++plain[i];
                    origin.posted(tw_atomic(origin.ep, &one, 1, to, memory.address(8), memory.key(),
                                            TW_UINT64, TW_SUM, nullptr));
                }
            }
            done = done && origin.ended() == each + each / 2;
        }
        return done;
    }));
    EXPECT_EQ(memory.at<uint64_t>(0), each * kOrigins);
    EXPECT_EQ(memory.at<uint64_t>(8), each / 2 * kOrigins);
    std::vector<bool> seen(each * kOrigins, false);
    for (size_t i = 0; i < kOrigins; ++i) {
        EXPECT_TRUE(origins[i].errors.empty());
        for (size_t at = 0; at < fetched[i].size(); ++at) {
            ASSERT_LT(fetched[i][at], seen.size());
            ASSERT_FALSE(seen[fetched[i][at]]) << "fetched twice";
            seen[fetched[i][at]] = true;
            ASSERT_TRUE(at == 0 || fetched[i][at - 1] < fetched[i][at]) << "out of order";
        }
    }
    EXPECT_GT(target.stat("drop_duplicate") + origins[0].stat("retransmits"), 0u);
    memory.close();
}

TEST_F(Exactly, loops_of_compare_and_swap_lose_nothing) {
    Memory memory(target, 8);
    const uint64_t each = increments() / 10;
    struct Loop {
        uint64_t known = 0, wanted = 0, found = 0, done = 0;
        bool waits = false;
    };
    std::vector<Loop> loops(kOrigins);
    ASSERT_TRUE(run([&] {
        bool done = true;
        for (size_t i = 0; i < kOrigins; ++i) {
            SimPeer& origin = origins[i];
            Loop& loop = loops[i];
            if (loop.waits && !origin.sent.empty()) {
                origin.sent.clear();
                loop.waits = false;
                loop.done += loop.found == loop.known;
                loop.known = loop.found == loop.known ? loop.wanted : loop.found;
            }
            if (!loop.waits && loop.done < each) {
                loop.wanted = loop.known + 1;
                loop.waits = true;
                origin.posted(tw_compare_atomic(
                    origin.ep, &loop.wanted, 1, &loop.known, &loop.found, origin.address_of(target),
                    memory.address(), memory.key(), TW_UINT64, TW_CSWAP, nullptr));
            }
            done = done && loop.done == each;
        }
        return done;
    }));
    EXPECT_EQ(memory.at<uint64_t>(0), each * kOrigins);
    memory.close();
}

// Origins die and come back: what completed was executed, nothing twice.
TEST_F(Exactly, restarts_of_origins_execute_nothing_twice) {
    Memory memory(target, 8);
    const uint64_t one = 1;
    uint64_t posted = 0, well = 0;
    for (int life = 0; life < 20; ++life) {
        SimPeer& origin = origins[static_cast<size_t>(life) % kOrigins];
        const uint64_t count = 1 + simulator.below(40);
        for (uint64_t i = 0; i < count; ++i) {
            origin.posted(tw_atomic(origin.ep, &one, 1, origin.address_of(target), memory.address(),
                                    memory.key(), TW_UINT64, TW_SUM, nullptr));
        }
        posted += count;
        simulator.run_for(simulator.below(40'000));
        well += origin.sent.size();
        origin.sent.clear();
        origin.die();
        origin.start();
    }
    simulator.run_for(kSecond / 10);
    EXPECT_GE(memory.at<uint64_t>(0), well);
    EXPECT_LE(memory.at<uint64_t>(0), posted);
    EXPECT_GT(memory.at<uint64_t>(0), 0u);
    memory.close();
}

TEST_F(Exactly, restart_of_the_target_ends_each_operation_once) {
    Memory before(target, 8);
    const uint64_t one = 1;
    std::deque<uint64_t> fetched;
    for (SimPeer& origin : origins) {
        for (int i = 0; i < 100; ++i) {
            origin.posted(tw_fetch_atomic(origin.ep, &one, 1, &fetched.emplace_back(),
                                          origin.address_of(target), before.address(), before.key(),
                                          TW_UINT64, TW_SUM, nullptr));
        }
    }
    simulator.run_for(60'000);
    const uint64_t executed = before.at<uint64_t>(0);
    before.forget();
    target.die();
    target.start();
    uint64_t well = 0;
    for (SimPeer& origin : origins) {
        ASSERT_TRUE(run([&] { return origin.ended() == 100; }));
        simulator.run_for(kSecond / 100);
        EXPECT_EQ(origin.ended(), 100u) << "one ended twice";
        well += origin.sent.size();
        for (const tw_cq_error& error : origin.errors) {
            EXPECT_TRUE(error.error == ECONNRESET || error.error == ENOKEY) << error.error;
        }
    }
    EXPECT_LE(well, executed);
    EXPECT_EQ(before.at<uint64_t>(0), executed) << "the memory of a former life was touched";
}

}  // namespace
}  // namespace tagwire::test
