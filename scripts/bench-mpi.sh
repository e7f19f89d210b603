#!/usr/bin/env bash
# Messages between two ranks of Open MPI: over this provider, Open MPI's own TCP, stock providers
#   scripts/bench-mpi.sh BUILD_DIR
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-mpi.sh BUILD_DIR}")
for needed in mpicc mpirun; do
    command -v "$needed" >/dev/null || { echo "bench-mpi: no $needed (apt-get install openmpi-bin libopenmpi-dev)" >&2; exit 1; }
done
source=$(dirname "$(readlink -f "$0")")/../bench/fi/mpi_speed.c
# shellcheck source=scripts/veth.sh
. "$(dirname "$0")/veth.sh"
work=$(mktemp -d)
trap 'remove_veth; rm -rf "$work"' EXIT
mpicc -O2 -o "$work/mpi_speed" "$source"
export FI_PROVIDER_PATH=$build/lib/fi

# run NAME OPTIONS...: `first` and `second` say where the ranks run, `starter` where mpirun does.
run() {
    local name=$1
    shift
    timeout 300 "${starter[@]}" mpirun --allow-run-as-root --oversubscribe "$@" \
        -n 1 "${first[@]}" "$work/mpi_speed" "$name" : -n 1 "${second[@]}" "$work/mpi_speed" "$name" 2>"$work/log" ||
        printf '%-14s %s\n' "$name" "failed: $(tail -n 1 "$work/log")"
}

ofi=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include)

speed_heading "Two processes of this host: tagwire over the software card" transport
starter=(env) first=(env "TAGWIRE_WIRE=${TAGWIRE_WIRE:-switch:bench-$$}") second=("${first[@]}")
run tagwire "${ofi[@]}" tagwire
run 'tcp;ofi_rxm' "${ofi[@]}" 'tcp;ofi_rxm'
run 'Open MPI tcp' --mca pml ob1 --mca btl self,tcp
run 'shared memory' --mca pml ob1 --mca btl self,vader

if ! make_veth; then
    echo "(no second table: network namespaces need root)"
    exit 0
fi
speed_heading "Two network namespaces joined by a veth pair: tagwire over net_af_packet" transport
# Ranks reach mpirun over the veth, too, instead of the loopback device, which the other namespace has not.
starter=(ip netns exec "$veth_a" env PMIX_MCA_ptl_base_if_include=vta PMIX_MCA_ptl_base_remote_connections=1)
first=(env TAGWIRE_VDEV=net_af_packet0,iface=vta TAGWIRE_IP=10.199.0.11)
second=(ip netns exec "$veth_b" env TAGWIRE_VDEV=net_af_packet0,iface=vtb TAGWIRE_IP=10.199.0.12)
run tagwire "${ofi[@]}" tagwire
run 'tcp;ofi_rxm' "${ofi[@]}" 'tcp;ofi_rxm'
run 'Open MPI tcp' --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include 10.199.0.0/24
