#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi_test.c with a rank in each of two network namespaces, made here and removed again: frames go
# over one veth, Open MPI's own TCP over another. As root.
#   test/fi/mpi_netns.sh
# MPICC, MPIRUN, TAGWIRE_FI_DIR, MPI_LARGEST, MPI_LIMIT: as for mpi_test.sh.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
a=mpi-a-$$ b=mpi-b-$$
work=$(mktemp -d)
cleanup() {
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
mpirun=${MPIRUN:-mpirun}
"${MPICC:-mpicc}" -O1 -Wall -o "$work/mpi_test" "$here/test/fi/mpi_test.c"
ip netns add "$a"
ip netns add "$b"
ip link add tw0 mtu 9000 netns "$a" type veth peer name tw1 mtu 9000 netns "$b"
ip link add meet0 netns "$a" type veth peer name meet1 netns "$b"
for link in "$a lo" "$a tw0" "$a meet0" "$b lo" "$b tw1" "$b meet1"; do
    ip -n "${link% *}" link set "${link#* }" up
done
ip -n "$a" address add 10.99.0.1/24 dev meet0
ip -n "$b" address add 10.99.0.2/24 dev meet1
export FI_PROVIDER_PATH=${TAGWIRE_FI_DIR:-$here/build/lib/fi}
if "$mpirun" --version | grep -q 'Open MPI'; then
    # Ranks reach mpirun over meet0 instead of the loopback device, which the other namespace has not.
    start=(ip netns exec "$a" env
           PMIX_MCA_ptl_base_if_include=meet0 PMIX_MCA_ptl_base_remote_connections=1
           "$mpirun" --allow-run-as-root --oversubscribe --mca pml cm --mca mtl ofi --mca btl self,vader
           --mca mtl_ofi_provider_include tagwire --mca mpi_yield_when_idle 1)
else
    # Hydra speaks with its ranks over descriptors that they inherit. Without NOLOCAL they meet in
    # MPICH's shared memory, since both have the host's name.
    start=(env FI_PROVIDER=tagwire MPIR_CVAR_NOLOCAL=1 "$mpirun")
fi
timeout "${MPI_LIMIT:-300}" "${start[@]}" \
    -n 1 ip netns exec "$a" env TAGWIRE_WIRE=netdev:tw0 "$work/mpi_test" ${MPI_LARGEST:-} : \
    -n 1 ip netns exec "$b" env TAGWIRE_WIRE=netdev:tw1 "$work/mpi_test" ${MPI_LARGEST:-}
