// SPDX-License-Identifier: BSD-3-Clause
// What a target refuses: an error at the origin, a counter at the target, no byte touched.
#include "test/rma/rma_fixture.h"

namespace tagwire::test {
namespace {

class Refused : public RmaPair {
  protected:
    void try_write(size_t length, uint64_t address, uint64_t key) {
        payload = pattern(1, length);
        a.posted(tw_write(a.ep, payload.data(), length, a.address_of(b), address, key, nullptr));
    }
    void try_read(size_t length, uint64_t address, uint64_t key) {
        buffer.assign(length, '.');
        a.posted(tw_read(a.ep, buffer.data(), length, a.address_of(b), address, key, nullptr));
    }
    std::string payload;
    std::string buffer;
    Memory memory{b, 1000};
};

TEST_F(Refused, unknown_key) {
    try_write(8, memory.address(), memory.key() + 1);
    expect_refused(ENOKEY, "rma_refused_key");
}

TEST_F(Refused, get_with_unknown_key) {
    try_read(8, memory.address(), memory.key() ^ 1);
    expect_refused(ENOKEY, "rma_refused_key");
    EXPECT_EQ(buffer, "........");
}

TEST_F(Refused, put_without_the_right) {
    Memory readable(b, 100, TW_REMOTE_READ);
    try_write(8, readable.address(), readable.key());
    expect_refused(EACCES, "rma_refused_access");
    EXPECT_EQ(readable.bytes, std::string(100, '\0'));
}

TEST_F(Refused, get_without_the_right) {
    Memory writable(b, 100, TW_REMOTE_WRITE);
    try_read(8, writable.address(), writable.key());
    expect_refused(EACCES, "rma_refused_access");
}

class Range : public Refused, public testing::WithParamInterface<std::pair<int64_t, size_t>> {};

TEST_P(Range, put_beyond_the_region) {
    const auto [offset, length] = GetParam();
    try_write(length, memory.address() + static_cast<uint64_t>(offset), memory.key());
    expect_refused(EFAULT, "rma_refused_range");
    EXPECT_EQ(memory.bytes, std::string(1000, '\0'));
}

TEST_P(Range, get_beyond_the_region) {
    const auto [offset, length] = GetParam();
    try_read(length, memory.address() + static_cast<uint64_t>(offset), memory.key());
    expect_refused(EFAULT, "rma_refused_range");
    EXPECT_EQ(buffer, std::string(length, '.'));
}

INSTANTIATE_TEST_SUITE_P(
    Edges, Range,
    testing::Values(std::pair{int64_t{993}, size_t{8}}, std::pair{int64_t{-1}, size_t{8}},
                    std::pair{int64_t{1000}, size_t{1}}, std::pair{int64_t{0}, size_t{1001}},
                    std::pair{int64_t{0}, size_t{200'000}}, std::pair{INT64_MAX, size_t{8}},
                    std::pair{INT64_MIN, size_t{8}}));

TEST_F(Refused, addresses_that_wrap_around) {
    std::string bytes(1000, '\0');
    Memory offset(b, {{bytes.data(), bytes.size()}});
    for (const uint64_t address : {UINT64_MAX, UINT64_MAX - 6, uint64_t{993}}) {
        try_write(8, address, offset.key());
        ASSERT_TRUE(run([&] { return a.errors.size() == 1; }));
        EXPECT_EQ(a.errors[0].error, EFAULT);
        a.errors.clear();
    }
    EXPECT_EQ(bytes, std::string(1000, '\0'));
    EXPECT_EQ(b.stat("rma_refused_range"), 3u);
    offset.close();
}

TEST_F(Refused, last_bytes_are_in_reach_and_no_bytes_need_no_region) {
    try_write(8, memory.address(992), memory.key());
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    try_write(0, 0, 0);
    try_read(0, 0, 0);
    ASSERT_TRUE(run([&] { return a.sent.size() == 3; }));
    EXPECT_TRUE(a.errors.empty());
}

TEST_F(Refused, one_bad_place_of_several_is_one_error) {
    std::string bytes = pattern(1, 24);
    const iovec iov{bytes.data(), bytes.size()};
    const tw_rma_iov remote[] = {{memory.address(), 8, memory.key()},
                                 {memory.address(996), 8, memory.key()},
                                 {memory.address(100), 8, memory.key()}};
    const tw_msg_rma message{&iov, 1, a.address_of(b), remote, 3, nullptr, 0};
    a.posted(tw_writemsg(a.ep, &message, 0));
    expect_refused(EFAULT, "rma_refused_range");
    settle();
    EXPECT_EQ(a.stat("rma_outstanding"), 0u);
    EXPECT_EQ(memory.bytes.substr(900), std::string(100, '\0'));
}

TEST_F(Refused, a_peer_whose_endpoint_is_gone) {
    tw_address nobody = b.name();
    nobody.endpoint = 9;
    tw_addr index = 0;
    ASSERT_EQ(tw_av_insert(a.av, &nobody, &index), 0);
    buffer.assign(8, '.');
    a.posted(tw_read(a.ep, buffer.data(), 8, index, memory.address(), memory.key(), nullptr));
    ASSERT_TRUE(run([&] { return a.errors.size() == 1; }));
    EXPECT_EQ(a.errors[0].error, ECONNREFUSED);
}

}  // namespace
}  // namespace tagwire::test
