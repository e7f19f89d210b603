// SPDX-License-Identifier: BSD-3-Clause
// Posted receives by endpoint and context, oldest first: what tw_cancel looks for. Most
// programs never cancel, or only while few receives are posted, and those are searched; so
// the index is filled when a cancel first needs it, and kept up to date from then on.
#pragma once

#include <bit>
#include <cstring>

#include "lib/tagwire/memory.h"
#include "lib/tagwire/requests.h"

namespace tagwire {

class ContextIndex {
  public:
    explicit ContextIndex(Pool<ReceiveRequest>& requests)
        : requests_(requests),
          mask_(std::bit_ceil(requests.capacity()) - 1),
          pages_((size_t{mask_} + 1) * sizeof(Bucket)),
          buckets_(static_cast<Bucket*>(pages_.get())) {}

    bool active() const { return active_; }
    void activate() { active_ = true; }

    void insert(ReceiveRequest& request) {
        const uint32_t number = requests_.index_of(&request) + 1;
        Bucket& bucket = bucket_of(request.endpoint, request.context);
        request.previous_context = bucket.last;
        request.next_context = 0;
        (bucket.last != 0 ? at(bucket.last).next_context : bucket.first) = number;
        bucket.last = number;
    }

    void erase(const ReceiveRequest& request) {
        const uint32_t next = request.next_context;
        const uint32_t previous = request.previous_context;
        if (next != 0 && previous != 0) {
            at(next).previous_context = previous;
            at(previous).next_context = next;
            return;
        }
        Bucket& bucket = bucket_of(request.endpoint, request.context);
        (next != 0 ? at(next).previous_context : bucket.last) = previous;
        (previous != 0 ? at(previous).next_context : bucket.first) = next;
    }

    // nullptr when there is none.
    ReceiveRequest* oldest(const Endpoint* endpoint, const void* context) {
        for (uint32_t number = bucket_of(endpoint, context).first; number != 0;) {
            ReceiveRequest& request = at(number);
            if (request.endpoint == endpoint && request.context == context) {
                return &request;
            }
            number = request.next_context;
        }
        return nullptr;
    }

  private:
    struct Bucket {  // numbers are indexes in the pool, plus one
        uint32_t first;
        uint32_t last;
    };

    ReceiveRequest& at(uint32_t number) { return requests_[number - 1]; }

    Bucket& bucket_of(const Endpoint* endpoint, const void* context) {
        const auto key = std::bit_cast<uint64_t>(context) + std::bit_cast<uint64_t>(endpoint) * 31;
        return buckets_[(key * 0x9e3779b97f4a7c15u >> 32) & mask_];
    }

    Pool<ReceiveRequest>& requests_;
    bool active_ = false;
    uint32_t mask_;
    Pages pages_;
    Bucket* buckets_;
};

}  // namespace tagwire
