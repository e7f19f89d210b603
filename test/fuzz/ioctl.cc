// SPDX-License-Identifier: BSD-3-Clause
// Ioctl messages of arbitrary bytes: header, attributes, and what they point to.
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <algorithm>

#include "drivers/softcx/uverbs/ioctl.h"
#include "test/fuzz/session.h"

namespace softcx::fuzz {
namespace {

// A header that gets past the first checks, unless the input wants its own.
void repair(std::vector<uint8_t>& message, uint8_t attributes) {
    message.resize(sizeof(ib_uverbs_ioctl_hdr) + attributes * sizeof(ib_uverbs_attr));
    ib_uverbs_ioctl_hdr header;
    std::memcpy(static_cast<void*>(&header), message.data(), sizeof(header));
    header.length = static_cast<uint16_t>(message.size());
    header.num_attrs = attributes;
    header.reserved1 = 0;
    header.reserved2 = 0;
    header.driver_id = RDMA_DRIVER_MLX5;
    std::memcpy(message.data(), &header, sizeof(header));
}

}  // namespace

void run(Input& input) {
    Session session;
    require(session.open(), "a context opens");
    const auto memory_bytes = input.take<uint16_t>();
    const std::vector<uint8_t> contents = input.take_bytes(memory_bytes % 1024);
    std::copy(contents.begin(), contents.end(), session.memory());
    session.place_all({session.memory(), 1024});
    for (int calls = 0; calls < 8 && input.left() != 0; ++calls) {
        const auto shape = input.take<uint8_t>();
        std::vector<uint8_t> message = input.take_bytes(24 + 16 * (shape & 15));
        if ((shape & 0x80) == 0)
            repair(message, shape & 15);
        constexpr size_t kData = offsetof(ib_uverbs_attr, data);
        for (size_t at = sizeof(ib_uverbs_ioctl_hdr); at < message.size();
             at += sizeof(ib_uverbs_attr))
            session.place_address(message, at + kData);
        uint8_t* at = session.memory() + kMemory - 8192;
        std::fill_n(at, 8192, uint8_t{0});
        std::copy(message.begin(), message.end(), at);
        const int error = execute_ioctl(session.context, reinterpret_cast<uint64_t>(at));
        require(error >= 0 && error < 4096, "the answer is an errno");
        engine_step(session.device, 32);
    }
}

}  // namespace softcx::fuzz
