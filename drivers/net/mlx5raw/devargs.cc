// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/devargs.h"

#include <rte_ethdev.h>
#include <rte_kvargs.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

namespace tagwire::mlx5raw {
namespace {

struct FreeKvargs {
    void operator()(rte_kvargs* list) const { rte_kvargs_free(list); }
};

Status parse_number(const char* key, const char* text, uint32_t& out) {
    char* end = nullptr;
    errno = 0;
    const unsigned long value = text != nullptr ? strtoul(text, &end, 0) : 0;
    if (text == nullptr || *text == '\0' || *text == '-' || *end != '\0' || errno != 0 ||
        value > UINT32_MAX) {
        return failure(EINVAL, "%s=%s is not a number from 0 on (doc/driver.md has its range)", key,
                       text != nullptr ? text : "");
    }
    out = static_cast<uint32_t>(value);
    return {};
}

Status apply(const char* key, const char* value, Devargs& out) {
    const std::string name = key;
    if (name == MLX5RAW_ARG_IBDEV) {
        if (value == nullptr || *value == '\0') {
            return failure(EINVAL,
                           "ibdev= names no device; give one of ibv_devices, or leave it out "
                           "where there is one alone");
        }
        out.ibdev = value;
        return {};
    }
    if (name == MLX5RAW_ARG_MAC) {
        rte_ether_addr parsed;
        if (value == nullptr || rte_ether_unformat_addr(value, &parsed) != 0 ||
            !rte_is_valid_assigned_ether_addr(&parsed)) {
            return failure(EINVAL,
                           "mac=%s is no unicast MAC address; write it as mac=02:00:00:00:00:01",
                           value != nullptr ? value : "");
        }
        out.mac = value;
        return {};
    }
    uint32_t number = 0;
    if (Status status = parse_number(key, value, number); !status.ok()) {
        return status;
    }
    if (is_rx_argument(name)) {
        return apply_rx_argument(name, number, out.rx);
    }
    if (is_tx_argument(name)) {
        return apply_tx_argument(name, number, out.tx);
    }
    if (name == MLX5RAW_ARG_PORT) {
        if (number == 0 || number > UINT8_MAX) {
            return failure(EINVAL, "port=%u: ports are counted from 1 (see ibv_devinfo)", number);
        }
        out.port = number;
    } else {
        if (number == 0 || number > RTE_ETH_RSS_RETA_SIZE_512 || (number & (number - 1)) != 0) {
            return failure(EINVAL, "reta_size=%u: give a power of two from 1 to %u", number,
                           RTE_ETH_RSS_RETA_SIZE_512);
        }
        out.reta_size = number;
    }
    return {};
}

}  // namespace

Status parse_devargs(const char* text, Devargs& out) {
    if (text == nullptr || *text == '\0') {
        return {};
    }
    static const char* const kKeys[] = {
        MLX5RAW_ARG_IBDEV,    MLX5RAW_ARG_PORT,     MLX5RAW_ARG_MAC, MLX5RAW_ARG_RETA_SIZE,
        MLX5RAW_RX_ARGUMENTS, MLX5RAW_TX_ARGUMENTS, nullptr};
    const std::unique_ptr<rte_kvargs, FreeKvargs> list(rte_kvargs_parse(text, kKeys));
    if (list == nullptr) {
        return failure(EINVAL,
                       "cannot parse the device arguments \"%s\"; known are ibdev=NAME, port=N, "
                       "mac=ADDRESS, reta_size=N, " MLX5RAW_RX_HELP
                       ", txq_mpw_en=0|1, txq_inline_min=N, "
                       "txq_inline_max=N, txq_inline_mpw=N, txqs_min_inline=N, tx_vec_en=0|1",
                       text);
    }
    for (unsigned i = 0; i < list->count; ++i) {
        if (rte_kvargs_count(list.get(), list->pairs[i].key) > 1) {
            return failure(EINVAL, "%s is given more than once", list->pairs[i].key);
        }
        if (Status status = apply(list->pairs[i].key, list->pairs[i].value, out); !status.ok()) {
            return status;
        }
    }
    return check_rx_arguments(out.rx);
}

}  // namespace tagwire::mlx5raw
