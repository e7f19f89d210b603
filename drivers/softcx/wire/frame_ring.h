// SPDX-License-Identifier: BSD-3-Clause
// A byte ring for frames with one producer and one consumer, which may be two
// processes. Nothing is published before it is complete, and either side keeps its
// position in the shared header: a side that dies at any instruction leaves a ring
// that its successor can use.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>

namespace softcx {

inline constexpr uint32_t kMaxFrame = 10240;  // the longest frame that a wire carries

struct FrameRingHeader {
    alignas(64) std::atomic<uint64_t> head;  // bytes ever published (producer)
    std::atomic<uint64_t> base;              // the position that lies at the start of the data
    alignas(64) std::atomic<uint64_t> tail;  // bytes ever released (consumer)
};
static_assert(sizeof(FrameRingHeader) == 128);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// A record is this header, the frame, and padding to kRecordAlign. Records don't
// wrap: kSkip says that the next record is at the start of the ring.
struct FrameRecord {
    uint32_t length;
    uint32_t reserved;
};
static_assert(sizeof(FrameRecord) == 8);
inline constexpr uint32_t kRecordAlign = 16;
inline constexpr uint32_t kSkip = 0xffffffff;

constexpr uint64_t record_bytes(uint32_t length) {
    return (sizeof(FrameRecord) + length + kRecordAlign - 1) & ~uint64_t{kRecordAlign - 1};
}

class FrameProducer {
  public:
    FrameProducer() = default;
    // `size` is a power of two.
    FrameProducer(FrameRingHeader* header, uint8_t* data, uint64_t size) noexcept
        : header_(header),
          data_(data),
          size_(size),
          head_(header->head.load(std::memory_order_relaxed)),
          base_(header->base.load(std::memory_order_relaxed)),
          tail_(header->tail.load(std::memory_order_acquire)) {}

    bool is_open() const noexcept { return header_ != nullptr; }

    // Room for one frame, or nullptr when the ring is full.
    uint8_t* reserve(uint32_t length) noexcept {
        const uint64_t need = record_bytes(length);
        if (((head_ - base_) ^ (head_ - base_ + need)) >> kHotShift != 0)
            start_over_if_empty();
        const uint64_t to_end = size_ - offset_of(head_);
        const uint64_t total = need > to_end ? to_end + need : need;
        if (head_ + total - tail_ > size_) {
            tail_ = header_->tail.load(std::memory_order_acquire);
            if (head_ + total - tail_ > size_)
                return nullptr;
        }
        if (need > to_end) {
            // Goes out with the next publish().
            record_at(head_)->length = kSkip;
            head_ += to_end;
        }
        FrameRecord* record = record_at(head_);
        record->length = length;
        return reinterpret_cast<uint8_t*>(record + 1);
    }

    void publish(uint32_t length) noexcept {
        head_ += record_bytes(length);
        header_->head.store(head_, std::memory_order_release);
    }

  private:
    static constexpr uint32_t kHotShift = 16;

    uint64_t offset_of(uint64_t position) const noexcept {
        return (position - base_) & (size_ - 1);
    }
    FrameRecord* record_at(uint64_t position) noexcept {
        return reinterpret_cast<FrameRecord*>(data_ + offset_of(position));
    }

    // While the consumer keeps up, the first 64 KiB are used again and again and stay
    // in the cache. In an empty ring nothing is where it must stay, and the consumer
    // reads `base` with the next `head`, before it looks for a record.
    void start_over_if_empty() noexcept {
        tail_ = header_->tail.load(std::memory_order_acquire);
        if (tail_ != head_)
            return;
        base_ = head_;
        header_->base.store(base_, std::memory_order_relaxed);
    }

    FrameRingHeader* header_ = nullptr;
    uint8_t* data_ = nullptr;
    uint64_t size_ = 0;
    uint64_t head_ = 0;
    uint64_t base_ = 0;
    uint64_t tail_ = 0;  // as last seen
};

class FrameConsumer {
  public:
    FrameConsumer() = default;
    FrameConsumer(FrameRingHeader* header, uint8_t* data, uint64_t size) noexcept
        : header_(header),
          data_(data),
          size_(size),
          head_(header->head.load(std::memory_order_acquire)),
          base_(header->base.load(std::memory_order_relaxed)),
          tail_(header->tail.load(std::memory_order_relaxed)) {}

    bool is_open() const noexcept { return header_ != nullptr; }

    // The oldest frame in place, until release(); empty when there is none.
    std::span<const uint8_t> front() noexcept {
        for (;;) {
            if (tail_ == head_) {
                refresh();
                if (tail_ == head_)
                    return {};
            }
            const uint64_t offset = (tail_ - base_) & (size_ - 1);
            const auto* record = reinterpret_cast<const FrameRecord*>(data_ + offset);
            const uint32_t length = record->length;
            if (length == kSkip) {
                tail_ += size_ - offset;
                continue;
            }
            if (length > kMaxFrame || record_bytes(length) > head_ - tail_) {
                discard();  // somebody else wrote into the segment
                return {};
            }
            length_ = length;
            return {reinterpret_cast<const uint8_t*>(record + 1), length};
        }
    }

    void release() noexcept {
        tail_ += record_bytes(length_);
        header_->tail.store(tail_, std::memory_order_release);
    }

    // Drops everything that was published so far.
    void discard() noexcept {
        refresh();
        tail_ = head_;
        header_->tail.store(tail_, std::memory_order_release);
    }

  private:
    void refresh() noexcept {
        head_ = header_->head.load(std::memory_order_acquire);
        base_ = header_->base.load(std::memory_order_relaxed);
    }

    FrameRingHeader* header_ = nullptr;
    uint8_t* data_ = nullptr;
    uint64_t size_ = 0;
    uint64_t head_ = 0;  // as last seen
    uint64_t base_ = 0;  // as it was with head_
    uint64_t tail_ = 0;
    uint32_t length_ = 0;  // of the frame that front() returned
};

// Copies the pieces of a frame to `to`.
template <typename Pieces>
void gather(const Pieces& pieces, uint8_t* to) noexcept {
    for (const auto& piece : pieces) {
        std::memcpy(to, piece.data, piece.length);
        to += piece.length;
    }
}

}  // namespace softcx
