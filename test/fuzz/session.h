// SPDX-License-Identifier: BSD-3-Clause
// A client that sends commands to a device by itself, without the client library, and its
// memory. Addresses from kBase on mean that memory wherever it lies; no other memory is named.
#pragma once

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include "drivers/softcx/engine.h"
#include "drivers/softcx/model/context.h"
#include "drivers/softcx/model/events.h"
#include "drivers/softcx/uverbs/command.h"
#include "drivers/softcx/uverbs/files.h"
#include "drivers/softcx/wire/wire.h"
#include "test/fuzz/input.h"

namespace softcx::fuzz {

inline constexpr uint32_t kExtended = 0x80000000u;
inline constexpr uint64_t kBase = 0x10000000;
inline constexpr size_t kMemory = 256 * 1024;

class Session {
  public:
    Session() {
        static uint8_t* const shared = static_cast<uint8_t*>(
            ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        memory_ = shared;
        std::memset(memory_, 0, kMemory);
        device.name = "mlx5_0";
        device.port.mac = {2, 0, 0, 0, 0xcc, 0};
        device.contexts.push_back(&context);
        std::string error;
        device.port.wire = open_wire("loopback", 0, &error);
    }

    ~Session() {
        {
            const std::lock_guard lock(device.mutex);
            tear_down(context);
        }
        for (const int fd : descriptors_) {
            forget_file(fd);
            ::close(fd);
        }
        require(device.pds.empty() && device.mrs.empty() && device.cqs.empty() &&
                    device.wqs.empty() && device.tables.empty() && device.qps.empty() &&
                    device.flows.empty(),
                "the end of a context releases what it made");
    }

    uint8_t* memory() { return memory_; }

    // Rewrites the address at an offset of a message. One that is not of this client's memory
    // becomes a small number, where nothing is: no real client would name the sanitizer's.
    void place_address(std::span<uint8_t> message, size_t at) const {
        if (at + sizeof(uint64_t) > message.size())
            return;
        uint64_t value;
        std::memcpy(&value, message.data() + at, sizeof(value));
        value = value >= kBase && value < kBase + kMemory
                    ? reinterpret_cast<uint64_t>(memory_) + (value - kBase)
                    : value & 0xffff;
        std::memcpy(message.data() + at, &value, sizeof(value));
    }

    void place_all(std::span<uint8_t> message) const {
        for (size_t at = 0; at < message.size(); at += sizeof(uint64_t))
            place_address(message, at);
    }

    int run(uint32_t number, std::span<const uint8_t> request, size_t response_size,
            std::span<const uint8_t> vendor, size_t vendor_response_size) {
        response.assign(response_size, 0);
        vendor_response.assign(vendor_response_size, 0);
        const int error =
            execute_write_command({context, request, response, vendor, vendor_response}, number);
        require(error >= 0 && error < 4096, "the answer is an errno");
        if (error == 0 && number == IB_USER_VERBS_CMD_GET_CONTEXT)
            keep_descriptor(offsetof(ib_uverbs_get_context_resp, async_fd));
        if (error == 0 && number == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL)
            keep_descriptor(0);
        return error;
    }

    bool open() {
        mlx5_ib_alloc_ucontext_req_v2 vendor{};
        vendor.total_num_bfregs = 16;
        vendor.num_low_latency_bfregs = 4;
        vendor.max_cqe_version = 1;
        vendor.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR;
        return run(IB_USER_VERBS_CMD_GET_CONTEXT, std::vector<uint8_t>(8), 8, bytes_of(vendor),
                   sizeof(mlx5_ib_alloc_ucontext_resp)) == 0;
    }

    template <typename T>
    static std::vector<uint8_t> bytes_of(const T& value) {
        const auto* first = reinterpret_cast<const uint8_t*>(&value);
        return {first, first + sizeof(T)};
    }

    Device device;
    Context context{device};
    std::vector<uint8_t> response, vendor_response;

  private:
    void keep_descriptor(size_t at) {
        uint32_t fd;
        std::memcpy(&fd, response.data() + at, sizeof(fd));
        descriptors_.push_back(static_cast<int>(fd));
    }

    uint8_t* memory_ = nullptr;
    std::vector<int> descriptors_;
};

}  // namespace softcx::fuzz
