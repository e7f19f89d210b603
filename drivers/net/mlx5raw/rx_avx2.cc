// SPDX-License-Identifier: BSD-3-Clause
// Receiving eight packets at a time with AVX2. Compiled for such processors only, so
// it includes nothing that other files would share the code of (rx_ring.h).
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

// pkt_len, data_len, vlan_tci and hash.rss in the upper half, zero in the lower.
template <bool kVlan>
__m256i lengths_and_hash(const Cqe* cqe) {
    // Double words 5 and 7 of the register get the byte count and the hash.
    static_assert(offsetof(Cqe, rx_hash) == 12 && offsetof(Cqe, byte_count) == 24 + 20);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(cqe);
    const __m256i hash =
        _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
    __m256i words = _mm256_blend_epi32(
        hash, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 24)), 1 << 5);
    if constexpr (kVlan) {  // double word 6, its upper half
        static_assert(offsetof(Cqe, vlan_info) == 4 + 24 + 2);
        words = _mm256_blend_epi32(
            words, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 4)), 1 << 6);
    }
    constexpr char kTag0 = kVlan ? 11 : -1, kTag1 = kVlan ? 10 : -1;
    const __m256i order =
        _mm256_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                         -1, 7, 6, 5, 4, 7, 6, kTag0, kTag1, 15, 14, 13, 12);
    return _mm256_shuffle_epi8(words, order);
}

// Eight mbufs. The sum of their lengths is added to double word 5 of `bytes`.
template <bool kVlan, size_t... kIndex>
__m256i decode_group(const Cqe* cqes, rte_mbuf* const* mbufs, const CqeClass* classes,
                     __m256i bytes, std::index_sequence<kIndex...>) {
    const auto* const table = reinterpret_cast<const uint8_t*>(classes);
    const __m128i offsets = class_offsets(cqes);
    const auto decode = [&](const Cqe* cqe, rte_mbuf* mbuf, int offset) {
        const __m256i fields = lengths_and_hash<kVlan>(cqe);
        const __m256i kind = _mm256_load_si256(
            reinterpret_cast<const __m256i*>(table + static_cast<size_t>(offset) * 2));
        bytes = _mm256_add_epi32(bytes, fields);
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(reinterpret_cast<uint8_t*>(mbuf) + kMbufPart),
            _mm256_or_si256(fields, kind));
    };
    (decode(cqes + kIndex, mbufs[kIndex], _mm_extract_epi16(offsets, kIndex)), ...);
    return bytes;
}

void copy_pointers(rte_mbuf** to, rte_mbuf* const* from) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 4));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 4), high);
}

// `groups` of entries in a row. A group that is valid in part is decoded as a whole:
// its other mbufs are posted ones, whose headers nobody reads.
template <bool kVlan>
uint32_t decode_groups(RxRing& ring, rte_mbuf** packets, uint32_t groups) {
    const Cqe* cqes = &ring.cqes[ring.cq_consumer & ring.cq_mask];
    rte_mbuf** mbufs = &ring.mbufs[ring.consumer & ring.mask];
    const CqeClass* const classes = ring.classes;
    const bool extras = (ring.extras & ~kRxVlan) != 0;
    const int owner = (ring.cq_consumer >> ring.cq_log) & kCqeOwnerMask;
    const __m128i expected = _mm_set1_epi8(static_cast<char>(kCqeResponderSend << 4 | owner));
    __m256i sum = _mm256_setzero_si256();
    uint64_t bytes = 0;
    uint32_t taken = 0;
    for (const uint32_t end = groups * kGroup; taken < end; taken += kGroup) {
        const uint32_t valid = valid_entries(cqes + taken, expected);
        const __m256i before = sum;
        sum = decode_group<kVlan>(cqes + taken, mbufs + taken, classes, sum,
                                  std::make_index_sequence<kGroup>());
        copy_pointers(packets + taken, mbufs + taken);
        const auto count = static_cast<uint32_t>(__builtin_ctz(~valid));
        if (unlikely(extras)) {
            rx_report_extras(ring, cqes + taken, 1, mbufs + taken, count);
        }
        if (unlikely(count != kGroup)) {
            sum = before;
            for (uint32_t i = 0; i < count; ++i) {
                bytes += mbufs[taken + i]->pkt_len;
            }
            taken += count;
            break;
        }
    }
    ring.cq_consumer += taken;
    ring.consumer += taken;
    ring.counters.bytes += bytes + static_cast<uint32_t>(_mm256_extract_epi32(sum, 5));
    return taken;
}

// Eight packets of a session, whose entries and mbufs do not wrap.
template <size_t... kIndex>
__m256i expand_group(const MiniCqe* minis, __m256i common, rte_mbuf* const* mbufs, __m256i bytes,
                     std::index_sequence<kIndex...>) {
    static_assert(offsetof(MiniCqe, rx_hash) == 0 && offsetof(MiniCqe, byte_count) == 4);
    const __m256i order =
        _mm256_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                         -1, 7, 6, 5, 4, 7, 6, -1, -1, 3, 2, 1, 0);
    const auto expand = [&](const MiniCqe* mini, rte_mbuf* mbuf) {
        const __m256i fields =
            _mm256_shuffle_epi8(_mm256_set1_epi64x(*reinterpret_cast<const int64_t*>(mini)), order);
        bytes = _mm256_add_epi32(bytes, fields);
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(reinterpret_cast<uint8_t*>(mbuf) + kMbufPart),
            _mm256_or_si256(fields, common));
    };
    (expand(minis + kIndex, mbufs[kIndex]), ...);
    return bytes;
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

}  // namespace

uint16_t rx_decode_avx2(RxRing& ring, rte_mbuf** packets, uint16_t count) {
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
                        ? decode_groups<true>(ring, packets + received, groups)
                        : decode_groups<false>(ring, packets + received, groups);
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

void rx_expand_avx2(RxRing& ring) {
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
        bytes = expand_group(minis, common, mbufs, bytes, Group());
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

bool rx_refill_avx2(RxRing& ring, uint32_t batch) {
    if (unlikely(batch % 4 != 0)) {
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
    const __m256i head = _mm256_set1_epi64x(static_cast<int64_t>(ring.segment_head));
    const __m256i offset = _mm256_set1_epi64x(ring.buffer_offset);
    const __m256i swap = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
    for (uint32_t i = 0; i < batch; i += 4) {
        const __m256i objects = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(slots + i), objects);
        // The unpacks below take the first and third, then the second and fourth.
        const __m256i pairs = _mm256_permute4x64_epi64(objects, 0b11'01'10'00);
        const __m256i address = _mm256_shuffle_epi8(_mm256_add_epi64(pairs, offset), swap);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(wqes + i),
                            _mm256_unpacklo_epi64(head, address));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(wqes + i + 2),
                            _mm256_unpackhi_epi64(head, address));
    }
    ring.producer += batch;
    return true;
}

}  // namespace tagwire::mlx5raw
