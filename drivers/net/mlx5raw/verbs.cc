// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/verbs.h"

#include <infiniband/mlx5dv.h>

#include <cstring>

#include "drivers/net/mlx5raw/log.h"
#include "drivers/net/mlx5raw/prm.h"

namespace tagwire::mlx5raw {

void report_destroy(const char* what, int error) {
    if (error != 0) {
        MLX5RAW_LOG(ERR, "%s failed: %s", what, strerror(error > 0 ? error : errno));
    }
}

CompletionQueue create_completion_queue(ibv_context* context, uint32_t entries,
                                        ibv_comp_channel* channel, uint8_t format) {
    // libmlx5 rounds cqe + 1 up to a power of two. The entry size is fixed because
    // the environment (MLX5_CQE_SIZE) and the cache line size may change the default.
    ibv_cq_init_attr_ex attributes = {};
    attributes.cqe = entries - 1;
    attributes.channel = channel;
    mlx5dv_cq_init_attr direct = {};
    direct.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE;
    direct.cqe_size = sizeof(Cqe);
    if (format != 0) {
        direct.comp_mask |= MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
        direct.cqe_comp_res_format = format;
    }
    ibv_cq_ex* cq = mlx5dv_create_cq(context, &attributes, &direct);
    return CompletionQueue(cq != nullptr ? ibv_cq_ex_to_cq(cq) : nullptr);
}

}  // namespace tagwire::mlx5raw
