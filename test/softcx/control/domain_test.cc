// SPDX-License-Identifier: BSD-3-Clause
// Thread domains and parent domains: doorbells and memory of their own.
#include <cstdlib>
#include <map>

#include "test/softcx/control/verbs_rig.h"

namespace softcx::test {
namespace {

class Domain : public Verbs {
  protected:
    struct FreeThread {
        void operator()(ibv_td* td) const { EXPECT_EQ(ibv_dealloc_td(td), 0); }
    };
    using Thread = std::unique_ptr<ibv_td, FreeThread>;

    Thread make_thread() {
        ibv_td_init_attr attributes{};
        return Thread(ibv_alloc_td(context_.get(), &attributes));
    }

    Owned<ibv_pd> make_parent(ibv_parent_domain_init_attr attributes) {
        attributes.pd = pd_.get();
        return Owned<ibv_pd>(ibv_alloc_parent_domain(context_.get(), &attributes));
    }

    static Owned<ibv_qp> make_qp(ibv_pd* pd, ibv_cq* cq) {
        ibv_qp_init_attr attributes{};
        attributes.qp_type = IBV_QPT_RAW_PACKET;
        attributes.send_cq = cq;
        attributes.recv_cq = cq;
        attributes.cap = {16, 16, 1, 1, 0};
        return Owned<ibv_qp>(ibv_create_qp(pd, &attributes));
    }

    void expect_traffic(ibv_qp* qp, ibv_cq* cq) {
        ready_to_send(qp);
        std::vector<uint8_t> frame = broadcast_frame();
        const Owned<ibv_mr> mr = register_memory(pd_.get(), frame);
        ASSERT_EQ(post_send(qp, frame, mr->lkey), 0);
        run_device();
        const std::vector<ibv_wc> all = completions(cq);
        ASSERT_EQ(all.size(), 1u);
        EXPECT_EQ(all.front().status, IBV_WC_SUCCESS);
    }
};

TEST_F(Domain, AThreadDomainHasADoorbellOfItsOwn) {
    const Thread first = make_thread(), second = make_thread();
    ASSERT_NE(first, nullptr);
    ASSERT_NE(second, nullptr);
    const Owned<ibv_pd> one = make_parent({.pd = nullptr,
                                           .td = first.get(),
                                           .comp_mask = 0,
                                           .alloc = nullptr,
                                           .free = nullptr,
                                           .pd_context = nullptr});
    const Owned<ibv_pd> two = make_parent({.pd = nullptr,
                                           .td = second.get(),
                                           .comp_mask = 0,
                                           .alloc = nullptr,
                                           .free = nullptr,
                                           .pd_context = nullptr});
    ASSERT_NE(one, nullptr);
    const Owned<ibv_qp> a = make_qp(one.get(), cq_.get()), b = make_qp(two.get(), cq_.get());
    ASSERT_NE(a, nullptr);
    ASSERT_NE(b, nullptr);
    mlx5dv_qp rings[2] = {};
    mlx5dv_obj object{};
    object.qp = {a.get(), &rings[0]};
    ASSERT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
    object.qp = {b.get(), &rings[1]};
    ASSERT_EQ(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
    EXPECT_NE(rings[0].bf.reg, rings[1].bf.reg);
    expect_traffic(a.get(), cq_.get());
    expect_traffic(b.get(), cq_.get());
}

// Counts what the library asks for.
struct Allocations {
    std::map<void*, size_t> live;
    size_t made = 0;

    static void* allocate(ibv_pd*, void* context, size_t size, size_t alignment, uint64_t) {
        auto& self = *static_cast<Allocations*>(context);
        void* memory = nullptr;
        if (posix_memalign(&memory, alignment, size) != 0)
            return nullptr;
        ++self.made;
        self.live[memory] = size;
        return memory;
    }
    static void release(ibv_pd*, void* context, void* memory, uint64_t) {
        EXPECT_EQ(static_cast<Allocations*>(context)->live.erase(memory), 1u);
        free(memory);
    }
};

TEST_F(Domain, RingsLieInMemoryThatTheProgramAllocates) {
    Allocations allocations;
    {
        const Owned<ibv_pd> parent =
            make_parent({.pd = nullptr,
                         .td = nullptr,
                         .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                      IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
                         .alloc = Allocations::allocate,
                         .free = Allocations::release,
                         .pd_context = &allocations});
        ASSERT_NE(parent, nullptr);
        ibv_cq_init_attr_ex attributes{};
        attributes.cqe = 63;
        attributes.wc_flags = IBV_WC_STANDARD_FLAGS;
        attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
        attributes.parent_domain = parent.get();
        const Owned<ibv_cq> cq(ibv_cq_ex_to_cq(ibv_create_cq_ex(context_.get(), &attributes)));
        ASSERT_NE(cq, nullptr);
        const size_t for_cq = allocations.made;
        EXPECT_GT(for_cq, 0u);
        const Owned<ibv_qp> qp = make_qp(parent.get(), cq.get());
        ASSERT_NE(qp, nullptr);
        EXPECT_GT(allocations.made, for_cq);
        expect_traffic(qp.get(), cq.get());
    }
    EXPECT_TRUE(allocations.live.empty());
}

}  // namespace
}  // namespace softcx::test
