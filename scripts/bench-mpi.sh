#!/usr/bin/env bash
# Messages between two ranks of Open MPI: over this provider, Open MPI's own TCP, stock providers.
#   scripts/bench-mpi.sh BUILD_DIR
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-mpi.sh BUILD_DIR}")
for needed in mpicc mpirun; do
    command -v "$needed" >/dev/null || { echo "bench-mpi: no $needed (apt-get install openmpi-bin libopenmpi-dev)" >&2; exit 1; }
done
source=$(dirname "$(readlink -f "$0")")/../bench/fi/mpi_speed.c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc -O2 -o "$work/mpi_speed" "$source"
export FI_PROVIDER_PATH=$build/lib/fi
export TAGWIRE_WIRE=${TAGWIRE_WIRE:-switch:bench-$$}

run() { # NAME OPTIONS...
    local name=$1
    shift
    timeout 300 mpirun --allow-run-as-root --oversubscribe -n 2 "$@" "$work/mpi_speed" "$name" 2>"$work/log" ||
        printf '%-14s %s\n' "$name" "failed: $(tail -n 1 "$work/log")"
}

printf '%-14s %12s %14s %12s   (load %s)\n' transport '8 B, us' '8 B, million/s' '1 MiB, MB/s' "$(cut -d' ' -f1 /proc/loadavg)"
run tagwire --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include tagwire
run 'tcp;ofi_rxm' --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'tcp;ofi_rxm'
run 'Open MPI tcp' --mca pml ob1 --mca btl self,tcp
run 'shared memory' --mca pml ob1 --mca btl self,vader
