// SPDX-License-Identifier: BSD-3-Clause
// The forwarding database of the switch, in memory that processes share. It has no
// lock: an entry is one 64-bit word, and a lost update costs a flooded frame.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace softcx {

class ForwardingDatabase {
  public:
    static constexpr uint32_t kAgeSeconds = 300;  // IEEE 802.1D-2004, table 7-5

    // `mac` has the 48 bits of the address.
    void learn(uint64_t mac, uint32_t port, uint32_t now) noexcept {
        Bucket& bucket = bucket_of(mac);
        Entry* victim = &bucket[0];
        for (Entry& entry : bucket) {
            const uint64_t word = entry.word.load(std::memory_order_relaxed);
            if (word >> 16 == mac && word != 0) {
                entry.word.store(make_word(mac, port), std::memory_order_relaxed);
                entry.seen.store(now, std::memory_order_relaxed);
                return;
            }
            if (age_of(*victim, now) < age_of(entry, now))
                victim = &entry;
        }
        victim->seen.store(now, std::memory_order_relaxed);
        victim->word.store(make_word(mac, port), std::memory_order_release);
    }

    std::optional<uint32_t> lookup(uint64_t mac, uint32_t now) const noexcept {
        for (const Entry& entry : bucket_of(mac)) {
            const uint64_t word = entry.word.load(std::memory_order_acquire);
            if (word >> 16 == mac && word != 0 && age_of(entry, now) <= kAgeSeconds)
                return static_cast<uint32_t>(word >> 8 & 0xff);
        }
        return std::nullopt;
    }

    void forget_port(uint32_t port) noexcept {
        for (Bucket& bucket : buckets_) {
            for (Entry& entry : bucket) {
                uint64_t word = entry.word.load(std::memory_order_relaxed);
                if (word != 0 && (word >> 8 & 0xff) == port)
                    entry.word.compare_exchange_strong(word, 0, std::memory_order_relaxed);
            }
        }
    }

  private:
    static constexpr uint32_t kBucketBits = 10;
    static constexpr uint32_t kWays = 4;

    struct Entry {
        std::atomic<uint64_t> word;  // MAC, port, 1; or 0: empty
        std::atomic<uint32_t> seen;  // monotonic clock, seconds
        uint32_t reserved;
    };
    static_assert(sizeof(Entry) == 16);
    using Bucket = std::array<Entry, kWays>;

    static constexpr uint64_t make_word(uint64_t mac, uint32_t port) {
        return mac << 16 | uint64_t{port} << 8 | 1;
    }

    static uint32_t age_of(const Entry& entry, uint32_t now) noexcept {
        if (entry.word.load(std::memory_order_relaxed) == 0)
            return UINT32_MAX;
        const uint32_t seen = entry.seen.load(std::memory_order_relaxed);
        return now > seen ? now - seen : 0;
    }

    static constexpr size_t index_of(uint64_t mac) {
        return mac * 0x9e3779b97f4a7c15u >> (64 - kBucketBits);
    }
    Bucket& bucket_of(uint64_t mac) noexcept { return buckets_[index_of(mac)]; }
    const Bucket& bucket_of(uint64_t mac) const noexcept { return buckets_[index_of(mac)]; }

    alignas(64) std::array<Bucket, 1u << kBucketBits> buckets_;
};

}  // namespace softcx
