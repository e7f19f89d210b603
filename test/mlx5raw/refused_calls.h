// SPDX-License-Identifier: BSD-3-Clause
// Makes library functions that the driver calls fail on demand. The program's own
// definitions come before the libraries'; they pass on what is not to fail.
#pragma once

namespace tagwire::mlx5raw {

enum class Call {
    kCreateCq,  // mlx5dv_create_cq
    kCreateQp,  // ibv_create_qp: the send queues; hash QPs are made through another one
    kMapRings,  // mlx5dv_init_obj
    kModifyQp,  // ibv_modify_qp
    kRegister,  // ibv_reg_mr
    kAllocate,  // rte_zmalloc_socket, of the driver
    kNone,
};

// Lets `successes` of these calls pass and fails the next one, once.
void refuse(Call call, int successes);
// Whether that call came; forgets about it.
bool refused_one();

}  // namespace tagwire::mlx5raw
