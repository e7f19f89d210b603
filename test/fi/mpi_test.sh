#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds mpi_test.c and runs it over the provider with 2 to 8 ranks (Open MPI, or MPICH ch4:ofi).
#   test/fi/mpi_test.sh [RANKS...]
# MPICC, MPIRUN name the MPI (mpicc, mpirun; of an MPICH that is installed elsewhere
# PREFIX/bin/mpicc, PREFIX/bin/mpiexec); TAGWIRE_FI_DIR the folder of libtagwire-fi.so, MPI_LARGEST the
# largest message in bytes, MPI_LIMIT the seconds that a run may take (300).
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
mpicc=${MPICC:-mpicc} mpirun=${MPIRUN:-mpirun}
command -v "$mpicc" >/dev/null || { echo "no $mpicc: apt-get install openmpi-bin libopenmpi-dev" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$mpicc" -O1 -Wall -o "$work/mpi_test" "$here/test/fi/mpi_test.c"
FI_PROVIDER_PATH=${TAGWIRE_FI_DIR:-$here/build/lib/fi}
export FI_PROVIDER_PATH TAGWIRE_WIRE="${TAGWIRE_WIRE:-switch:mpi-$$}"
options=()
if "$mpirun" --version | grep -q 'Open MPI'; then
    options=(--allow-run-as-root --oversubscribe --mca pml cm --mca mtl ofi --mca btl self,vader,tcp
             --mca mtl_ofi_provider_include tagwire --mca mpi_yield_when_idle 1)
else
    # Without NOLOCAL ranks of one host meet in MPICH's shared memory.
    export FI_PROVIDER=tagwire MPIR_CVAR_NOLOCAL=1
fi
for ranks in ${*:-2 4}; do
    timeout "${MPI_LIMIT:-300}" "$mpirun" "${options[@]}" -n "$ranks" "$work/mpi_test" ${MPI_LARGEST:-}
done
