// SPDX-License-Identifier: BSD-3-Clause
#include "test/mlx5raw/refused_calls.h"

#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <rte_malloc.h>

#include <cerrno>
#include <cstring>

namespace tagwire::mlx5raw {
namespace {

Call wanted = Call::kNone;
int left = 0;
bool happened = false;

bool fails(Call call) {
    if (call != wanted || left-- != 0) {
        return false;
    }
    happened = true;
    wanted = Call::kNone;
    errno = ENOSPC;
    return true;
}

template <typename Function>
Function* next(Function*, const char* name) {
    static Function* const found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    return found;
}

}  // namespace

void refuse(Call call, int successes) {
    wanted = call;
    left = successes;
    happened = false;
}

bool refused_one() {
    wanted = Call::kNone;
    return happened;
}

}  // namespace tagwire::mlx5raw

using tagwire::mlx5raw::Call;
using tagwire::mlx5raw::fails;
using tagwire::mlx5raw::next;

#undef ibv_reg_mr

extern "C" {

ibv_cq_ex* mlx5dv_create_cq(ibv_context* context, ibv_cq_init_attr_ex* attributes,
                            mlx5dv_cq_init_attr* direct) {
    return fails(Call::kCreateCq)
               ? nullptr
               : next(mlx5dv_create_cq, "mlx5dv_create_cq")(context, attributes, direct);
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
    return fails(Call::kCreateQp) ? nullptr : next(ibv_create_qp, "ibv_create_qp")(pd, attributes);
}

int mlx5dv_init_obj(mlx5dv_obj* object, uint64_t type) {
    return fails(Call::kMapRings) ? ENOSPC : next(mlx5dv_init_obj, "mlx5dv_init_obj")(object, type);
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    return fails(Call::kModifyQp) ? ENOSPC
                                  : next(ibv_modify_qp, "ibv_modify_qp")(qp, attributes, mask);
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
    return fails(Call::kRegister) ? nullptr
                                  : next(ibv_reg_mr, "ibv_reg_mr")(pd, address, length, access);
}

void* rte_zmalloc_socket(const char* type, size_t size, unsigned align, int socket) {
    const bool of_driver = type != nullptr && strncmp(type, "mlx5raw", 7) == 0;
    return of_driver && fails(Call::kAllocate)
               ? nullptr
               : next(rte_zmalloc_socket, "rte_zmalloc_socket")(type, size, align, socket);
}

}  // extern "C"
