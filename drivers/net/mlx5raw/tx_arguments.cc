// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/tx_arguments.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "drivers/net/mlx5raw/wqe.h"

namespace tagwire::mlx5raw {
namespace {

struct Switch {
    const char* key;
    std::optional<bool> TxArguments::*field;
};
constexpr Switch kSwitches[] = {{MLX5RAW_ARG_TXQ_MPW_EN, &TxArguments::multi_packet},
                                {MLX5RAW_ARG_TX_VEC_EN, &TxArguments::vector}};

struct Number {
    const char* key;
    std::optional<uint32_t> TxArguments::*field;
    uint32_t least;  // besides zero
    uint32_t most;
};
constexpr Number kNumbers[] = {
    {MLX5RAW_ARG_TXQ_INLINE_MIN, &TxArguments::inline_min, kInlineL2, kMaxInlineMin},
    {MLX5RAW_ARG_TXQ_INLINE_MAX, &TxArguments::inline_max, kShortestPacket, kMaxInlineData},
    {MLX5RAW_ARG_TXQ_INLINE_MPW, &TxArguments::inline_mpw, kShortestPacket, kMaxInlineData},
    {MLX5RAW_ARG_TXQS_MIN_INLINE, &TxArguments::queues_inline, 1, UINT16_MAX}};

}  // namespace

bool is_tx_argument(const std::string& key) {
    static const char* const kKeys[] = {MLX5RAW_TX_ARGUMENTS};
    return std::any_of(std::begin(kKeys), std::end(kKeys),
                       [&key](const char* known) { return key == known; });
}

Status apply_tx_argument(const std::string& key, uint32_t value, TxArguments& out) {
    for (const Switch& s : kSwitches) {
        if (key != s.key) {
            continue;
        }
        if (value > 1) {
            return failure(EINVAL, "%s=%u: give 0 (off) or 1 (on)", s.key, value);
        }
        out.*s.field = value == 1;
    }
    for (const Number& n : kNumbers) {
        if (key != n.key) {
            continue;
        }
        if (value != 0 && (value < n.least || value > n.most)) {
            return failure(EINVAL, "%s=%u: give 0, or a number from %u to %u", n.key, value,
                           n.least, n.most);
        }
        out.*n.field = value;
    }
    return {};
}

}  // namespace tagwire::mlx5raw
