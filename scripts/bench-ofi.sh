#!/usr/bin/env bash
# Tagged messages through libfabric: this provider beside the stock ones, in one run.
#   scripts/bench-ofi.sh BUILD_DIR [PROVIDER...]
# BENCH_NETNS=A,B runs the two sides in these network namespaces; TAGWIRE_WIRE_A, TAGWIRE_WIRE_B,
# SPEED_ADDRESS_A and SPEED_ADDRESS_B are then each side's wire and IP address.
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-ofi.sh BUILD_DIR [PROVIDER...]}")
shift
program=$build/bench/fi/fabric_speed
[ -x "$program" ] || { echo "bench-ofi: $program is not built (libfabric-dev?)" >&2; exit 1; }
export FI_PROVIDER_PATH=$build/lib/fi
export TAGWIRE_WIRE=${TAGWIRE_WIRE:-switch:bench-$$}
[ $# -gt 0 ] || set -- tagwire 'tcp;ofi_rxm' 'udp;ofi_rxd' shm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

left=() right=()
if [ -n "${BENCH_NETNS:-}" ]; then
    left=(ip netns exec "${BENCH_NETNS%,*}" env "TAGWIRE_WIRE=$TAGWIRE_WIRE_A")
    right=(ip netns exec "${BENCH_NETNS#*,}" env "TAGWIRE_WIRE=$TAGWIRE_WIRE_B")
fi
cores=$(nproc)
first=() second=()
if [ "$cores" -gt 1 ]; then
    first=(taskset -c 0) second=(taskset -c 1)
fi

printf '%-14s %12s %14s %12s   (load %s)\n' provider '8 B, us' '8 B, million/s' '1 MiB, MB/s' "$(cut -d' ' -f1 /proc/loadavg)"
for provider in "$@"; do
    own_left=() own_right=()
    if [ -n "${BENCH_NETNS:-}" ] && [ "$provider" != tagwire ]; then
        own_left=("SPEED_ADDRESS=$SPEED_ADDRESS_A") own_right=("SPEED_ADDRESS=$SPEED_ADDRESS_B")
    fi
    env ${own_left[@]+"${own_left[@]}"} ${left[@]+"${left[@]}"} ${first[@]+"${first[@]}"} \
        timeout 300 "$program" server "$work/meet" "$provider" 2>"$work/server" &
    server=$!
    if ! env ${own_right[@]+"${own_right[@]}"} ${right[@]+"${right[@]}"} ${second[@]+"${second[@]}"} \
        timeout 300 "$program" client "$work/meet" "$provider" 2>"$work/client"; then
        printf '%-14s %s\n' "$provider" "failed: $(tail -n 1 "$work/client" "$work/server" | tr '\n' ' ')"
        kill "$server" 2>/dev/null || true
    fi
    wait "$server" || true
done
