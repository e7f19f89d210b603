#!/usr/bin/env bash
# 8-byte latency and message rate between two processes, beside UCX and libfabric
#
# scripts/bench-peers.sh BUILD_DIR [ROUNDS]
#     five rounds unless said otherwise; in each round every peer has its turn, so that
#     what else the machine does meets all of them. The table has the medians.
#     Fails when tagwire over softcx is less than 5 times better than their TCP.
#
# tagwire: tagwire-perf pingpong and stream over softcx and its switch. UCX: ucx_perftest
# tag_lat and tag_bw (UCX_TLS=posix, and tcp on the loopback device). libfabric: bench/peers/
# fabric_pair.cc over shm and "tcp;ofi_rxm". Each: half of a round trip (the median), and
# messages one way with a window, at the receiver. fi_pingpong is not in the table: it tells
# the mean, which on a shared machine is a figure of the scheduler's.
# The two processes of a peer stay on two cores. As root they run at high priority.
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-peers.sh BUILD_DIR [ROUNDS]}")
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=scripts/setup.sh
. "$here/setup.sh"

# Needed by this benchmark alone.
tagwire_packages=(ucx-utils libfabric-dev g++ pkg-config util-linux python3)
install_packages

mkdir -p "$build/bench/peers"
# shellcheck disable=SC2046
g++ -std=c++20 -O2 -o "$build/bench/peers/fabric_pair" "$here/../bench/peers/fabric_pair.cc" \
    $(pkg-config --cflags --libs libfabric)

# A group of its own for the scheduler, at high priority: where it is allowed.
exec setsid -w bash -c '
    { echo -20 >/proc/self/autogroup; renice -n -20 $$; } >/dev/null 2>&1 || true
    exec "$@"' bash python3 "$here/../bench/peers/peers.py" "$build" "${2:-5}"
