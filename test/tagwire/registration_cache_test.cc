// SPDX-License-Identifier: BSD-3-Clause
// Registrations: found again, bounded, forgotten in order, never while in use,
// and not used again once their memory went away.
#include "lib/tagwire/registration_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace tagwire::test {
namespace {

constexpr size_t kPage = 4096;

// A device that refuses what overlaps, as real ones do.
class FakeDevice final : public DeviceMemory {
  public:
    bool map(uintptr_t base, uint64_t length) noexcept override {
        const auto above = ranges.lower_bound(base);
        if (refuses || (above != ranges.end() && above->first < base + length) ||
            (above != ranges.begin() &&
             std::prev(above)->first + std::prev(above)->second > base)) {
            return false;
        }
        ranges[base] = length;
        return true;
    }
    void unmap(uintptr_t base, uint64_t length) noexcept override {
        EXPECT_EQ(ranges[base], length);
        ranges.erase(base);
    }

    std::map<uintptr_t, uint64_t> ranges;
    bool refuses = false;
};

class Cache : public testing::Test {
  protected:
    void SetUp() override {
        const char* reason = nullptr;
        watch_ = MemoryWatch::get(&reason);
        if (watch_ == nullptr) {
            GTEST_SKIP() << reason;
        }
        cache.emplace(device, *watch_, 4, 64 * kPage);
        memory = map(256);
        wait_for_the_watch();  // what an earlier test unmapped
    }
    void TearDown() override {
        cache.reset();
        EXPECT_TRUE(device.ranges.empty()) << "the device still knows memory";
        if (memory != nullptr) {
            munmap(memory, 256 * kPage);
        }
    }
    static char* map(size_t pages) {
        void* at = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        EXPECT_NE(at, MAP_FAILED);
        return static_cast<char*>(at);
    }
    // Unmaps, and lets nobody else have the addresses.
    static void replace(char* at, size_t pages) {
        EXPECT_NE(mmap(at, pages * kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                  MAP_FAILED);
    }
    void wait_for_the_watch() {
        while (!watch_->settled()) {
            std::this_thread::yield();
        }
    }
    Registration* take(const char* start, size_t length) {
        Registration* registration = cache->acquire(start, length);
        if (registration != nullptr) {
            cache->release(*registration);
        }
        return registration;
    }
    // As take(), once the watching thread has done its work, which may take a
    // while on a busy machine.
    Registration* take_in_time(const char* start, size_t length) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        Registration* found = nullptr;
        while (found == nullptr && std::chrono::steady_clock::now() < limit) {
            found = take(start, length);
            std::this_thread::yield();
        }
        return found;
    }
    const RegistrationCounters& counters() const { return cache->counters(); }

    FakeDevice device;
    MemoryWatch* watch_ = nullptr;
    std::optional<RegistrationCache> cache;
    char* memory = nullptr;
};

TEST_F(Cache, whole_pages_are_registered_once) {
    ASSERT_NE(take(memory + 100, 5000), nullptr);
    ASSERT_NE(take(memory, 2 * kPage), nullptr);
    ASSERT_NE(take(memory + 2 * kPage - 1, 1), nullptr);
    EXPECT_EQ(counters().made, 1u);
    EXPECT_EQ(counters().hits, 2u);
    const std::map<uintptr_t, uint64_t> expected = {
        {reinterpret_cast<uintptr_t>(memory), 2 * kPage}};
    EXPECT_EQ(device.ranges, expected);
}

TEST_F(Cache, an_overlap_becomes_one_range) {
    ASSERT_NE(take(memory + 2 * kPage, kPage), nullptr);
    ASSERT_NE(take(memory + 4 * kPage, kPage), nullptr);
    ASSERT_NE(take(memory + kPage, 3 * kPage + 1), nullptr);
    EXPECT_EQ(cache->size(), 1u);
    EXPECT_EQ(device.ranges.begin()->second, 4 * kPage);
    EXPECT_EQ(cache->bytes(), 4 * kPage);
}

TEST_F(Cache, an_overlap_with_one_in_use_is_refused) {
    Registration* used = cache->acquire(memory + 2 * kPage, kPage);
    ASSERT_NE(used, nullptr);
    EXPECT_EQ(take(memory, 3 * kPage), nullptr);
    EXPECT_EQ(counters().refused, 1u);
    EXPECT_EQ(cache->size(), 1u);
    cache->release(*used);
    EXPECT_NE(take(memory, 3 * kPage), nullptr);
}

TEST_F(Cache, the_least_recently_used_one_goes) {
    for (size_t i = 0; i < 4; ++i) {
        ASSERT_NE(take(memory + 2 * i * kPage, kPage), nullptr);
    }
    ASSERT_NE(take(memory, kPage), nullptr);  // now the newest
    ASSERT_NE(take(memory + 10 * kPage, kPage), nullptr);
    EXPECT_EQ(counters().evicted, 1u);
    EXPECT_TRUE(device.ranges.contains(reinterpret_cast<uintptr_t>(memory)));
    EXPECT_FALSE(device.ranges.contains(reinterpret_cast<uintptr_t>(memory + 2 * kPage)));
}

TEST_F(Cache, one_in_use_does_not_go) {
    std::vector<Registration*> used;
    for (size_t i = 0; i < 4; ++i) {
        used.push_back(cache->acquire(memory + 2 * i * kPage, kPage));
        ASSERT_NE(used.back(), nullptr);
    }
    EXPECT_EQ(take(memory + 10 * kPage, kPage), nullptr);
    cache->release(*used[2]);
    EXPECT_NE(take(memory + 10 * kPage, kPage), nullptr);
    EXPECT_FALSE(device.ranges.contains(reinterpret_cast<uintptr_t>(memory + 4 * kPage)));
    for (const size_t i : {0, 1, 3}) {
        cache->release(*used[i]);
    }
}

TEST_F(Cache, bytes_are_bounded_too) {
    ASSERT_NE(take(memory, 40 * kPage), nullptr);
    ASSERT_NE(take(memory + 100 * kPage, 40 * kPage), nullptr);
    EXPECT_EQ(counters().evicted, 1u);
    EXPECT_EQ(cache->bytes(), 40 * kPage);
    EXPECT_EQ(take(memory, 65 * kPage), nullptr) << "more than all";
}

TEST_F(Cache, a_device_that_refuses_leaves_nothing_behind) {
    device.refuses = true;
    EXPECT_EQ(take(memory, kPage), nullptr);
    EXPECT_EQ(cache->size(), 0u);
    device.refuses = false;
    EXPECT_NE(take(memory, kPage), nullptr);
}

// Each way for memory to go away, and what comes in its place is registered
// anew.
class Gone : public Cache, public testing::WithParamInterface<int> {
  protected:
    void remove() {
        switch (GetParam()) {
            case 0:
                ASSERT_EQ(munmap(memory, 4 * kPage), 0);
                break;
            case 1:
                ASSERT_EQ(munmap(memory + kPage, kPage), 0);  // a hole is enough
                break;
            case 2:
                ASSERT_EQ(madvise(memory, 4 * kPage, MADV_DONTNEED), 0);
                break;
            case 3: {
                char* other = map(4);
                ASSERT_NE(
                    mremap(memory, 4 * kPage, 4 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, other),
                    MAP_FAILED);
                munmap(other, 4 * kPage);
                break;
            }
            default:
                break;
        }
    }
};

TEST_P(Gone, memory_is_not_used_again) {
    ASSERT_NE(take(memory, 4 * kPage), nullptr);
    remove();
    // At the same place, perhaps other pages.
    ASSERT_NE(mmap(memory, 4 * kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0),
              MAP_FAILED);
    // The watching thread may still be at work: then there is none, which is
    // right as well.
    ASSERT_NE(take_in_time(memory, 4 * kPage), nullptr);
    EXPECT_EQ(counters().made, 2u);
    EXPECT_EQ(counters().hits, 0u);
    EXPECT_EQ(counters().invalidated, 1u);
}

std::string way(const testing::TestParamInfo<int>& param) {
    constexpr const char* kWays[] = {"munmap", "munmap_of_a_part", "madvise", "mremap"};
    return kWays[param.param];
}

INSTANTIATE_TEST_SUITE_P(Ways, Gone, testing::Values(0, 1, 2, 3), way);

TEST_F(Cache, memory_that_is_gone_and_in_use_is_refused) {
    Registration* used = cache->acquire(memory, 4 * kPage);
    ASSERT_NE(used, nullptr);
    ASSERT_EQ(madvise(memory, kPage, MADV_DONTNEED), 0);
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(take(memory, 4 * kPage), nullptr);
    }
    cache->release(*used);
    EXPECT_NE(take_in_time(memory, 4 * kPage), nullptr);
}

TEST_F(Cache, the_pages_of_what_is_gone_are_given_back) {
    Registration* used = cache->acquire(memory + 4 * kPage, kPage);
    ASSERT_NE(used, nullptr);
    ASSERT_NE(take(memory, 4 * kPage), nullptr);
    replace(memory, 8);
    ASSERT_NE(take_in_time(memory + 20 * kPage, kPage), nullptr);
    EXPECT_FALSE(device.ranges.contains(reinterpret_cast<uintptr_t>(memory)));
    EXPECT_TRUE(device.ranges.contains(reinterpret_cast<uintptr_t>(memory + 4 * kPage)))
        << "in use";
    cache->release(*used);
    ASSERT_NE(take_in_time(memory + 20 * kPage, kPage), nullptr);
    EXPECT_EQ(device.ranges.size(), 1u);
    EXPECT_EQ(counters().invalidated, 2u);
}

// A child has its own memory: what it does with that is nothing to us.
TEST_F(Cache, a_child_changes_nothing) {
    ASSERT_NE(take(memory, 4 * kPage), nullptr);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(60);
        memory[0] = 1;
        madvise(memory, kPage, MADV_DONTNEED);
        munmap(memory, 256 * kPage);
        _exit(0);
    }
    memory[kPage] = 1;
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "it does not wait for a thread that it does not have";
    ASSERT_NE(take_in_time(memory, 4 * kPage), nullptr);
    EXPECT_EQ(counters().made, 1u);
    EXPECT_EQ(counters().invalidated, 0u);
    replace(memory, 4);
    ASSERT_NE(take_in_time(memory + 4 * kPage, kPage), nullptr);
    EXPECT_EQ(counters().invalidated, 1u) << "the watch still works";
}

TEST_F(Cache, a_file_is_not_watched_and_so_not_registered) {
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(ftruncate(fileno(file), kPage), 0);
    void* at = mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    ASSERT_NE(at, MAP_FAILED);
    // Where /tmp is in memory, newer kernels watch it.
    if (take(static_cast<char*>(at), kPage) == nullptr) {
        EXPECT_EQ(cache->size(), 0u);
        EXPECT_TRUE(device.ranges.empty());
    }
    cache.reset();
    munmap(at, kPage);
    std::fclose(file);
}

// Memory comes and goes on other threads all the time; whoever got a
// registration after his own mmap has one that was made after it.
TEST_F(Cache, a_new_mapping_never_gets_an_old_registration) {
    std::mt19937 random(1);
    uint64_t registered = 0;
    for (int round = 0; round < 2000; ++round) {
        char* at = map(4);
        const uint64_t made = counters().made;
        Registration* registration = cache->acquire(at, 4 * kPage);
        if (registration != nullptr) {
            EXPECT_EQ(counters().made, made + 1) << "round " << round;
            ++registered;
            cache->release(*registration);
        }
        if (random() % 2 == 0) {
            std::thread([at] { munmap(at, 4 * kPage); }).join();
        } else {
            munmap(at, 4 * kPage);
        }
    }
    EXPECT_GT(registered, 100u);
}

// One thread unmaps, and another gets the same addresses while the kernel still
// waits for the first event to be read.
TEST_F(Cache, nor_does_another_thread_that_maps_at_once) {
    uint64_t registered = 0;
    for (int round = 0; round < 500; ++round) {
        char* at = map(4);
        if (take_in_time(at, 4 * kPage) == nullptr) {
            FAIL() << "round " << round;
        }
        std::thread other([at] { munmap(at, 4 * kPage); });
        void* again = MAP_FAILED;
        while (again == MAP_FAILED) {
            again = mmap(at, 4 * kPage, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        }
        const uint64_t hits = counters().hits;
        registered += take(at, 4 * kPage) != nullptr;
        EXPECT_EQ(counters().hits, hits) << "round " << round;
        other.join();
        munmap(again, 4 * kPage);
    }
    EXPECT_GT(registered, 0u);
}

}  // namespace
}  // namespace tagwire::test
