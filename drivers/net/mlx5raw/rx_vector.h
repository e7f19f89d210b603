// SPDX-License-Identifier: BSD-3-Clause
// The loops of the vector paths. Each is compiled for its own processors, so everything
// here is private to the file that includes it, and it includes nothing that other files
// would share the code of (rx_ring.h).
//
// A Kernel has, for eight packets whose entries and mbufs do not wrap,
//   decode<vlan>(cqes, mbufs, classes, class offsets, sum)   sum, with their lengths
//   expand(minis, common, mbufs, sum)                        added in double word 5
//   copy(to, from)                                           the pointers
// for one packet
//   decode_one<vlan>(cqe, mbuf, class)                       its length in double word 5
// and for a refill
//   post(ring, from, slots, wqes, batch)                     batch is a multiple of kBatch
#pragma once

#include <immintrin.h>
#include <rte_branch_prediction.h>

#include <cstddef>
#include <utility>

#include "drivers/net/mlx5raw/rx_ring.h"

namespace tagwire::mlx5raw {
namespace {

constexpr uint32_t kGroup = 8;
constexpr size_t kMbufPart = offsetof(rte_mbuf, data_off);  // what a CqeClass covers

const uint8_t* at(const Cqe* cqes, uint32_t index, size_t offset) {
    return reinterpret_cast<const uint8_t*>(cqes + index) + offset;
}

// One bit per entry: whether it is a plain packet of this round.
uint32_t valid_entries(const Cqe* cqes, __m128i expected) {
    constexpr size_t kOpOwn = offsetof(Cqe, op_own);
    __m128i own = _mm_cvtsi32_si128(*at(cqes, 0, kOpOwn));
    own = _mm_insert_epi8(own, *at(cqes, 1, kOpOwn), 1);
    own = _mm_insert_epi8(own, *at(cqes, 2, kOpOwn), 2);
    own = _mm_insert_epi8(own, *at(cqes, 3, kOpOwn), 3);
    own = _mm_insert_epi8(own, *at(cqes, 4, kOpOwn), 4);
    own = _mm_insert_epi8(own, *at(cqes, 5, kOpOwn), 5);
    own = _mm_insert_epi8(own, *at(cqes, 6, kOpOwn), 6);
    own = _mm_insert_epi8(own, *at(cqes, 7, kOpOwn), 7);
    own = _mm_and_si128(own, _mm_set1_epi8(static_cast<char>(kCqeKindMask)));
    const auto mask = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(own, expected)));
    // The rest of the entries was written before their owner bits, and loads stay in order.
    __asm__ volatile("" ::: "memory");
    return mask & 0xff;
}

// Half the offsets of the entries' classes in the table, in 16-bit lanes.
__m128i class_offsets(const Cqe* cqes) {
    constexpr size_t kHeader = offsetof(Cqe, header);
    const auto header = [cqes](uint32_t index) {
        return *reinterpret_cast<const uint16_t*>(at(cqes, index, kHeader));
    };
    __m128i headers = _mm_cvtsi32_si128(header(0));
    headers = _mm_insert_epi16(headers, header(1), 1);
    headers = _mm_insert_epi16(headers, header(2), 2);
    headers = _mm_insert_epi16(headers, header(3), 3);
    headers = _mm_insert_epi16(headers, header(4), 4);
    headers = _mm_insert_epi16(headers, header(5), 5);
    headers = _mm_insert_epi16(headers, header(6), 6);
    headers = _mm_insert_epi16(headers, header(7), 7);
    headers = _mm_and_si128(headers, _mm_set1_epi16(static_cast<int16_t>(0xff06)));
    // cqe_class_index() * sizeof(CqeClass) / 2 = high byte * 64 + low byte * 8
    static_assert(sizeof(CqeClass) == 32);
    return _mm_maddubs_epi16(headers, _mm_set1_epi16(64 << 8 | 8));
}

void store_mbuf(rte_mbuf* mbuf, __m256i part) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(reinterpret_cast<uint8_t*>(mbuf) + kMbufPart),
                        part);
}

__m256i load_class(const CqeClass* classes, int half_offset) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(
        reinterpret_cast<const uint8_t*>(classes) + static_cast<size_t>(half_offset) * 2));
}

// The first `count` entries of a group, whose others are not there yet.
template <typename Kernel, bool kVlan>
__m256i decode_few(const Cqe* cqes, rte_mbuf** packets, rte_mbuf* const* mbufs,
                   const CqeClass* classes, uint32_t count, __m256i sum) {
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t header = cqes[i].header;
        const __m256i kind = _mm256_load_si256(
            reinterpret_cast<const __m256i*>(classes + (header >> 8 << 2 | (header & 6u) >> 1)));
        packets[i] = mbufs[i];
        sum = _mm256_add_epi32(sum, Kernel::template decode_one<kVlan>(cqes + i, mbufs[i], kind));
    }
    return sum;
}

// `groups` of entries in a row.
template <typename Kernel, bool kVlan>
uint32_t decode_groups(RxRing& ring, rte_mbuf** packets, uint32_t groups) {
    const Cqe* cqes = &ring.cqes[ring.cq_consumer & ring.cq_mask];
    rte_mbuf** mbufs = &ring.mbufs[ring.consumer & ring.mask];
    const CqeClass* const classes = ring.classes;
    const bool extras = (ring.extras & ~kRxVlan) != 0;
    const int owner = (ring.cq_consumer >> ring.cq_log) & kCqeOwnerMask;
    const __m128i expected = _mm_set1_epi8(static_cast<char>(kCqeResponderSend << 4 | owner));
    __m256i sum = _mm256_setzero_si256();
    uint32_t taken = 0;
    for (const uint32_t end = groups * kGroup; taken < end; taken += kGroup) {
        const uint32_t valid = valid_entries(cqes + taken, expected);
        if (unlikely(valid != (1u << kGroup) - 1)) {
            const auto count = static_cast<uint32_t>(__builtin_ctz(~valid));
            sum = decode_few<Kernel, kVlan>(cqes + taken, packets + taken, mbufs + taken, classes,
                                            count, sum);
            if (unlikely(extras)) {
                rx_report_extras(ring, cqes + taken, 1, mbufs + taken, count);
            }
            taken += count;
            break;
        }
        sum = Kernel::template decode<kVlan>(cqes + taken, mbufs + taken, classes,
                                             class_offsets(cqes + taken), sum);
        Kernel::copy(packets + taken, mbufs + taken);
        if (unlikely(extras)) {
            rx_report_extras(ring, cqes + taken, 1, mbufs + taken, kGroup);
        }
    }
    ring.cq_consumer += taken;
    ring.consumer += taken;
    ring.counters.bytes += static_cast<uint32_t>(_mm256_extract_epi32(sum, 5));
    return taken;
}

template <size_t... kIndex>
void release_group(Cqe* cqes, std::index_sequence<kIndex...>) {
    ((cqes[kIndex].op_own = kCqeNotWritten), ...);
}

// What the packets of a session have in common.
__m256i common_part(const RxRing& ring, const Cqe& title) {
    CqeClass kind = ring.classes[(title.header >> 8 << 2) | ((title.header & 6u) >> 1)];
    if ((ring.extras & kRxVlan) != 0) {
        kind.zero[1] = static_cast<uint32_t>(__builtin_bswap16(title.vlan_info.raw)) << 16;
    }
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(&kind));
}

uint32_t min4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return RTE_MIN(RTE_MIN(a, b), RTE_MIN(c, d));
}

template <typename Kernel>
uint16_t decode_completions(RxRing& ring, rte_mbuf** packets, uint16_t count) {
    uint32_t received = 0;
    while (received < count) {
        const uint32_t stretch =
            min4(count - received, ring.cq_mask + 1 - (ring.cq_consumer & ring.cq_mask),
                 ring.mask + 1 - (ring.consumer & ring.mask), ring.producer - ring.consumer);
        const uint32_t groups = stretch / kGroup;
        uint32_t wanted = groups * kGroup;
        uint32_t taken;
        if (likely(groups != 0)) {
            taken = (ring.extras & kRxVlan) != 0
                        ? decode_groups<Kernel, true>(ring, packets + received, groups)
                        : decode_groups<Kernel, false>(ring, packets + received, groups);
        } else {
            wanted = stretch;
            taken = rx_decode_scalar(ring, packets + received, static_cast<uint16_t>(stretch));
        }
        received += taken;
        if (taken < wanted || stretch == 0) {
            break;
        }
    }
    return static_cast<uint16_t>(received);
}

template <typename Kernel>
void expand_session(RxRing& ring) {
    using Group = std::make_index_sequence<kGroup>;
    static_assert(kGroup == kMinisPerEntry);
    const uint32_t first_entry = ring.cq_consumer;
    const Cqe title = ring.cqes[first_entry & ring.cq_mask];
    const uint32_t count = __builtin_bswap32(title.byte_count.raw);
    const __m256i common = common_part(ring, title);
    __m256i bytes = _mm256_setzero_si256();
    for (uint32_t first = 0; first < count; first += kGroup) {
        const uint32_t entry = (first_entry + first) & ring.cq_mask;
        const uint32_t slot = (ring.consumer + first) & ring.mask;
        const MiniCqe* const minis = rx_mini_array(ring, first_entry, first);
        if (unlikely(count - first < kGroup || entry + kGroup > ring.cq_mask + 1 ||
                     slot + kGroup > ring.mask + 1)) {
            const uint32_t some = RTE_MIN(count - first, kGroup);
            rx_expand_some(ring, title, minis, first, some);
            rx_release_entries(ring, entry, some);
            continue;
        }
        rte_mbuf* const* const mbufs = &ring.mbufs[slot];
        bytes = Kernel::expand(minis, common, mbufs, bytes);
        if (unlikely((ring.extras & ~kRxVlan) != 0)) {
            rx_report_extras(ring, &title, 0, mbufs, kGroup);
        }
        release_group(&ring.cqes[entry], Group());
    }
    ring.counters.bytes += static_cast<uint32_t>(_mm256_extract_epi32(bytes, 5));
    ring.cq_consumer += count;
    ring.ready = count;
    ++ring.counters.sessions;
}

template <typename Kernel>
bool refill_ring(RxRing& ring, uint32_t batch) {
    if (unlikely(batch % Kernel::kBatch != 0)) {
        return rx_refill_scalar(ring, batch);
    }
    const uint32_t first = ring.producer & ring.mask;
    rte_mbuf** const slots = &ring.mbufs[first];
    DataSegment* const wqes = &ring.wqes[first];
    // The pool's cache hands out its last objects, here without a second copy.
    void* const* from = reinterpret_cast<void**>(slots);
    rte_mempool_cache* const cache = rte_mempool_default_cache(ring.pool, rte_lcore_id());
    if (likely(cache != nullptr && cache->len >= batch)) {
        cache->len -= batch;
        from = &cache->objs[cache->len];
    } else if (unlikely(rte_mempool_get_bulk(ring.pool, reinterpret_cast<void**>(slots), batch) !=
                        0)) {
        return false;
    }
    Kernel::post(ring, from, slots, wqes, batch);
    ring.producer += batch;
    return true;
}

}  // namespace
}  // namespace tagwire::mlx5raw
