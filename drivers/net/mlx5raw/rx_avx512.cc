// SPDX-License-Identifier: BSD-3-Clause
// Receiving eight packets at a time with AVX-512 (F, BW, VL, VBMI): one permutation takes
// what an mbuf needs out of a whole completion entry.
#include "drivers/net/mlx5raw/rx_vector.h"

namespace tagwire::mlx5raw {
namespace {

// For each byte of the mbuf's part, where it is in a completion entry or a mini array:
// pkt_len, data_len, vlan_tci and hash.rss, each from big-endian order.
struct alignas(64) Order {
    uint8_t from[64] = {};
};

constexpr uint32_t kLengthAt = 20, kDataLengthAt = 24, kVlanAt = 26, kHashAt = 28;
constexpr __mmask64 kAllFields = 0xfff00000, kWithoutVlan = 0xf3f00000;  // the others are zero

constexpr Order make_order(size_t length, size_t vlan, size_t hash) {
    Order order;
    for (uint32_t i = 0; i < 4; ++i) {
        order.from[kLengthAt + i] = static_cast<uint8_t>(length + 3 - i);
        order.from[kHashAt + i] = static_cast<uint8_t>(hash + 3 - i);
    }
    for (uint32_t i = 0; i < 2; ++i) {
        order.from[kDataLengthAt + i] = static_cast<uint8_t>(length + 3 - i);
        order.from[kVlanAt + i] = static_cast<uint8_t>(vlan + 1 - i);
    }
    return order;
}

constexpr Order kEntryOrder =
    make_order(offsetof(Cqe, byte_count), offsetof(Cqe, vlan_info), offsetof(Cqe, rx_hash));
template <size_t kIndex>
constexpr Order kMiniOrder = make_order(kIndex * sizeof(MiniCqe) + offsetof(MiniCqe, byte_count), 1,
                                        kIndex * sizeof(MiniCqe) + offsetof(MiniCqe, rx_hash));

__m256i pick(const Order& order, __mmask64 used, __m512i from) {
    return _mm512_castsi512_si256(
        _mm512_maskz_permutexvar_epi8(used, _mm512_load_si512(&order), from));
}

struct Avx512 {
    static constexpr uint32_t kBatch = 8;

    template <bool kVlan>
    static __m256i decode(const Cqe* cqes, rte_mbuf* const* mbufs, const CqeClass* classes,
                          __m128i offsets, __m256i sum) {
        return decode_each<kVlan>(cqes, mbufs, classes, offsets, sum, Group());
    }

    template <bool kVlan>
    static __m256i decode_one(const Cqe* cqe, rte_mbuf* mbuf, __m256i kind) {
        const __m256i fields =
            pick(kEntryOrder, kVlan ? kAllFields : kWithoutVlan, _mm512_load_si512(cqe));
        store_mbuf(mbuf, _mm256_or_si256(fields, kind));
        return fields;
    }

    static __m256i expand(const MiniCqe* minis, __m256i common, rte_mbuf* const* mbufs,
                          __m256i sum) {
        return expand_each(_mm512_loadu_si512(minis), common, mbufs, sum, Group());
    }

    static void copy(rte_mbuf** to, rte_mbuf* const* from) {
        _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    }

    static void post(const RxRing& ring, void* const* from, rte_mbuf** slots, DataSegment* wqes,
                     uint32_t batch) {
        const __m512i head = _mm512_set1_epi64(static_cast<int64_t>(ring.segment_head));
        const __m512i offset = _mm512_set1_epi64(ring.buffer_offset);
        const __m512i swap = _mm512_broadcast_i32x4(
            _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
        // Head and address in turn; 8 and up is the second operand.
        const __m512i first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        const __m512i second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        for (uint32_t i = 0; i < batch; i += kBatch) {
            const __m512i objects = _mm512_loadu_si512(from + i);
            _mm512_storeu_si512(slots + i, objects);
            const __m512i address = _mm512_shuffle_epi8(_mm512_add_epi64(objects, offset), swap);
            _mm512_storeu_si512(wqes + i, _mm512_permutex2var_epi64(head, first, address));
            _mm512_storeu_si512(wqes + i + 4, _mm512_permutex2var_epi64(head, second, address));
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
    static __m256i expand_each(__m512i minis, __m256i common, rte_mbuf* const* mbufs, __m256i sum,
                               std::index_sequence<kIndex...>) {
        const auto expand_one = [&](const Order& order, rte_mbuf* mbuf) {
            const __m256i fields = pick(order, kWithoutVlan, minis);
            sum = _mm256_add_epi32(sum, fields);
            store_mbuf(mbuf, _mm256_or_si256(fields, common));
        };
        (expand_one(kMiniOrder<kIndex>, mbufs[kIndex]), ...);
        return sum;
    }
};

}  // namespace

uint16_t rx_decode_avx512(RxRing& ring, rte_mbuf** packets, uint16_t count) {
    return decode_completions<Avx512>(ring, packets, count);
}

void rx_expand_avx512(RxRing& ring) {
    expand_session<Avx512>(ring);
}

bool rx_refill_avx512(RxRing& ring, uint32_t batch) {
    return refill_ring<Avx512>(ring, batch);
}

}  // namespace tagwire::mlx5raw
