// SPDX-License-Identifier: BSD-3-Clause
// Receiving eight packets at a time with AVX2.
#include "drivers/net/mlx5raw/rx_vector.h"

namespace tagwire::mlx5raw {
namespace {

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

struct Avx2 {
    static constexpr uint32_t kBatch = 4;

    template <bool kVlan>
    static __m256i decode(const Cqe* cqes, rte_mbuf* const* mbufs, const CqeClass* classes,
                          __m128i offsets, __m256i sum) {
        return decode_each<kVlan>(cqes, mbufs, classes, offsets, sum, Group());
    }

    template <bool kVlan>
    static __m256i decode_one(const Cqe* cqe, rte_mbuf* mbuf, __m256i kind) {
        const __m256i fields = lengths_and_hash<kVlan>(cqe);
        store_mbuf(mbuf, _mm256_or_si256(fields, kind));
        return fields;
    }

    static __m256i expand(const MiniCqe* minis, __m256i common, rte_mbuf* const* mbufs,
                          __m256i sum) {
        return expand_each(minis, common, mbufs, sum, Group());
    }

    static void copy(rte_mbuf** to, rte_mbuf* const* from) {
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 4));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), low);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 4), high);
    }

    static void post(const RxRing& ring, void* const* from, rte_mbuf** slots, DataSegment* wqes,
                     uint32_t batch) {
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
    }

  private:
    using Group = std::make_index_sequence<kGroup>;

    template <bool kVlan, size_t... kIndex>
    static __m256i decode_each(const Cqe* cqes, rte_mbuf* const* mbufs, const CqeClass* classes,
                               __m128i offsets, __m256i sum, std::index_sequence<kIndex...>) {
        ((sum = _mm256_add_epi32(
              sum, decode_one<kVlan>(cqes + kIndex, mbufs[kIndex],
                                     load_class(classes, _mm_extract_epi16(offsets, kIndex))))),
         ...);
        return sum;
    }

    template <size_t... kIndex>
    static __m256i expand_each(const MiniCqe* minis, __m256i common, rte_mbuf* const* mbufs,
                               __m256i sum, std::index_sequence<kIndex...>) {
        static_assert(offsetof(MiniCqe, rx_hash) == 0 && offsetof(MiniCqe, byte_count) == 4);
        const __m256i order =
            _mm256_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                             -1, -1, 7, 6, 5, 4, 7, 6, -1, -1, 3, 2, 1, 0);
        const auto expand_one = [&](const MiniCqe* mini, rte_mbuf* mbuf) {
            const __m256i fields = _mm256_shuffle_epi8(
                _mm256_set1_epi64x(*reinterpret_cast<const int64_t*>(mini)), order);
            sum = _mm256_add_epi32(sum, fields);
            store_mbuf(mbuf, _mm256_or_si256(fields, common));
        };
        (expand_one(minis + kIndex, mbufs[kIndex]), ...);
        return sum;
    }
};

}  // namespace

uint16_t rx_decode_avx2(RxRing& ring, rte_mbuf** packets, uint16_t count) {
    return decode_completions<Avx2>(ring, packets, count);
}

void rx_expand_avx2(RxRing& ring) {
    expand_session<Avx2>(ring);
}

bool rx_refill_avx2(RxRing& ring, uint32_t batch) {
    return refill_ring<Avx2>(ring, batch);
}

}  // namespace tagwire::mlx5raw
