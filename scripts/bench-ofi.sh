#!/usr/bin/env bash
# Tagged messages through libfabric: this provider beside the stock ones, on this host and over a veth pair
#   scripts/bench-ofi.sh BUILD_DIR [PROVIDER...]
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-ofi.sh BUILD_DIR [PROVIDER...]}")
shift
program=$build/bench/fi/fabric_speed
[ -x "$program" ] || { echo "bench-ofi: $program is not built (libfabric-dev?)" >&2; exit 1; }
export FI_PROVIDER_PATH=$build/lib/fi
providers=("$@")
[ $# -gt 0 ] || providers=(tagwire 'tcp;ofi_rxm' 'udp;ofi_rxd' shm)
# shellcheck source=scripts/veth.sh
. "$(dirname "$0")/veth.sh"
work=$(mktemp -d)
trap 'remove_veth; rm -rf "$work"' EXIT

first=() second=()
if [ "$(nproc)" -gt 1 ]; then
    first=(taskset -c 0) second=(taskset -c 1)
fi

# row PROVIDER; `left` and `right` say where its two sides run.
row() {
    local provider=$1 server
    "${left[@]}" ${first[@]+"${first[@]}"} timeout 300 "$program" server "$work/meet" "$provider" 2>"$work/server" &
    server=$!
    if ! "${right[@]}" ${second[@]+"${second[@]}"} timeout 300 "$program" client "$work/meet" "$provider" 2>"$work/client"; then
        printf '%-14s %s\n' "$provider" "failed: $(tail -n 1 "$work/client" "$work/server" | tr '\n' ' ')"
        kill "$server" 2>/dev/null || true
    fi
    wait "$server" || true
}

speed_heading "Two processes of this host: tagwire over the software card" provider
left=(env "TAGWIRE_WIRE=${TAGWIRE_WIRE:-switch:bench-$$}") right=("${left[@]}")
for provider in "${providers[@]}"; do
    row "$provider"
done

if ! make_veth; then
    echo "(no second table: network namespaces need root)"
    exit 0
fi
speed_heading "Two network namespaces joined by a veth pair: tagwire over net_af_packet" provider
for provider in "${providers[@]}"; do
    [ "$provider" != shm ] || continue  # it does not leave its host
    left=(ip netns exec "$veth_a" env) right=(ip netns exec "$veth_b" env)
    if [ "$provider" = tagwire ]; then
        left+=(TAGWIRE_VDEV=net_af_packet0,iface=vta TAGWIRE_IP=10.199.0.11)
        right+=(TAGWIRE_VDEV=net_af_packet0,iface=vtb TAGWIRE_IP=10.199.0.12)
    else
        left+=(SPEED_ADDRESS=10.199.0.1)
        right+=(SPEED_ADDRESS=10.199.0.2)
    fi
    row "$provider"
done
