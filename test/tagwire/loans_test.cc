// SPDX-License-Identifier: BSD-3-Clause
// Memory is lent while somebody refers to it, and registered as long.
#include "lib/tagwire/loans.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <set>
#include <thread>
#include <vector>

#include "tagwire/memory.h"

namespace tagwire::test {
namespace {

using transport::give_back;

struct Known {
    std::set<uintptr_t> ranges;
    bool alive = true;
};

class FakeDevice final : public DeviceMemory {
  public:
    explicit FakeDevice(Known& known) : known_(known) {}
    ~FakeDevice() override { known_.alive = false; }
    bool map(uintptr_t base, uint64_t) noexcept override {
        return known_.ranges.insert(base).second;
    }
    void unmap(uintptr_t base, uint64_t) noexcept override { known_.ranges.erase(base); }

  private:
    Known& known_;
};

class Loans : public testing::Test {
  protected:
    void SetUp() override {
        const char* reason = nullptr;
        watch = MemoryWatch::get(&reason);
        if (watch == nullptr) {
            GTEST_SKIP() << reason;
        }
        book = LoanBook::open(std::make_unique<FakeDevice>(known), watch);
    }
    Known known;
    MemoryWatch* watch = nullptr;
    LoanBook* book = nullptr;
    std::vector<char> memory = std::vector<char>(1 << 20);
};

TEST_F(Loans, of_memory_that_is_not_eals_register_it) {
    rte_mbuf_ext_shared_info* loan = book->borrow(memory.data(), memory.size());
    ASSERT_NE(loan, nullptr);
    EXPECT_EQ(known.ranges.size(), 1u);
    EXPECT_EQ(rte_mbuf_ext_refcnt_read(loan), 1);
    EXPECT_EQ(book->outstanding(), 1u);
    give_back(loan);
    EXPECT_EQ(book->outstanding(), 0u);
    EXPECT_EQ(known.ranges.size(), 1u) << "for the next one";
    loan = book->borrow(memory.data(), memory.size());
    EXPECT_EQ(book->registrations().hits, 1u);
    give_back(loan);
    book->close();
    EXPECT_FALSE(known.alive);
    EXPECT_TRUE(known.ranges.empty());
}

TEST_F(Loans, of_eals_memory_need_no_registration) {
    void* own = tw_alloc(1 << 20, 0, TW_SOCKET_ANY);
    ASSERT_NE(own, nullptr);
    rte_mbuf_ext_shared_info* loan = book->borrow(own, 1 << 20);
    ASSERT_NE(loan, nullptr);
    EXPECT_TRUE(known.ranges.empty());
    give_back(loan);
    book->close();
    tw_free(own);
}

TEST_F(Loans, are_refused_without_a_watch) {
    Known other;
    LoanBook* blind = LoanBook::open(std::make_unique<FakeDevice>(other), nullptr);
    EXPECT_EQ(blind->borrow(memory.data(), memory.size()), nullptr);
    EXPECT_EQ(blind->counters().copied, 1u);
    EXPECT_TRUE(other.ranges.empty());
    blind->close();
    book->close();
}

TEST_F(Loans, are_limited) {
    std::vector<rte_mbuf_ext_shared_info*> loans;
    while (rte_mbuf_ext_shared_info* loan = book->borrow(memory.data(), memory.size())) {
        loans.push_back(loan);
        ASSERT_LT(loans.size(), 100'000u);
    }
    EXPECT_EQ(book->counters().copied, 1u);
    give_back(loans.back());
    loans.pop_back();
    rte_mbuf_ext_shared_info* again = book->borrow(memory.data(), memory.size());
    EXPECT_NE(again, nullptr) << "what came back is lent again";
    loans.push_back(again);
    for (rte_mbuf_ext_shared_info* loan : loans) {
        give_back(loan);
    }
    book->close();
    EXPECT_FALSE(known.alive);
}

TEST_F(Loans, keep_the_registration_until_the_last_frame_is_back) {
    rte_mbuf_ext_shared_info* loan = book->borrow(memory.data(), memory.size());
    ASSERT_NE(loan, nullptr);
    rte_mbuf_ext_refcnt_update(loan, 1);  // a frame
    give_back(loan);                      // the send ended
    book->close();                        // and so did the worker
    EXPECT_TRUE(known.alive);
    EXPECT_EQ(known.ranges.size(), 1u);
    give_back(loan);
    EXPECT_FALSE(known.alive);
    EXPECT_TRUE(known.ranges.empty());
}

TEST_F(Loans, may_come_back_on_any_thread) {
    for (int round = 0; round < 200; ++round) {
        std::vector<rte_mbuf_ext_shared_info*> loans;
        for (int i = 0; i < 50; ++i) {
            loans.push_back(book->borrow(memory.data(), memory.size()));
            ASSERT_NE(loans.back(), nullptr);
        }
        std::thread other([&] {
            for (size_t i = 0; i < loans.size(); i += 2) {
                give_back(loans[i]);
            }
        });
        for (size_t i = 1; i < loans.size(); i += 2) {
            give_back(loans[i]);
        }
        other.join();
    }
    book->close();
    EXPECT_FALSE(known.alive);
}

}  // namespace
}  // namespace tagwire::test
