// SPDX-License-Identifier: BSD-3-Clause
#include "lib/tagwire/registration_cache.h"

#include <unistd.h>

#include <algorithm>
#include <new>

namespace tagwire {
namespace {

uintptr_t page_size() {
    static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    return size;
}

}  // namespace

RegistrationCache::~RegistrationCache() {
    while (oldest_ != nullptr) {
        drop(*oldest_);
    }
}

Registration* RegistrationCache::acquire(const void* start, uint64_t length) noexcept {
    const uintptr_t page = page_size();
    uintptr_t base = reinterpret_cast<uintptr_t>(start) & ~(page - 1);
    uintptr_t end = (reinterpret_cast<uintptr_t>(start) + length + page - 1) & ~(page - 1);
    // Before the marks are looked at: see memory_watch.h.
    if (!watch_.settled()) [[unlikely]] {
        ++counters_.refused;
        return nullptr;
    }
    if (watch_.marks() != marks_seen_) [[unlikely]] {
        drop_gone();
    }
    Registration* found = find(base, end);
    if (found != nullptr) [[likely]] {
        ++counters_.hits;
        if (found != newest_) {
            unlink(*found);
            link_newest(*found);
        }
        ++found->uses;
        return found;
    }
    try {
        if (clear_overlap(&base, &end) && make_room(end - base)) {
            found = add(base, end);
        }
    } catch (const std::bad_alloc&) {
        found = nullptr;
    }
    if (found == nullptr) {
        ++counters_.refused;
        return nullptr;
    }
    ++found->uses;
    return found;
}

// The most recent one is asked first: a program mostly sends from few buffers.
Registration* RegistrationCache::find(uintptr_t base, uintptr_t end) {
    Registration* candidate = newest_;
    if (candidate == nullptr || base < candidate->range.base || end > candidate->range.end) {
        const auto above = ranges_.upper_bound(base);
        if (above == ranges_.begin()) {
            return nullptr;
        }
        candidate = std::prev(above)->second.get();
    }
    const bool whole = end <= candidate->range.end;
    return whole && !candidate->range.gone.load(std::memory_order_acquire) ? candidate : nullptr;
}

// A device refuses memory that it knows already: ranges that overlap become
// one, which is possible while nobody uses them. What is gone of them is not
// registered again.
bool RegistrationCache::clear_overlap(uintptr_t* base, uintptr_t* end) {
    auto at = ranges_.upper_bound(*base);
    if (at != ranges_.begin() && std::prev(at)->second->range.end > *base) {
        --at;
    }
    for (auto look = at; look != ranges_.end() && look->first < *end; ++look) {
        if (look->second->uses != 0) {
            return false;
        }
    }
    const uintptr_t wanted_end = *end;
    while (at != ranges_.end() && at->first < wanted_end) {
        Registration& overlapping = *at->second;
        ++at;
        if (overlapping.range.gone.load(std::memory_order_acquire)) {
            ++counters_.invalidated;
        } else {
            *base = std::min(*base, overlapping.range.base);
            *end = std::max(*end, overlapping.range.end);
        }
        drop(overlapping);
    }
    return true;
}

// The device holds the pages of memory that is gone: they are given back as
// soon as nobody uses the registration.
void RegistrationCache::drop_gone() {
    const uint64_t marks = watch_.marks();
    bool all = true;
    for (auto at = ranges_.begin(); at != ranges_.end();) {
        Registration& registration = *at->second;
        ++at;
        if (!registration.range.gone.load(std::memory_order_acquire)) {
            continue;
        }
        if (registration.uses != 0) {
            all = false;
            continue;
        }
        ++counters_.invalidated;
        drop(registration);
    }
    if (all) {
        marks_seen_ = marks;
    }
}

bool RegistrationCache::make_room(uint64_t bytes) {
    Registration* candidate = oldest_;
    while (ranges_.size() >= max_ranges_ || bytes_ + bytes > max_bytes_) {
        while (candidate != nullptr && candidate->uses != 0) {
            candidate = candidate->newer;
        }
        if (candidate == nullptr) {
            return false;
        }
        Registration& victim = *candidate;
        candidate = candidate->newer;
        ++(victim.range.gone.load(std::memory_order_acquire) ? counters_.invalidated
                                                             : counters_.evicted);
        drop(victim);
    }
    return true;
}

// Watched before it is mapped, so that no end of the memory is missed.
Registration* RegistrationCache::add(uintptr_t base, uintptr_t end) {
    auto made = std::make_unique<Registration>();
    made->range.base = base;
    made->range.end = end;
    Registration& registration = *made;
    const auto place = ranges_.emplace(base, std::move(made)).first;
    if (!watch_.watch(registration.range)) {
        ranges_.erase(place);
        return nullptr;
    }
    if (!device_.map(base, end - base)) {
        watch_.unwatch(registration.range);
        ranges_.erase(place);
        return nullptr;
    }
    bytes_ += end - base;
    ++counters_.made;
    link_newest(registration);
    return &registration;
}

void RegistrationCache::drop(Registration& registration) {
    watch_.unwatch(registration.range);
    device_.unmap(registration.range.base, registration.length());
    bytes_ -= registration.length();
    unlink(registration);
    ranges_.erase(registration.range.base);
}

void RegistrationCache::link_newest(Registration& registration) {
    registration.newer = nullptr;
    registration.older = newest_;
    (newest_ != nullptr ? newest_->newer : oldest_) = &registration;
    newest_ = &registration;
}

void RegistrationCache::unlink(Registration& registration) {
    (registration.newer != nullptr ? registration.newer->older : newest_) = registration.older;
    (registration.older != nullptr ? registration.older->newer : oldest_) = registration.newer;
}

}  // namespace tagwire
