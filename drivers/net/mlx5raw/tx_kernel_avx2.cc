// SPDX-License-Identifier: BSD-3-Clause
// The loops of tx_kernel.h, four packets at a time.
//
// The lanes of a vector hold packets 0, 2, 1, 3: unpacking low and high halves then
// gives the data segments in order.
#include "drivers/net/mlx5raw/tx_kernel.h"

#include <immintrin.h>

#include <cstddef>

namespace tagwire::mlx5raw {
namespace {

// What the loads below rely on.
static_assert(offsetof(rte_mbuf, buf_addr) == 0 && offsetof(rte_mbuf, data_off) == 16 &&
              offsetof(rte_mbuf, refcnt) == 18 && offsetof(rte_mbuf, nb_segs) == 20 &&
              offsetof(rte_mbuf, ol_flags) == 24 && offsetof(rte_mbuf, pkt_len) == 36 &&
              offsetof(rte_mbuf, data_len) == 40);

constexpr long long kDataOffMask = 0xffff;
constexpr unsigned kDataLenShift = 32;  // in the eight bytes from pkt_len on
constexpr long long kDataLenMask = 0xffffLL << kDataLenShift;
constexpr unsigned kNbSegsShift = 32;  // in the eight bytes from data_off on
constexpr long long kNbSegsMask = 0xffffLL << kNbSegsShift;
constexpr unsigned kRefcntShift = 16;
constexpr long long kRefcntMask = 0xffffLL << kRefcntShift;

inline __attribute__((always_inline)) const uint8_t* field(const rte_mbuf* mbuf, size_t offset) {
    return reinterpret_cast<const uint8_t*>(mbuf) + offset;
}

// Eight bytes at `offset` of each, in lanes 0, 2, 1, 3.
inline __attribute__((always_inline)) __m256i load_words(const rte_mbuf* const* mbufs,
                                                         size_t offset) {
    const auto pair = [offset](const rte_mbuf* low, const rte_mbuf* high) {
        const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(field(low, offset)));
        return _mm_castpd_si128(_mm_loadh_pd(_mm_castsi128_pd(half),
                                             reinterpret_cast<const double*>(field(high, offset))));
    };
    return _mm256_inserti128_si256(_mm256_castsi128_si256(pair(mbufs[0], mbufs[2])),
                                   pair(mbufs[1], mbufs[3]), 1);
}

// Sixteen bytes at `offset` of two mbufs.
inline __attribute__((always_inline)) __m256i load_pair(const rte_mbuf* low, const rte_mbuf* high,
                                                        size_t offset) {
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(field(low, offset)))),
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(field(high, offset))), 1);
}

template <bool kOffloads>
inline __attribute__((always_inline)) uint32_t write(uint8_t* segments, rte_mbuf* const* packets,
                                                     rte_mbuf** kept, uint32_t count,
                                                     const MpwSession& session, uint64_t& bytes) {
    const __m256i base = _mm256_set1_epi64x(static_cast<long long>(session.base));
    const __m256i last = _mm256_set1_epi64x(static_cast<long long>(session.length - 1));
    const __m256i shortest =
        _mm256_set1_epi64x(static_cast<long long>(session.shortest) << kDataLenShift);
    const __m256i key = _mm256_set1_epi64x(static_cast<long long>(session.lkey) << 32);
    const __m256i flags = _mm256_set1_epi64x(static_cast<long long>(session.flags));
    // data_len to the big-endian byte count, whose upper half is zero; the key follows.
    const __m256i count_order =
        _mm256_setr_epi8(-1, -1, 5, 4, -1, -1, -1, -1, -1, -1, 13, 12, -1, -1, -1, -1,  //
                         -1, -1, 5, 4, -1, -1, -1, -1, -1, -1, 13, 12, -1, -1, -1, -1);
    const __m256i address_order =
        _mm256_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8,  //
                         7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
    __m256i sum = _mm256_setzero_si256();
    __m256i misfit = _mm256_setzero_si256();  // sign bits
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        rte_mbuf* const* const group = packets + i;
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(kept + i),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group)));
        __m256i rearm;
        if constexpr (kOffloads) {
            const __m256i first = load_pair(group[0], group[1], offsetof(rte_mbuf, data_off));
            const __m256i second = load_pair(group[2], group[3], offsetof(rte_mbuf, data_off));
            rearm = _mm256_unpacklo_epi64(first, second);
            const __m256i other_flags =
                _mm256_and_si256(_mm256_xor_si256(_mm256_unpackhi_epi64(first, second), flags),
                                 _mm256_set1_epi64x(static_cast<long long>(kMpwFlags)));
            const __m256i other_segments =
                _mm256_and_si256(_mm256_xor_si256(rearm, _mm256_set1_epi64x(1LL << kNbSegsShift)),
                                 _mm256_set1_epi64x(kNbSegsMask));
            const __m256i other = _mm256_or_si256(other_flags, other_segments);
            if (_mm256_testz_si256(other, other) == 0) {
                break;
            }
        } else {
            rearm = load_words(group, offsetof(rte_mbuf, data_off));
        }
        const __m256i address =
            _mm256_add_epi64(load_words(group, offsetof(rte_mbuf, buf_addr)),
                             _mm256_and_si256(rearm, _mm256_set1_epi64x(kDataOffMask)));
        const __m256i lengths = load_words(group, offsetof(rte_mbuf, pkt_len));
        const __m256i data_len = _mm256_and_si256(lengths, _mm256_set1_epi64x(kDataLenMask));
        // Outside of [base, base + length), or too short: negative.
        const __m256i offset = _mm256_sub_epi64(address, base);
        const __m256i bad = _mm256_or_si256(_mm256_or_si256(offset, _mm256_sub_epi64(last, offset)),
                                            _mm256_sub_epi64(data_len, shortest));
        if constexpr (kOffloads) {
            // Sessions end often here, so find the place at once ...
            if (_mm256_movemask_pd(_mm256_castsi256_pd(bad)) != 0) {
                break;
            }
        } else {
            misfit = _mm256_or_si256(misfit, bad);
        }
        sum = _mm256_add_epi64(sum, data_len);
        const __m256i counts = _mm256_or_si256(_mm256_shuffle_epi8(lengths, count_order), key);
        const __m256i addresses = _mm256_shuffle_epi8(address, address_order);
        auto* const out = reinterpret_cast<__m256i*>(segments + size_t{i} * 16);
        _mm256_storeu_si256(out, _mm256_unpacklo_epi64(counts, addresses));
        _mm256_storeu_si256(out + 1, _mm256_unpackhi_epi64(counts, addresses));
    }
    // ... and here hardly ever: then all of it is the scalar loop's.
    if (!kOffloads && _mm256_movemask_pd(_mm256_castsi256_pd(misfit)) != 0) {
        return 0;
    }
    const __m128i halves =
        _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    bytes += static_cast<uint64_t>(_mm_cvtsi128_si64(halves) + _mm_extract_epi64(halves, 1)) >>
             kDataLenShift;
    return i;
}

template <bool kSegments>
inline __attribute__((always_inline)) bool simple(rte_mbuf* const* mbufs, uint32_t count,
                                                  const rte_mempool* pool) {
    const __m256i state = _mm256_setr_epi64x(1LL << kRefcntShift | 1LL << kNbSegsShift, 0,
                                             1LL << kRefcntShift | 1LL << kNbSegsShift, 0);
    constexpr auto kForeign = static_cast<long long>(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
    const __m256i state_mask = _mm256_setr_epi64x(kRefcntMask | kNbSegsMask, kForeign,
                                                  kRefcntMask | kNbSegsMask, kForeign);
    const __m256i pools = _mm256_set1_epi64x(reinterpret_cast<long long>(pool));
    __m256i other = _mm256_setzero_si256();
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        rte_mbuf* const* const group = mbufs + i;
        const __m256i first = load_pair(group[0], group[1], offsetof(rte_mbuf, data_off));
        const __m256i second = load_pair(group[2], group[3], offsetof(rte_mbuf, data_off));
        const __m256i differ =
            _mm256_or_si256(_mm256_xor_si256(first, state), _mm256_xor_si256(second, state));
        other = _mm256_or_si256(other, _mm256_and_si256(differ, state_mask));
        other = _mm256_or_si256(
            other, _mm256_xor_si256(load_words(group, offsetof(rte_mbuf, pool)), pools));
        if constexpr (kSegments) {
            other = _mm256_or_si256(other, load_words(group, offsetof(rte_mbuf, next)));
        }
    }
    bool all = _mm256_testz_si256(other, other) != 0;
    for (; i < count; ++i) {
        const rte_mbuf* const mbuf = mbufs[i];
        all = all && mbuf->refcnt == 1 && mbuf->nb_segs == 1 && mbuf->pool == pool &&
              (mbuf->ol_flags & static_cast<uint64_t>(kForeign)) == 0 &&
              (!kSegments || mbuf->next == nullptr);
    }
    return all;
}

}  // namespace

uint32_t write_pointers_avx2(uint8_t* segments, rte_mbuf* const* packets, rte_mbuf** kept,
                             uint32_t count, const MpwSession& session, uint64_t& bytes) {
    return write<false>(segments, packets, kept, count, session, bytes);
}

uint32_t write_pointers_offloads_avx2(uint8_t* segments, rte_mbuf* const* packets, rte_mbuf** kept,
                                      uint32_t count, const MpwSession& session, uint64_t& bytes) {
    return write<true>(segments, packets, kept, count, session, bytes);
}

bool all_simple_avx2(rte_mbuf* const* mbufs, uint32_t count, const rte_mempool* pool) {
    return simple<false>(mbufs, count, pool);
}

bool all_simple_segments_avx2(rte_mbuf* const* mbufs, uint32_t count, const rte_mempool* pool) {
    return simple<true>(mbufs, count, pool);
}

}  // namespace tagwire::mlx5raw
