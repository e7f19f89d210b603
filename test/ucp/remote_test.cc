// SPDX-License-Identifier: BSD-3-Clause
// Remote memory: U7 (put), U8 (get), U9 and U10 (atomics), U14 (fence), mapping and keys.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lib/ucp/request.h"
#include "test/sim/repeated.h"
#include "test/ucp/sim_fabric.h"

namespace tagwire::test {
namespace {

class UcpRemote : public UcpPair {
  protected:
    explicit UcpRemote(uint32_t max_operations = SimFabric::kOperations)
        : UcpPair(max_operations), memory(1 << 20, '\0') {
        key = map(memory.data(), memory.size());
    }
    ~UcpRemote() override {
        ucp_rkey_destroy(key);
        if (b.worker != nullptr) {
            ucp_mem_unmap(b.context, mapped);
        }
    }

    ucp_rkey_h map(void* address, size_t length, unsigned prot = 0) {
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        if (prot != 0) {
            params.field_mask |= UCP_MEM_MAP_PARAM_FIELD_PROT;
            params.prot = prot;
        }
        params.address = address;
        params.length = length;
        EXPECT_EQ(ucp_mem_map(b.context, &params, &mapped), UCS_OK);
        void* packed = nullptr;
        size_t size = 0;
        EXPECT_EQ(ucp_rkey_pack(b.context, mapped, &packed, &size), UCS_OK);
        ucp_rkey_h unpacked = nullptr;
        EXPECT_EQ(ucp_ep_rkey_unpack(to_b, packed, &unpacked), UCS_OK);
        ucp_rkey_buffer_release(packed);
        return unpacked;
    }
    uint64_t at(size_t offset) const { return reinterpret_cast<uintptr_t>(memory.data()) + offset; }
    template <typename T>
    T& value(size_t offset) {
        return *reinterpret_cast<T*>(memory.data() + offset);
    }

    std::string memory;  // of b
    ucp_mem_h mapped = nullptr;
    ucp_rkey_h key = nullptr;
};

class UcpRemoteSizes : public UcpRemote, public testing::WithParamInterface<size_t> {};

TEST_P(UcpRemoteSizes, PutAndGetInEveryForm) {
    const size_t size = GetParam();
    ucp_request_param_t param{};
    for (int form = 0; form < 4; ++form) {
        const std::string out = bytes(10 + form, size);
        std::string in(size, '\0');
        switch (form) {
            case 0:
                ASSERT_EQ(ucp_put(to_b, out.data(), size, at(64), key), UCS_OK);
                ASSERT_EQ(memory.substr(64, size), out) << "the blocking call has seen it there";
                ASSERT_EQ(ucp_get(to_b, in.data(), size, at(64), key), UCS_OK);
                break;
            case 1:
                ASSERT_EQ(wait(ucp_put_nb(to_b, out.data(), size, at(64), key, ignore_sent)),
                          UCS_OK);
                ASSERT_EQ(ucp_ep_flush(to_b), UCS_OK);
                ASSERT_EQ(wait(ucp_get_nb(to_b, in.data(), size, at(64), key, ignore_sent)),
                          UCS_OK);
                break;
            case 2:
                ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(to_b, out.data(), size, at(64), key)));
                ASSERT_EQ(ucp_ep_flush(to_b), UCS_OK);
                ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_get_nbi(to_b, in.data(), size, at(64), key)));
                ASSERT_EQ(ucp_worker_flush(a.worker), UCS_OK);
                break;
            default:
                ASSERT_EQ(wait(ucp_put_nbx(to_b, out.data(), size, at(64), key, &param)), UCS_OK);
                ASSERT_EQ(ucp_worker_flush(a.worker), UCS_OK);
                ASSERT_EQ(wait(ucp_get_nbx(to_b, in.data(), size, at(64), key, &param)), UCS_OK);
                break;
        }
        ASSERT_EQ(memory.substr(64, size), out) << form;
        ASSERT_EQ(in, out) << form;
        ASSERT_EQ(memory[63], '\0');
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, UcpRemoteSizes,
                         testing::Values(1, 8, 256, 257, 5000, 65536, 500'000));

TEST_F(UcpRemote, WhatIsTooLongForOneOperationGoesInParts) {
    using sim::Repeated;
    constexpr size_t kLength = ucp::kLargestPart + Repeated::kPeriod;
    const Repeated here(kLength, true);
    const Repeated there(kLength, true);
    const std::string most = bytes(1, Repeated::kPeriod);
    const std::string last = bytes(2, Repeated::kPeriod);
    const auto fill = [](const Repeated& in, const std::string& begin, const std::string& end) {
        begin.copy(reinterpret_cast<char*>(in.base()), begin.size());
        end.copy(reinterpret_cast<char*>(in.tail()), end.size());
    };
    const auto holds = [](const Repeated& in, const std::string& begin, const std::string& end) {
        return std::memcmp(in.base(), begin.data(), begin.size()) == 0 &&
               std::memcmp(in.tail(), end.data(), end.size()) == 0;
    };
    const auto finish = [&](void* request) {
        EXPECT_TRUE(UCS_PTR_IS_PTR(request));
        EXPECT_TRUE(run([&] { return ucp_request_is_completed(request) != 0; }, 20'000'000));
        return wait(request);
    };
    ucp_mem_h small = mapped;
    ucp_rkey_h large = map(there.base(), kLength);
    const auto address = reinterpret_cast<uintptr_t>(there.base());
    fill(here, most, last);
    EXPECT_EQ(finish(ucp_put_nb(to_b, here.base(), kLength, address, large, ignore_sent)), UCS_OK);
    EXPECT_TRUE(holds(there, most, last));

    fill(here, last, most);
    EXPECT_EQ(finish(ucp_get_nb(to_b, here.base(), kLength, address, large, ignore_sent)), UCS_OK);
    EXPECT_TRUE(holds(here, most, last));

    fill(here, last, most);
    EXPECT_EQ(ucp_put_nb(to_b, here.base(), kLength, address + 1, large, ignore_sent),
              UCS_STATUS_PTR(UCS_ERR_OUT_OF_RANGE));
    EXPECT_EQ(ucp_put_nb(to_b, here.base(), kLength, address - 1, large, ignore_sent),
              UCS_STATUS_PTR(UCS_ERR_OUT_OF_RANGE));
    EXPECT_TRUE(holds(there, most, last)) << "none of the parts";
    ucp_rkey_destroy(large);
    ucp_mem_unmap(b.context, mapped);
    mapped = small;
}

TEST_F(UcpRemote, NothingIsMovedByZeroBytes) {
    EXPECT_EQ(ucp_put(to_b, nullptr, 0, at(0), key), UCS_OK);
    EXPECT_EQ(ucp_get(to_b, nullptr, 0, at(0), key), UCS_OK);
    EXPECT_EQ(ucp_put_nbi(to_b, nullptr, 0, at(0), key), UCS_OK);
}

TEST_F(UcpRemote, OutOfRangeIsAnErrorAndTouchesNothing) {
    const std::string before = memory;
    const std::string out = bytes(1, 100);
    std::string in(100, 'x');
    EXPECT_NE(ucp_put(to_b, out.data(), 100, at(memory.size() - 50), key), UCS_OK);
    EXPECT_NE(ucp_get(to_b, in.data(), 100, at(memory.size() - 50), key), UCS_OK);
    EXPECT_NE(ucp_put(to_b, out.data(), 1, at(0) - 1, key), UCS_OK);
    EXPECT_EQ(memory, before);
    EXPECT_EQ(in, std::string(100, 'x'));
    EXPECT_EQ(ucp_put(to_b, out.data(), 100, at(0), key), UCS_OK) << "the endpoint is well";
    EXPECT_TRUE(a.failures.empty());
}

TEST_F(UcpRemote, AnErrorOfAPutWithoutARequestComesWithTheFlush) {
    EXPECT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(to_b, "x", 1, at(memory.size()), key)));
    EXPECT_NE(ucp_ep_flush(to_b), UCS_OK);
    EXPECT_EQ(ucp_ep_flush(to_b), UCS_OK) << "once";
}

TEST_F(UcpRemote, UnmappedMemoryIsOutOfReach) {
    ASSERT_EQ(ucp_put(to_b, "x", 1, at(0), key), UCS_OK);
    ASSERT_EQ(ucp_mem_unmap(b.context, mapped), UCS_OK);
    EXPECT_NE(ucp_put(to_b, "y", 1, at(0), key), UCS_OK);
    EXPECT_EQ(memory[0], 'x');
    ucp_rkey_destroy(key);
    key = map(memory.data(), memory.size());
}

TEST_F(UcpRemote, AccessRightsAreKept) {
    std::string other(100, 'o');
    ucp_mem_h first = mapped;
    ucp_rkey_h readable = map(other.data(), other.size(), UCP_MEM_MAP_PROT_REMOTE_READ);
    char in = 0;
    const auto address = reinterpret_cast<uintptr_t>(other.data());
    EXPECT_EQ(ucp_get(to_b, &in, 1, address, readable), UCS_OK);
    EXPECT_EQ(in, 'o');
    EXPECT_NE(ucp_put(to_b, "x", 1, address, readable), UCS_OK);
    EXPECT_EQ(other[0], 'o');
    ucp_rkey_destroy(readable);
    ucp_mem_unmap(b.context, mapped);
    mapped = first;
}

TEST_F(UcpRemote, MemoryCanBeAllocatedAndQueried) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.length = 10'000;
    params.flags = UCP_MEM_MAP_ALLOCATE;
    ucp_mem_h allocated = nullptr;
    ASSERT_EQ(ucp_mem_map(b.context, &params, &allocated), UCS_OK);
    ucp_mem_attr_t attr{};
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
    ASSERT_EQ(ucp_mem_query(allocated, &attr), UCS_OK);
    EXPECT_GE(attr.length, 10'000u);
    std::memset(attr.address, 1, attr.length);
    EXPECT_EQ(ucp_mem_unmap(b.context, allocated), UCS_OK);
    params.flags = 0;
    EXPECT_EQ(ucp_mem_map(b.context, &params, &allocated), UCS_ERR_INVALID_PARAM);
}

// A worker that is made later serves what was mapped before.
TEST_F(UcpRemote, MappedMemoryBelongsToTheContext) {
    ucp_worker_params_t worker_params{};
    UcpPeer later(0);
    ucp_worker_destroy(later.worker);
    std::swap(later.context, b.context);
    ASSERT_EQ(ucp_worker_create(later.context, &worker_params, &later.worker), UCS_OK);
    peers_.push_back(&later);
    ucp_ep_h ep = a.connect(later);
    EXPECT_EQ(ucp_put(ep, "later", 5, at(0), key), UCS_OK);
    EXPECT_EQ(memory.substr(0, 5), "later");
    peers_.pop_back();
    ucp_worker_destroy(later.worker);
    later.worker = nullptr;
    std::swap(later.context, b.context);
    ucp_cleanup(later.context);
}

TEST_F(UcpRemote, BlockingAtomics) {
    value<uint32_t>(0) = 10;
    value<uint64_t>(8) = 100;
    uint32_t old32 = 0;
    uint64_t old64 = 0;
    EXPECT_EQ(ucp_atomic_fadd32(to_b, 5, at(0), key, &old32), UCS_OK);
    EXPECT_EQ(old32, 10u);
    EXPECT_EQ(ucp_atomic_fadd64(to_b, 5, at(8), key, &old64), UCS_OK);
    EXPECT_EQ(old64, 100u);
    EXPECT_EQ(ucp_atomic_swap32(to_b, 77, at(0), key, &old32), UCS_OK);
    EXPECT_EQ(old32, 15u);
    EXPECT_EQ(ucp_atomic_swap64(to_b, 88, at(8), key, &old64), UCS_OK);
    EXPECT_EQ(old64, 105u);
    EXPECT_EQ(ucp_atomic_cswap32(to_b, 77, 1, at(0), key, &old32), UCS_OK);
    EXPECT_EQ(old32, 77u);
    EXPECT_EQ(ucp_atomic_cswap64(to_b, 99, 1, at(8), key, &old64), UCS_OK);
    EXPECT_EQ(old64, 88u) << "it did not compare equal";
    EXPECT_EQ(ucp_atomic_add32(to_b, 1, at(0), key), UCS_OK);
    EXPECT_EQ(ucp_atomic_add64(to_b, 2, at(8), key), UCS_OK);
    EXPECT_EQ(ucp_worker_flush(a.worker), UCS_OK);
    EXPECT_EQ(value<uint32_t>(0), 2u);
    EXPECT_EQ(value<uint64_t>(8), 90u);
    EXPECT_EQ(value<uint32_t>(4), 0u) << "nothing beside it";
}

TEST_F(UcpRemote, EveryPostedAndFetchingOperation) {
    const uint64_t start = 0xff00;
    const struct {
        ucp_atomic_post_op_t op;
        uint64_t result;
    } posts[] = {{UCP_ATOMIC_POST_OP_ADD, start + 0xf0f0},
                 {UCP_ATOMIC_POST_OP_AND, start & 0xf0f0},
                 {UCP_ATOMIC_POST_OP_OR, start | 0xf0f0},
                 {UCP_ATOMIC_POST_OP_XOR, start ^ 0xf0f0}};
    for (const auto& post : posts) {
        for (const size_t size : {4, 8}) {
            value<uint64_t>(0) = start;
            EXPECT_EQ(ucp_atomic_post(to_b, post.op, 0xf0f0, size, at(0), key), UCS_OK);
            EXPECT_EQ(ucp_ep_flush(to_b), UCS_OK);
            EXPECT_EQ(value<uint64_t>(0), post.result);
        }
    }
    const struct {
        ucp_atomic_fetch_op_t op;
        uint64_t result;
    } fetches[] = {{UCP_ATOMIC_FETCH_OP_FADD, start + 0xf0f0},
                   {UCP_ATOMIC_FETCH_OP_SWAP, 0xf0f0},
                   {UCP_ATOMIC_FETCH_OP_FAND, start & 0xf0f0},
                   {UCP_ATOMIC_FETCH_OP_FOR, start | 0xf0f0},
                   {UCP_ATOMIC_FETCH_OP_FXOR, start ^ 0xf0f0}};
    for (const auto& fetch : fetches) {
        value<uint64_t>(0) = start;
        uint64_t old = 0;
        EXPECT_EQ(
            wait(ucp_atomic_fetch_nb(to_b, fetch.op, 0xf0f0, &old, 8, at(0), key, ignore_sent)),
            UCS_OK);
        EXPECT_EQ(old, start);
        EXPECT_EQ(value<uint64_t>(0), fetch.result);
    }
}

TEST_F(UcpRemote, AtomicNbxFetchesWithAReplyBuffer) {
    value<uint64_t>(0) = 5;
    uint64_t operand = 7;
    uint64_t reply = 0;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    param.datatype = ucp_dt_make_contig(8);
    param.reply_buffer = &reply;
    EXPECT_EQ(wait(ucp_atomic_op_nbx(to_b, UCP_ATOMIC_OP_ADD, &operand, 1, at(0), key, &param)),
              UCS_OK);
    EXPECT_EQ(reply, 5u);
    operand = 12;
    reply = 50;  // compare with 12, write 50
    EXPECT_EQ(wait(ucp_atomic_op_nbx(to_b, UCP_ATOMIC_OP_CSWAP, &operand, 1, at(0), key, &param)),
              UCS_OK);
    EXPECT_EQ(reply, 12u);
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    operand = 1;
    EXPECT_EQ(wait(ucp_atomic_op_nbx(to_b, UCP_ATOMIC_OP_OR, &operand, 1, at(0), key, &param)),
              UCS_OK);
    EXPECT_EQ(ucp_ep_flush(to_b), UCS_OK);
    EXPECT_EQ(value<uint64_t>(0), 51u);
    EXPECT_EQ(ucp_atomic_op_nbx(to_b, UCP_ATOMIC_OP_SWAP, &operand, 1, at(0), key, &param),
              UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
}

TEST_F(UcpRemote, BadAtomicsAreRefused) {
    uint64_t old = 0;
    EXPECT_EQ(ucp_atomic_fadd64(to_b, 1, at(4), key, &old), UCS_ERR_INVALID_PARAM) << "misaligned";
    EXPECT_EQ(ucp_atomic_add32(to_b, 1, at(2), key), UCS_ERR_INVALID_PARAM) << "misaligned";
    EXPECT_EQ(ucp_atomic_post(to_b, UCP_ATOMIC_POST_OP_ADD, 1, 2, at(0), key),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(ucp_atomic_post(to_b, UCP_ATOMIC_POST_OP_LAST, 1, 8, at(0), key),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(
        ucp_atomic_fetch_nb(to_b, UCP_ATOMIC_FETCH_OP_LAST, 1, &old, 8, at(0), key, ignore_sent),
        UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM));
    EXPECT_NE(ucp_atomic_fadd64(to_b, 1, at(memory.size()), key, &old), UCS_OK) << "out of range";
    UcpPeer plain(UCP_FEATURE_TAG);
    ucp_ep_h ep = plain.connect(b);
    EXPECT_EQ(ucp_atomic_add64(ep, 1, at(0), key), UCS_ERR_INVALID_PARAM) << "no such feature";
    EXPECT_EQ(ucp_put(ep, "x", 1, at(0), key), UCS_ERR_INVALID_PARAM) << "no such feature";
    EXPECT_EQ(value<uint64_t>(0), 0u);
}

// U9, U10: exactly once, from several origins, over a network that loses and repeats. A million
// increments of each origin with TAGWIRE_TEST_SLOW=1.
class UcpRemoteOrigins : public UcpRemote {
  protected:
    static constexpr size_t kOrigins = 4;
    struct Origin {
        std::unique_ptr<UcpPeer> peer = std::make_unique<UcpPeer>();
        ucp_ep_h ep = nullptr;
        uint64_t done = 0;
        uint64_t old = 0;
        void* request = nullptr;

        // The operation that was begun has ended well, or none was.
        bool idle() {
            if (request != nullptr && ucp_request_is_completed(request) == 0) {
                return false;
            }
            if (request != nullptr) {
                EXPECT_EQ(ucp_request_check_status(request), UCS_OK);
                ucp_request_free(std::exchange(request, nullptr));
            }
            return true;
        }
    };

    UcpRemoteOrigins() : origins(kOrigins) {
        simulator.faults.loss = 0.01;
        simulator.faults.duplication = 0.01;
        for (Origin& origin : origins) {
            peers_.push_back(origin.peer.get());
            origin.ep = origin.peer->connect(b);
        }
    }
    ~UcpRemoteOrigins() override {
        simulator.faults = {};
        peers_.resize(2);
    }
    static uint64_t times(uint64_t usual, uint64_t slow) {
        return std::getenv("TAGWIRE_TEST_SLOW") != nullptr ? slow : usual;
    }
    void flush() {
        for (Origin& origin : origins) {
            EXPECT_EQ(ucp_worker_flush(origin.peer->worker), UCS_OK);
        }
    }

    std::vector<Origin> origins;
};

TEST_F(UcpRemoteOrigins, AtomicsAddUpUnderLoss) {
    const uint64_t each = times(2000, 1'000'000);
    constexpr uint64_t kBatch = 20;  // increments without a request, for each that fetches
    uint64_t sum_of_old = 0;
    uint64_t fetched = 0;
    ASSERT_TRUE(run(
        [&] {
            bool all = true;
            for (Origin& origin : origins) {
                if (origin.request != nullptr && origin.idle()) {
                    sum_of_old += origin.old;
                    ++fetched;
                }
                if (origin.request == nullptr && origin.done < each) {
                    for (uint64_t i = 0; i < kBatch; ++i) {
                        EXPECT_EQ(ucp_atomic_add32(origin.ep, 1, at(16), key), UCS_OK);
                        EXPECT_EQ(ucp_atomic_add64(origin.ep, 1, at(24), key), UCS_OK);
                    }
                    origin.done += kBatch;
                    origin.request = ucp_atomic_fetch_nb(origin.ep, UCP_ATOMIC_FETCH_OP_FADD, 1,
                                                         &origin.old, 8, at(8), key, ignore_sent);
                }
                all = all && origin.request == nullptr && origin.done == each;
            }
            return all;
        },
        UINT32_MAX));
    flush();
    EXPECT_EQ(value<uint32_t>(16), kOrigins * each);
    EXPECT_EQ(value<uint64_t>(24), kOrigins * each);
    EXPECT_EQ(value<uint64_t>(8), fetched);
    EXPECT_EQ(fetched, kOrigins * each / kBatch);
    EXPECT_EQ(sum_of_old, fetched * (fetched - 1) / 2) << "each old value was given out once";
}

// Each origin tries until its increment has won.
TEST_F(UcpRemoteOrigins, CompareAndSwapLoopsAddUpUnderLoss) {
    const uint64_t each = times(300, 100'000);
    struct Try {
        uint64_t compare = 0;
        uint64_t reply = 0;  // in: the new value; out: the old one
    };
    std::vector<Try> tries(kOrigins);
    uint64_t failed = 0;
    ASSERT_TRUE(run(
        [&] {
            bool all = true;
            for (size_t i = 0; i < kOrigins; ++i) {
                Origin& origin = origins[i];
                Try& last = tries[i];
                if (origin.request != nullptr && origin.idle()) {
                    const bool won = last.reply == last.compare;
                    origin.done += won ? 1 : 0;
                    failed += won ? 0 : 1;
                    last.compare = won ? last.compare + 1 : last.reply;
                }
                if (origin.request == nullptr && origin.done < each) {
                    last.reply = last.compare + 1;
                    origin.request =
                        ucp_atomic_fetch_nb(origin.ep, UCP_ATOMIC_FETCH_OP_CSWAP, last.compare,
                                            &last.reply, 8, at(8), key, ignore_sent);
                    EXPECT_TRUE(UCS_PTR_IS_PTR(origin.request));
                }
                all = all && origin.request == nullptr && origin.done == each;
            }
            return all;
        },
        UINT32_MAX));
    EXPECT_EQ(value<uint64_t>(8), kOrigins * each);
    EXPECT_GT(failed, 0u) << "they were at it together";
}

// U14: what comes after a fence is not seen before what came before it.
TEST_F(UcpRemote, FenceOrdersPutsWithoutWaitingForThem) {
    simulator.faults.reordering = 0.3;
    simulator.faults.loss = 0.05;
    const std::string data = bytes(1, 20'000);
    for (uint64_t round = 1; round <= 20; ++round) {
        std::fill_n(memory.begin(), 20'100, '\0');
        ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(to_b, data.data(), data.size(), at(64), key)));
        ASSERT_EQ(ucp_worker_fence(a.worker), UCS_OK);
        ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(to_b, &round, sizeof(round), at(0), key)));
        ASSERT_TRUE(run([&] { return value<uint64_t>(0) == round; }));
        ASSERT_EQ(memory.substr(64, data.size()), data) << "the flag came first, round " << round;
        ASSERT_EQ(ucp_worker_flush(a.worker), UCS_OK);
    }
}

// As UCX's own fence test does it; a fence must not hold back the answers to what it waits for.
TEST_F(UcpRemote, AFenceBetweenAtomicsOnOnesOwnMemoryEnds) {
    ucp_ep_h self = b.connect(b);
    for (uint64_t i = 0; i < 20; ++i) {
        ASSERT_EQ(ucp_atomic_add64(self, 1, at(0), key), UCS_OK);
        ASSERT_EQ(ucp_worker_fence(b.worker), UCS_OK);
        uint64_t old = 0;
        ASSERT_EQ(ucp_atomic_fadd64(self, 0, at(0), key, &old), UCS_OK);
        ASSERT_EQ(old, i + 1);
    }
}

class UcpRemoteNarrow : public UcpRemote {
  protected:
    static constexpr uint32_t kOperations = 192;  // the channel's receives need 128
    UcpRemoteNarrow() : UcpRemote(kOperations) {}
};

// The core has no room for the operation after the fence: it is still the fenced one when it has.
TEST_F(UcpRemoteNarrow, AFenceHoldsForAnOperationThatHadToWait) {
    simulator.faults.reordering = 0.3;
    simulator.faults.loss = 0.05;
    const std::string before(70'000, 'a');
    const std::string after(70'000, 'b');
    for (int round = 0; round < 5; ++round) {
        for (uint32_t i = 0; i < kOperations; ++i) {  // the core holds no more
            ASSERT_FALSE(
                UCS_STATUS_IS_ERR(ucp_put_nbi(to_b, before.data(), before.size(), at(0), key)));
        }
        ASSERT_EQ(ucp_worker_fence(a.worker), UCS_OK);
        ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(to_b, after.data(), after.size(), at(0), key)));
        ASSERT_EQ(ucp_worker_flush(a.worker), UCS_OK);
        ASSERT_TRUE(memory.substr(0, after.size()) == after) << round;
    }
    simulator.faults = {};
}

TEST_F(UcpRemote, BlockingCallOnADeadPeerReturnsAnError) {
    uint64_t old = 0;
    ASSERT_EQ(ucp_atomic_fadd64(to_b, 1, at(0), key, &old), UCS_OK);
    fabric.silence(1);
    peers_ = {&a};
    void* get = ucp_get_nb(to_b, &old, 8, at(0), key, ignore_sent);
    EXPECT_TRUE(run_long([&] { return ucp_request_is_completed(get) != 0; }));
    EXPECT_EQ(wait(get), UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(ucp_get(to_b, &old, 8, at(0), key), UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(ucp_atomic_fadd64(to_b, 1, at(0), key, &old), UCS_ERR_ENDPOINT_TIMEOUT);
}

TEST_F(UcpRemote, RemoteMemoryHasNoPointer) {
    void* pointer = nullptr;
    EXPECT_EQ(ucp_rkey_ptr(key, at(0), &pointer), UCS_ERR_UNREACHABLE);
}

}  // namespace
}  // namespace tagwire::test
