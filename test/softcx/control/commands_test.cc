// SPDX-License-Identifier: BSD-3-Clause
// The command parser against malformed input, without the client library.
#include <gtest/gtest.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "drivers/softcx/model/events.h"
#include "drivers/softcx/uverbs/attributes.h"
#include "drivers/softcx/uverbs/command.h"
#include "drivers/softcx/uverbs/files.h"
#include "drivers/softcx/uverbs/ioctl.h"
#include "drivers/softcx/wire/wire.h"

namespace softcx {
namespace {

constexpr uint32_t kExtended = 0x80000000u;

class Commands : public ::testing::Test {
  protected:
    void SetUp() override {
        device_.name = "mlx5_0";
        device_.contexts.push_back(&context_);
        mlx5_ib_alloc_ucontext_req_v2 vendor{};
        vendor.total_num_bfregs = 16;
        vendor.num_low_latency_bfregs = 4;
        vendor.max_cqe_version = 1;
        vendor.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR;
        ASSERT_EQ(run(IB_USER_VERBS_CMD_GET_CONTEXT, bytes_of(uint64_t{0}), 8, bytes_of(vendor),
                      sizeof(mlx5_ib_alloc_ucontext_resp)),
                  0);
        ib_uverbs_get_context_resp response;
        std::memcpy(&response, response_.data(), 8);
        ::close(static_cast<int>(response.async_fd));
    }

    void TearDown() override {
        const std::lock_guard lock(device_.mutex);
        tear_down(context_);
    }

    template <class T>
    static std::vector<uint8_t> bytes_of(const T& value) {
        const auto* first = reinterpret_cast<const uint8_t*>(&value);
        return {first, first + sizeof(T)};
    }

    int run(uint32_t number, const std::vector<uint8_t>& request, size_t response_size,
            const std::vector<uint8_t>& vendor = {}, size_t vendor_response_size = 0) {
        response_.assign(response_size, 0);
        vendor_response_.assign(vendor_response_size, 0);
        return execute_write_command({context_, request, response_, vendor, vendor_response_},
                                     number);
    }

    Device device_;
    Context context_{device_};
    std::vector<uint8_t> response_, vendor_response_;
};

TEST_F(Commands, ShortRequestsAnswerEnospc) {
    EXPECT_EQ(run(IB_USER_VERBS_CMD_QUERY_DEVICE, {}, 0), ENOSPC);
    EXPECT_EQ(run(IB_USER_VERBS_CMD_ALLOC_PD, bytes_of(uint64_t{0}), 3), ENOSPC);
    EXPECT_EQ(run(IB_USER_VERBS_CMD_ALLOC_PD, std::vector<uint8_t>(7), 4), ENOSPC);
}

TEST_F(Commands, UnknownCommandsAreNotSupported) {
    EXPECT_EQ(run(IB_USER_VERBS_CMD_CREATE_SRQ, std::vector<uint8_t>(64), 64), EOPNOTSUPP);
    EXPECT_EQ(run(0x1234, {}, 0), EOPNOTSUPP);
    EXPECT_EQ(run(kExtended | 0x7fff, {}, 0), EOPNOTSUPP);
}

TEST_F(Commands, FieldsFromTheFutureMustBeZero) {
    std::vector<uint8_t> request = bytes_of(ib_uverbs_ex_query_device{});
    request.resize(request.size() + 8);
    EXPECT_EQ(run(kExtended | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, request, 512), 0);
    request.back() = 1;
    EXPECT_EQ(run(kExtended | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, request, 512), EOPNOTSUPP);
}

TEST_F(Commands, ALongerResponseEndsInZeros) {
    const auto request = bytes_of(ib_uverbs_ex_query_device{});
    constexpr size_t kLonger = sizeof(ib_uverbs_ex_query_device_resp) + 32;
    ASSERT_EQ(run(kExtended | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, request, kLonger), 0);
    EXPECT_TRUE(all_zero(std::span(response_).last(32)));
}

TEST_F(Commands, ASecondContextOnOneFileIsRefused) {
    EXPECT_EQ(run(IB_USER_VERBS_CMD_GET_CONTEXT, bytes_of(uint64_t{0}), 8,
                  std::vector<uint8_t>(sizeof(mlx5_ib_alloc_ucontext_req_v2)),
                  sizeof(mlx5_ib_alloc_ucontext_resp)),
              EINVAL);
}

TEST_F(Commands, CommandsBeforeTheContextAreRefused) {
    Context fresh(device_);
    std::vector<uint8_t> request(8), response(4);
    EXPECT_EQ(execute_write_command({fresh, request, response, {}, {}}, IB_USER_VERBS_CMD_ALLOC_PD),
              EINVAL);
}

TEST_F(Commands, DestroyingWhatIsNotThereAnswersEnoent) {
    EXPECT_EQ(run(IB_USER_VERBS_CMD_DEALLOC_PD, bytes_of(uint32_t{99}), 0), ENOENT);
    EXPECT_EQ(run(IB_USER_VERBS_CMD_DEREG_MR, bytes_of(uint32_t{99}), 0), ENOENT);
    EXPECT_EQ(run(kExtended | IB_USER_VERBS_EX_CMD_DESTROY_FLOW, bytes_of(uint64_t{99} << 32), 0),
              ENOENT);
}

TEST_F(Commands, AnIndirectionTableMustHoldItsHandles) {
    std::vector<uint8_t> request(8);
    request[4] = 3;  // eight handles, none given
    EXPECT_EQ(run(kExtended | IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, request, 16), EINVAL);
    request[4] = 31;
    EXPECT_EQ(run(kExtended | IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, request, 16), EINVAL);
}

TEST_F(Commands, AnIoctlHeaderMustFit) {
    alignas(8) uint8_t message[sizeof(ib_uverbs_ioctl_hdr) + 2 * sizeof(ib_uverbs_attr)] = {};
    auto& header = *reinterpret_cast<ib_uverbs_ioctl_hdr*>(message);
    const auto address = reinterpret_cast<uint64_t>(&message);
    header.driver_id = RDMA_DRIVER_MLX5;
    header.object_id = UVERBS_OBJECT_DEVICE;
    header.method_id = UVERBS_METHOD_INVOKE_WRITE;
    EXPECT_EQ(execute_ioctl(context_, address), EINVAL);
    header.length = sizeof(message);
    header.num_attrs = 2;
    EXPECT_EQ(execute_ioctl(context_, address), EINVAL);  // the same attribute twice
    header.attrs[0].attr_id = 77;
    header.attrs[0].flags = UVERBS_ATTR_F_MANDATORY;
    EXPECT_EQ(execute_ioctl(context_, address), EPROTONOSUPPORT);
    header.reserved1 = 1;
    EXPECT_EQ(execute_ioctl(context_, address), EPROTONOSUPPORT);
    EXPECT_EQ(execute_ioctl(context_, 16), EFAULT);
}

// Every command number with random bytes of random length; what it makes is torn
// down at the end. The seed is printed when something goes wrong.
TEST_F(Commands, RandomBytesNeverHurt) {
    const uint32_t seed = 20240229;
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    const long page = ::sysconf(_SC_PAGESIZE);
    void* memory =
        ::mmap(nullptr, 64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto base = reinterpret_cast<uint64_t>(memory);
    const auto fill = [&](size_t size) {
        std::vector<uint8_t> bytes(size);
        for (size_t i = 0; i + 4 <= size; i += 4) {
            // Mostly small numbers and addresses that exist: they come far.
            uint32_t word = below(4);
            if (below(3) == 0)
                word = 1u << below(16);
            if (below(16) == 0)
                word = static_cast<uint32_t>(random());
            std::memcpy(&bytes[i], &word, 4);
            if (i + 8 <= size && i % 8 == 0 && below(3) == 0) {
                const uint64_t address = base + below(64) * 64;
                std::memcpy(&bytes[i], &address, 8);
                i += 4;
            }
        }
        return bytes;
    };
    int done = 0;
    for (int round = 0; round < 100000; ++round) {
        uint32_t number = below(IB_USER_VERBS_CMD_OPEN_QP + 4);
        if (number == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL)
            continue;  // makes descriptors
        if (below(2) == 0)
            number |= kExtended;
        done += run(number, fill(below(40) * 4), below(256), fill(below(44) * 4), below(64)) == 0;
    }
    EXPECT_GT(done, 1000);
    {
        const std::lock_guard lock(device_.mutex);
        tear_down(context_);
    }
    EXPECT_TRUE(device_.pds.empty() && device_.mrs.empty() && device_.cqs.empty() &&
                device_.wqs.empty() && device_.tables.empty() && device_.qps.empty() &&
                device_.flows.empty());
    ::munmap(memory, 64 * page);
}

}  // namespace
}  // namespace softcx
