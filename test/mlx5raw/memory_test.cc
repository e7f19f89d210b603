// SPDX-License-Identifier: BSD-3-Clause
// Registrations come with the memory and go with it.
#ifndef ALLOW_EXPERIMENTAL_API
#define ALLOW_EXPERIMENTAL_API  // DMA mapping, pools over external memory in DPDK 22.11
#endif
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <sys/mman.h>

#include <optional>

#include "drivers/net/mlx5raw/port.h"
#include "drivers/softcx/softcx.h"
#include "test/mlx5raw/port_fixture.h"

namespace tagwire::mlx5raw {
namespace {

constexpr size_t kPage = 4096;

// Memory of the application, known to EAL while the object lives.
class ExternalMemory {
  public:
    explicit ExternalMemory(size_t pages) : size_(pages * kPage) {
        base_ = static_cast<uint8_t*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
        EXPECT_NE(base_, MAP_FAILED);
        EXPECT_EQ(rte_extmem_register(base_, size_, nullptr, static_cast<unsigned>(pages), kPage),
                  0)
            << rte_strerror(rte_errno);
    }
    ~ExternalMemory() {
        EXPECT_EQ(rte_extmem_unregister(base_, size_), 0) << rte_strerror(rte_errno);
        munmap(base_, size_);
    }
    uint8_t* base() const { return base_; }
    size_t size() const { return size_; }

  private:
    uint8_t* base_;
    size_t size_;
};

class Memory : public PortPair {
  protected:
    Port& port(unsigned index) { return port_of(&rte_eth_devices[ports[index]]); }
    size_t regions() { return port(0).memory.region_count(); }
    rte_device* device(unsigned index) { return rte_eth_devices[ports[index]].device; }

    // An mbuf of the usual pool whose data is `at`.
    rte_mbuf* attached(uint8_t* at, const Frame& frame) {
        memcpy(at, frame.data(), frame.size());
        rte_mbuf* const packet = rte_pktmbuf_alloc(pool);
        rte_mbuf_ext_refcnt_update(&shared, 1);
        const auto length = static_cast<uint16_t>(frame.size());
        rte_pktmbuf_attach_extbuf(packet, at, RTE_BAD_IOVA, length, &shared);
        rte_pktmbuf_append(packet, length);
        return packet;
    }
    bool arrives(uint8_t* at, size_t size) {
        const Frame frame = ethernet_frame(size);
        send(ports[0], 0, {attached(at, frame)});
        settle();
        drain();
        const std::vector<Received> got = receive(ports[1]);
        return got.size() == 1 && got[0].bytes == frame;
    }
    void drain() {
        rte_eth_tx_done_cleanup(ports[0], 0, 0);
        settle();
        rte_eth_tx_done_cleanup(ports[0], 0, 0);
    }
    uint64_t no_key() { return xstats_of(ports[0])["tx_q0_dropped_no_memory_key"]; }
    void unmap(const ExternalMemory& memory) {
        EXPECT_EQ(rte_dev_dma_unmap(device(0), memory.base(), RTE_BAD_IOVA, memory.size()), 0);
    }

    rte_mbuf_ext_shared_info shared = {
        .free_cb = [](void*, void*) {}, .fcb_opaque = nullptr, .refcnt = 1};
};

TEST_F(Memory, ExternalMemoryIsRegisteredAtItsFirstUse) {
    open();
    const ExternalMemory memory(8);
    const size_t before = regions();
    EXPECT_TRUE(arrives(memory.base(), 700));
    EXPECT_EQ(regions(), before + 1);
    // All of it at once.
    EXPECT_TRUE(arrives(memory.base() + 7 * kPage, 1514));
    EXPECT_EQ(regions(), before + 1);
    unmap(memory);
    EXPECT_EQ(regions(), before);
    EXPECT_EQ(rte_mbuf_ext_refcnt_read(&shared), 1);
}

TEST_F(Memory, MappedMemoryIsRegisteredAhead) {
    open();
    const ExternalMemory memory(4);
    const size_t before = regions();
    ASSERT_EQ(rte_dev_dma_map(device(0), memory.base(), RTE_BAD_IOVA, memory.size()), 0);
    EXPECT_EQ(regions(), before + 1);
    EXPECT_TRUE(arrives(memory.base(), 100));
    ASSERT_EQ(rte_dev_dma_map(device(0), memory.base(), RTE_BAD_IOVA, memory.size()), 0);
    EXPECT_EQ(regions(), before + 1);
    unmap(memory);
    EXPECT_EQ(regions(), before);
}

TEST_F(Memory, UnmappedMemoryIsUsedNoMoreEvenThoughQueuesKnewIt) {
    open();
    std::optional<ExternalMemory> memory(std::in_place, 4);
    EXPECT_TRUE(arrives(memory->base(), 100));
    uint8_t* const base = memory->base();
    unmap(*memory);
    memory.reset();
    // The same place again, with other pages that EAL does not know.
    void* const again = mmap(base, kPage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_EQ(again, base);
    EXPECT_FALSE(arrives(base, 100));
    EXPECT_EQ(no_key(), 1u);
    EXPECT_EQ(stats_of(ports[0]).oerrors, 1u);
    munmap(again, kPage);
}

TEST_F(Memory, APartThatGoesTakesOnlyItselfAlong) {
    open();
    const ExternalMemory memory(4);
    const size_t before = regions();
    EXPECT_TRUE(arrives(memory.base(), 100));
    const uint32_t generation = port(0).memory.generation();
    port(0).memory.forget(reinterpret_cast<uintptr_t>(memory.base()) + kPage, kPage);
    EXPECT_NE(port(0).memory.generation(), generation);
    // The old region stays for packets under way; the rest is found again.
    EXPECT_EQ(regions(), before + 1);
    EXPECT_TRUE(arrives(memory.base() + 2 * kPage, 100));
    EXPECT_EQ(regions(), before + 2);
    unmap(memory);
    EXPECT_EQ(regions(), before);
}

TEST_F(Memory, ForgettingWhatIsNotRegisteredChangesNothing) {
    open();
    const size_t before = regions();
    const uint32_t generation = port(0).memory.generation();
    port(0).memory.forget(kPage, kPage);
    EXPECT_EQ(regions(), before);
    EXPECT_EQ(port(0).memory.generation(), generation);
}

TEST_F(Memory, APoolOverExternalMemoryReceivesAndSends) {
    open({.start = false});
    constexpr unsigned kMbufs = 1023;
    constexpr uint16_t kRoom = RTE_PKTMBUF_HEADROOM + 1700;
    constexpr uint16_t kElement = 2048;
    const ExternalMemory memory(512);
    rte_pktmbuf_extmem area = {};
    area.buf_ptr = memory.base();
    area.buf_iova = RTE_BAD_IOVA;
    area.buf_len = memory.size();
    area.elt_size = kElement;
    rte_mempool* const pinned =
        rte_pktmbuf_pool_create_extbuf("pinned", kMbufs, 0, 0, kRoom, 0, &area, 1);
    ASSERT_NE(pinned, nullptr) << rte_strerror(rte_errno);
    for (const uint16_t port : ports) {
        for (uint16_t queue = 0; queue < 2; ++queue) {
            ASSERT_EQ(rte_eth_rx_queue_setup(port, queue, 64, 0, nullptr, pinned), 0);
        }
        ASSERT_EQ(rte_eth_dev_start(port), 0);
    }
    // The rooms have gaps, and are one region all the same.
    EXPECT_EQ(regions(), 1u);
    for (int i = 0; i < 100; ++i) {
        const Frame frame = ethernet_frame(60 + static_cast<size_t>(i) * 14);
        rte_mbuf* const packet = rte_pktmbuf_alloc(pinned);
        memcpy(rte_pktmbuf_append(packet, static_cast<uint16_t>(frame.size())), frame.data(),
               frame.size());
        send(ports[0], 0, {packet});
        settle();
        const std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), 1u);
        ASSERT_EQ(got[0].bytes, frame);
    }
    EXPECT_EQ(regions(), 1u);
    EXPECT_EQ(no_key(), 0u);
    close();
    EXPECT_EQ(rte_mempool_avail_count(pinned), kMbufs);
    rte_mempool_free(pinned);
}

TEST_F(Memory, AFreedPoolTakesItsRegionsAlongAndItsPlaceCanBeReused) {
    open();
    const size_t before = regions();
    for (int i = 0; i < 50; ++i) {
        rte_mempool* const passing = rte_pktmbuf_pool_create(
            "passing", 63 + static_cast<unsigned>(i % 3) * 64, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
        ASSERT_NE(passing, nullptr);
        const Frame frame = ethernet_frame(100 + static_cast<size_t>(i));
        rte_mbuf* const packet = rte_pktmbuf_alloc(passing);
        memcpy(rte_pktmbuf_append(packet, static_cast<uint16_t>(frame.size())), frame.data(),
               frame.size());
        send(ports[0], 0, {packet});
        settle();
        drain();
        const std::vector<Received> got = receive(ports[1]);
        ASSERT_EQ(got.size(), 1u);
        ASSERT_EQ(got[0].bytes, frame);
        ASSERT_EQ(regions(), before + 1);
        rte_mempool_free(passing);
        ASSERT_EQ(regions(), before);
    }
    EXPECT_EQ(softcx_counter("mlx5_0", "client_errors"), 0u);
    EXPECT_EQ(xstats_of(ports[0])["tx_q0_error_completions"], 0u);
}

TEST_F(Memory, AllRegionsGoWithThePort) {
    open();
    const ExternalMemory memory(4);
    EXPECT_TRUE(arrives(memory.base(), 100));
    close();  // the protection domain is busy while a region is left
    open();
    EXPECT_TRUE(arrives(memory.base(), 100));
    unmap(memory);
}

}  // namespace
}  // namespace tagwire::mlx5raw
