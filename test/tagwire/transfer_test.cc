// SPDX-License-Identifier: BSD-3-Clause
// T1 and T2: what is sent arrives, of every size, gathered and scattered.
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "test/sim/repeated.h"
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

using Transfer = SimPair;

TEST_F(Transfer, ReceiveIsPostedWithTagMaskAndSource) {
    std::string buffer(64, '\0');
    int context = 0;
    b.receive(buffer, 0xab00, 0xff, b.address_of(a), &context);
    a.send(b, 0xab12, "hello");
    ASSERT_TRUE(run([&] { return !b.received.empty(); }));
    const tw_cq_entry& entry = b.received[0];
    EXPECT_EQ(entry.context, &context);
    EXPECT_EQ(entry.flags, TW_RECV | TW_TAGGED);
    EXPECT_EQ(entry.length, 5u);
    EXPECT_EQ(entry.tag, 0xab12u);
    EXPECT_EQ(entry.source, b.address_of(a));
    EXPECT_EQ(buffer.substr(0, 6), std::string("hello\0", 6));
}

class Scatter : public SimPair, public testing::WithParamInterface<size_t> {};

// Pieces of 1, 7, 64, 1, 1500, 3, 4096 and the rest.
std::vector<size_t> pieces(size_t length) {
    std::vector<size_t> lengths;
    for (const size_t piece : {1, 7, 64, 0, 1500, 3, 4096}) {
        lengths.push_back(std::min<size_t>(piece, length));
        length -= lengths.back();
    }
    lengths.push_back(length);
    return lengths;
}

std::vector<iovec> iovec_of(std::string& bytes, const std::vector<size_t>& lengths) {
    std::vector<iovec> iov;
    size_t at = 0;
    for (const size_t length : lengths) {
        iov.push_back({bytes.data() + at, length});
        at += length;
    }
    return iov;
}

TEST_P(Scatter, FollowsAnIovecOfUnevenPieces) {
    const std::string payload = pattern(1, GetParam());
    std::string buffer(payload.size() + 16, 'x');
    const auto iov = iovec_of(buffer, pieces(payload.size()));
    ASSERT_EQ(tw_trecvv(b.ep, iov.data(), iov.size(), TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
    a.send(b, 1, payload);
    ASSERT_TRUE(run([&] { return !b.received.empty(); }));
    EXPECT_EQ(b.received[0].length, payload.size());
    EXPECT_TRUE(buffer == payload + std::string(16, 'x'));
}

TEST_P(Scatter, OfAnUnexpectedMessageIsTheSame) {
    const std::string payload = pattern(1, GetParam());
    a.send(b, 1, payload);
    settle();
    std::string buffer(payload.size() + 16, 'x');
    const auto iov = iovec_of(buffer, pieces(payload.size()));
    ASSERT_EQ(tw_trecvv(b.ep, iov.data(), iov.size(), TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
    b.wake();
    ASSERT_TRUE(run([&] { return !b.received.empty() && !a.sent.empty(); }));
    EXPECT_TRUE(buffer == payload + std::string(16, 'x'));
}

TEST_P(Scatter, AndGatherMirrorEachOther) {
    std::string payload = pattern(1, GetParam());
    const auto gather = iovec_of(payload, pieces(payload.size()));
    std::string buffer(payload.size(), 'x');
    b.receive(buffer, 1);
    ASSERT_EQ(tw_tsendv(a.ep, gather.data(), gather.size(), a.address_of(b), 1, nullptr), 0);
    a.wake();
    ASSERT_TRUE(run([&] { return !b.received.empty() && !a.sent.empty(); }));
    EXPECT_TRUE(buffer == payload);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Scatter, testing::Values(0, 5, 100, 1600, 20'000, 300'000));

TEST_F(Transfer, EverySizeKeepsItsBoundaries) {
    std::vector<size_t> sizes = {0,    1,    2,    63,   64,    65,    1400,  1427,    1428,
                                 1429, 1500, 2999, 8192, 65535, 65536, 65537, 1 << 20, 5'000'001};
    std::vector<std::string> payloads;
    std::vector<std::string> buffers;
    for (const size_t size : sizes) {
        payloads.push_back(pattern(size, size));
        buffers.emplace_back(size + 1, 'x');
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
        b.receive(buffers[i], i);
        a.send(b, i, payloads[i]);
    }
    ASSERT_TRUE(
        run([&] { return b.received.size() == sizes.size() && a.sent.size() == sizes.size(); }));
    for (size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_TRUE(buffers[i] == payloads[i] + 'x') << sizes[i] << " bytes";
    }
    for (const tw_cq_entry& entry : b.received) {
        EXPECT_EQ(entry.length, sizes[entry.tag]);
    }
}

TEST_F(Transfer, ZeroBytesNeedNoBuffer) {
    const iovec empty{nullptr, 0};
    const tw_addr to_b = a.address_of(b);
    for (uint64_t tag = 0; tag < 4; ++tag) {
        ASSERT_EQ(tw_trecvv(b.ep, tag % 2 == 0 ? nullptr : &empty, tag % 2, TW_ADDR_UNSPEC, tag, 0,
                            nullptr),
                  0);
    }
    ASSERT_EQ(tw_tsend(a.ep, nullptr, 0, to_b, 0, nullptr), 0);
    ASSERT_EQ(tw_tsendv(a.ep, nullptr, 0, to_b, 1, nullptr), 0);
    ASSERT_EQ(tw_tsendv(a.ep, &empty, 1, to_b, 2, nullptr), 0);
    ASSERT_EQ(tw_tsendv(a.ep, &empty, 0, to_b, 3, nullptr), 0);
    a.wake();
    ASSERT_TRUE(run([&] { return b.received.size() == 4 && a.sent.size() == 4; }));
    for (const tw_cq_entry& entry : b.received) {
        EXPECT_EQ(entry.length, 0u);
    }
}

TEST_F(Transfer, APeerIsUpFromItsAnswerUntilItIsGivenUp) {
    EXPECT_EQ(tw_ep_peer_is_up(a.ep, a.address_of(b)), 0);
    std::string buffer(8, '\0');
    b.receive(buffer, 1);
    a.send(b, 1, "hello");
    EXPECT_EQ(tw_ep_peer_is_up(a.ep, a.address_of(b)), 0) << "it has not answered";
    ASSERT_TRUE(run([&] { return a.sent.size() == 1; }));
    EXPECT_EQ(tw_ep_peer_is_up(a.ep, a.address_of(b)), 1);
    EXPECT_EQ(tw_ep_peer_is_up(b.ep, b.address_of(a)), 1) << "who called is up as well";
    a.posted(tw_ep_reset_peer(a.ep, a.address_of(b)));
    settle();
    EXPECT_EQ(tw_ep_peer_is_up(a.ep, a.address_of(b)), 0);
}

// T2's upper end. Takes a minute: TAGWIRE_TEST_SLOW=1.
TEST_F(Transfer, LargestMessageArrives) {
    if (std::getenv("TAGWIRE_TEST_SLOW") == nullptr) {
        GTEST_SKIP() << "set TAGWIRE_TEST_SLOW=1";
    }
    const sim::Repeated from(TW_MAX_MESSAGE_SIZE);
    const sim::Repeated to(TW_MAX_MESSAGE_SIZE);
    const std::string period = pattern(1, sim::Repeated::kPeriod);
    period.copy(reinterpret_cast<char*>(from.base()), period.size());
    ASSERT_EQ(tw_trecv(b.ep, to.base(), to.size(), TW_ADDR_UNSPEC, 1, 0, nullptr), 0);
    ASSERT_EQ(tw_tsend(a.ep, from.base(), from.size(), a.address_of(b), 1, nullptr), 0);
    a.wake();
    ASSERT_TRUE(run([&] { return !b.received.empty() && !a.sent.empty(); }, 600 * kSecond));
    EXPECT_EQ(b.received[0].length, TW_MAX_MESSAGE_SIZE);
    EXPECT_EQ(std::memcmp(to.base(), period.data(), period.size()), 0);
}

}  // namespace
}  // namespace tagwire::test
