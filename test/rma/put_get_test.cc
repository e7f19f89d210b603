// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets, from outside.
#include <cstdlib>
#include <cstring>

#include "test/rma/rma_fixture.h"
#include "test/sim/repeated.h"

namespace tagwire::test {
namespace {

class PutGet : public RmaPair {
  protected:
    int context = 0;
};

TEST_F(PutGet, put_places_the_bytes_and_completes) {
    Memory memory(b, 4096);
    const std::string payload = pattern(1, 100);
    write(payload, memory, 200, &context);
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    EXPECT_EQ(a.sent[0].flags, TW_RMA | TW_WRITE);
    EXPECT_EQ(a.sent[0].context, &context);
    EXPECT_EQ(memory.bytes.substr(200, 100), payload);
    EXPECT_EQ(memory.bytes.substr(0, 200), std::string(200, '\0'));
    EXPECT_EQ(memory.bytes.substr(300), std::string(4096 - 300, '\0'));
    EXPECT_TRUE(b.received.empty()) << "nobody is told at the target";
    EXPECT_EQ(b.stat("rma_puts"), 1u);
}

TEST_F(PutGet, get_brings_the_bytes_and_completes) {
    Memory memory(b, 4096);
    pattern(2, 4096).copy(memory.bytes.data(), 4096);
    std::string buffer(1000, '.');
    read(buffer, memory, 17, &context);
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    EXPECT_EQ(a.sent[0].flags, TW_RMA | TW_READ);
    EXPECT_EQ(a.sent[0].context, &context);
    EXPECT_EQ(a.sent[0].length, 1000u);
    EXPECT_EQ(a.sent[0].buffer, buffer.data());
    EXPECT_EQ(buffer, memory.bytes.substr(17, 1000));
    EXPECT_EQ(b.stat("rma_gets"), 1u);
}

TEST_F(PutGet, a_region_may_be_the_whole_address_space) {
    Memory everything(b, {iovec{nullptr, SIZE_MAX}});
    std::string target(5000, '.');
    const std::string payload = pattern(3, target.size());
    const auto address = reinterpret_cast<uint64_t>(target.data());
    a.posted(tw_write(a.ep, payload.data(), payload.size(), a.address_of(b), address,
                      everything.key(), nullptr));
    ASSERT_TRUE(finish());
    EXPECT_EQ(target, payload);
}

TEST_F(PutGet, every_length) {
    Memory memory(b, 3'000'000);
    std::string buffer;
    for (const size_t length : {size_t{0}, size_t{1}, size_t{8}, size_t{64}, size_t{65},
                                size_t{1024}, size_t{1025}, size_t{1403}, size_t{1404},
                                size_t{5000}, size_t{65536}, size_t{65537}, size_t{3'000'000}}) {
        const std::string payload = pattern(length, length);
        write(payload, memory, 0);
        ASSERT_TRUE(finish()) << length;
        EXPECT_EQ(memory.bytes.substr(0, length), payload);
        buffer.assign(length, '.');
        read(buffer, memory, 0);
        ASSERT_TRUE(finish()) << length;
        EXPECT_EQ(buffer, payload);
    }
    EXPECT_TRUE(a.errors.empty());
}

TEST_F(PutGet, gather_and_scatter) {
    Memory memory(b, 300'000);
    std::string one = pattern(1, 1), two = pattern(2, 70'000), three, four = pattern(4, 3);
    const iovec from[] = {{one.data(), one.size()},
                          {two.data(), two.size()},
                          {nullptr, 0},
                          {four.data(), four.size()}};
    a.posted(tw_writev(a.ep, from, 4, a.address_of(b), memory.address(5), memory.key(), nullptr));
    ASSERT_TRUE(finish());
    EXPECT_EQ(memory.bytes.substr(5, 70'004), one + two + four);

    std::string x(3, '.'), y(70'000, '.'), z(1, '.');
    const iovec to[] = {{x.data(), x.size()}, {y.data(), y.size()}, {z.data(), z.size()}};
    a.posted(tw_readv(a.ep, to, 3, a.address_of(b), memory.address(5), memory.key(), nullptr));
    ASSERT_TRUE(finish());
    EXPECT_EQ(x + y + z, one + two + four);
}

TEST_F(PutGet, several_places_of_the_target_are_one_operation) {
    Memory first(b, 1000);
    Memory second(b, 200'000);
    std::string payload = pattern(7, 150'300);
    const iovec iov[] = {{payload.data(), 50}, {payload.data() + 50, payload.size() - 50}};
    const tw_rma_iov remote[] = {{first.address(10), 100, first.key()},
                                 {second.address(), 150'000, second.key()},
                                 {first.address(500), 200, first.key()}};
    tw_msg_rma message{iov, 2, a.address_of(b), remote, 3, &context, 0};
    a.posted(tw_writemsg(a.ep, &message, 0));
    ASSERT_TRUE(finish());
    ASSERT_EQ(a.sent.size(), 1u);
    EXPECT_EQ(first.bytes.substr(10, 100), payload.substr(0, 100));
    EXPECT_EQ(second.bytes.substr(0, 150'000), payload.substr(100, 150'000));
    EXPECT_EQ(first.bytes.substr(500, 200), payload.substr(150'100));

    const std::string sent = payload;
    payload.assign(payload.size(), '.');
    a.posted(tw_readmsg(a.ep, &message, 0));
    ASSERT_TRUE(finish());
    ASSERT_EQ(a.sent.size(), 2u);
    EXPECT_EQ(a.sent[1].length, payload.size());
    EXPECT_EQ(payload, sent);
}

TEST_F(PutGet, region_of_pieces_counts_from_zero) {
    std::string one(100, '\0'), two(70'000, '\0'), three(9, '\0');
    Memory memory(b, {{one.data(), one.size()}, {two.data(), two.size()}, {three.data(), 9}});
    const std::string payload = pattern(3, 70'059);
    a.posted(
        tw_write(a.ep, payload.data(), payload.size(), a.address_of(b), 50, memory.key(), nullptr));
    ASSERT_TRUE(finish());
    EXPECT_TRUE(a.errors.empty());
    EXPECT_EQ(one.substr(50) + two + three, payload);
    std::string buffer(payload.size(), '.');
    a.posted(
        tw_read(a.ep, buffer.data(), buffer.size(), a.address_of(b), 50, memory.key(), nullptr));
    ASSERT_TRUE(finish());
    EXPECT_EQ(buffer, payload);
    memory.close();
}

// As long as an operation can be, with data: its message is longer still.
TEST_F(PutGet, the_longest) {
    if (std::getenv("TAGWIRE_TEST_SLOW") == nullptr) {
        GTEST_SKIP() << "takes a minute: set TAGWIRE_TEST_SLOW";
    }
    const sim::Repeated there(TW_MAX_MESSAGE_SIZE);
    const sim::Repeated here(TW_MAX_MESSAGE_SIZE);
    const std::string period = pattern(1, sim::Repeated::kPeriod);
    Memory memory(b, {{there.base(), there.size()}});
    period.copy(reinterpret_cast<char*>(here.base()), period.size());
    a.posted(
        tw_writedata(a.ep, here.base(), here.size(), 5, a.address_of(b), 0, memory.key(), nullptr));
    ASSERT_TRUE(run([&] { return a.sent.size() == 1 && b.received.size() == 1; }, 600 * kSecond));
    EXPECT_EQ(b.received[0].length, TW_MAX_MESSAGE_SIZE);
    EXPECT_EQ(std::memcmp(there.base(), period.data(), period.size()), 0);
    std::memset(here.base(), '.', period.size());
    a.posted(tw_read(a.ep, here.base(), here.size(), a.address_of(b), 0, memory.key(), nullptr));
    ASSERT_TRUE(run([&] { return a.sent.size() == 2; }, 600 * kSecond));
    EXPECT_EQ(std::memcmp(here.base(), period.data(), period.size()), 0);
    memory.close();
}

TEST_F(PutGet, endpoint_reaches_its_own_memory) {
    Memory memory(a, 100'000);
    const tw_addr self = a.address_of(a);
    const std::string payload = pattern(9, 90'000);
    a.posted(tw_write(a.ep, payload.data(), payload.size(), self, memory.address(), memory.key(),
                      nullptr));
    ASSERT_TRUE(finish());
    EXPECT_EQ(memory.bytes.substr(0, payload.size()), payload);
    std::string buffer(payload.size(), '.');
    a.posted(
        tw_read(a.ep, buffer.data(), buffer.size(), self, memory.address(), memory.key(), nullptr));
    ASSERT_TRUE(finish());
    EXPECT_EQ(buffer, payload);
    EXPECT_TRUE(a.errors.empty());
}

TEST_F(PutGet, both_ways_at_once) {
    Memory here(a, 500'000);
    Memory there(b, 500'000);
    const std::string to_b = pattern(1, 500'000), to_a = pattern(2, 500'000);
    write(to_b, there, 0);
    b.posted(tw_write(b.ep, to_a.data(), to_a.size(), b.address_of(a), here.address(), here.key(),
                      nullptr));
    ASSERT_TRUE(run([&] { return a.sent.size() == 1 && b.sent.size() == 1; }));
    EXPECT_EQ(there.bytes, to_b);
    EXPECT_EQ(here.bytes, to_a);
}

}  // namespace
}  // namespace tagwire::test
