// SPDX-License-Identifier: BSD-3-Clause
// Owning pointers to verbs objects. A destroy that fails is a driver bug (an
// object still in use) or a dead device; it is logged, since a destructor cannot
// return it.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace tagwire::mlx5raw {

void report_destroy(const char* what, int error);

#define MLX5RAW_VERBS_OBJECT(Name, type, destroy)                                          \
    struct Destroy##Name {                                                                 \
        void operator()(type* object) const { report_destroy(#destroy, destroy(object)); } \
    };                                                                                     \
    using Name = std::unique_ptr<type, Destroy##Name>

MLX5RAW_VERBS_OBJECT(Context, ibv_context, ibv_close_device);
MLX5RAW_VERBS_OBJECT(ProtectionDomain, ibv_pd, ibv_dealloc_pd);
MLX5RAW_VERBS_OBJECT(MemoryRegion, ibv_mr, ibv_dereg_mr);
MLX5RAW_VERBS_OBJECT(CompletionChannel, ibv_comp_channel, ibv_destroy_comp_channel);
MLX5RAW_VERBS_OBJECT(CompletionQueue, ibv_cq, ibv_destroy_cq);
MLX5RAW_VERBS_OBJECT(WorkQueue, ibv_wq, ibv_destroy_wq);
MLX5RAW_VERBS_OBJECT(IndirectionTable, ibv_rwq_ind_table, ibv_destroy_rwq_ind_table);
MLX5RAW_VERBS_OBJECT(QueuePair, ibv_qp, ibv_destroy_qp);
MLX5RAW_VERBS_OBJECT(Flow, ibv_flow, ibv_destroy_flow);
MLX5RAW_VERBS_OBJECT(Counters, ibv_counters, ibv_destroy_counters);

#undef MLX5RAW_VERBS_OBJECT

// A completion queue with exactly `entries` (a power of two) 64-byte entries, with
// events on the channel if there is one, and compressed in `format`
// (mlx5dv_cqe_comp_res_format) unless that is zero.
CompletionQueue create_completion_queue(ibv_context* context, uint32_t entries,
                                        ibv_comp_channel* channel = nullptr, uint8_t format = 0);

}  // namespace tagwire::mlx5raw
