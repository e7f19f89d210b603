// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/local_wire.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace softcx {

CableMemory::CableMemory() noexcept {
    // Pages appear as they are touched.
    void* memory = mmap(nullptr, sizeof(FrameRingHeader) + kSize, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    header_ = new (memory) FrameRingHeader{};
    data_ = static_cast<uint8_t*>(memory) + sizeof(FrameRingHeader);
}

CableMemory::~CableMemory() {
    if (header_ != nullptr)
        munmap(header_, sizeof(FrameRingHeader) + kSize);
}

LocalWire::LocalWire(std::shared_ptr<Cable> cable, uint32_t sends_to, uint32_t receives_from,
                     std::string description) noexcept
    : cable_(std::move(cable)),
      own_end_(receives_from),
      far_end_(sends_to),
      producer_(cable_->direction[sends_to].producer()),
      consumer_(cable_->direction[receives_from].consumer()),
      description_(std::move(description)) {
    cable_->plugged[own_end_].store(true, std::memory_order_release);
}

LocalWire::~LocalWire() {
    cable_->plugged[own_end_].store(false, std::memory_order_release);
}

bool LocalWire::send(std::span<const Piece> pieces, uint32_t total) noexcept {
    if (total > kMaxFrame)
        return false;
    if (!link_up())
        return true;  // onto a cable that ends nowhere
    uint8_t* to = producer_.reserve(total);
    if (to == nullptr)
        return false;
    gather(pieces, to);
    producer_.publish(total);
    return true;
}

bool LocalWire::link_up() const noexcept {
    return cable_->plugged[far_end_].load(std::memory_order_acquire);
}

std::unique_ptr<Wire> open_pair_wire(uint32_t device_index, std::string* error) {
    static std::mutex mutex;
    static std::map<uint32_t, std::weak_ptr<Cable>> cables;

    const std::lock_guard guard(mutex);
    const uint32_t number = device_index / 2;
    const uint32_t end = device_index % 2;
    std::shared_ptr<Cable> cable = cables[number].lock();
    if (cable == nullptr) {
        cable = std::make_shared<Cable>();
        if (!cable->direction[0].ok() || !cable->direction[1].ok()) {
            *error = "no memory for the pair wire";
            return nullptr;
        }
        cables[number] = cable;
    }
    if (cable->plugged[end].load()) {
        *error = "this end of the pair wire is in use: mlx5_" + std::to_string(device_index);
        return nullptr;
    }
    return std::make_unique<LocalWire>(cable, 1 - end, end,
                                       "pair with mlx5_" + std::to_string(device_index ^ 1));
}

std::unique_ptr<Wire> open_loopback_wire(std::string* error) {
    auto cable = std::make_shared<Cable>();
    if (!cable->direction[0].ok()) {
        *error = "no memory for the loopback wire";
        return nullptr;
    }
    return std::make_unique<LocalWire>(cable, 0, 0, "loopback");
}

}  // namespace softcx
