#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Kills a rank of an MPI program (kill -9) in the middle of its messages: the program has to end within
# a bounded time, and nothing may stay: no process, no shared memory, no hugepage.
#   test/fi/mpi_kill.sh [RANKS]
# MPICC, MPIRUN, TAGWIRE_FI_DIR: as for mpi_test.sh. MPI_KILL_OPTIONS: more for MPIRUN; with
# MPICH's -disable-auto-cleanup the ranks have to notice by themselves. MPI_KILL_LIMIT: seconds (30).
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
ranks=${1:-4} limit=${MPI_KILL_LIMIT:-30}
mpirun=${MPIRUN:-mpirun}
command -v "${MPICC:-mpicc}" >/dev/null || { echo "no ${MPICC:-mpicc}: apt-get install openmpi-bin libopenmpi-dev" >&2; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${MPICC:-mpicc}" -O1 -Wall -o "$work/mpi_test" "$here/test/fi/mpi_test.c"
export FI_PROVIDER_PATH=${TAGWIRE_FI_DIR:-$here/build/lib/fi} TAGWIRE_WIRE=switch:mpi-kill-$$
if "$mpirun" --version | grep -q 'Open MPI'; then
    options=(--allow-run-as-root --oversubscribe --mca pml cm --mca mtl ofi --mca btl self,vader,tcp
             --mca mtl_ofi_provider_include tagwire --mca mpi_yield_when_idle 1)
else
    export FI_PROVIDER=tagwire MPIR_CVAR_NOLOCAL=1
    options=()
fi
# Shared memory and hugepages that no process has: others on this machine may come and go.
left_behind() {
    local file
    for file in /dev/shm/softcx-* /dev/hugepages/*; do
        [ -e "$file" ] || continue
        # Mapped, or, the folder that stands for sysfs, open.
        grep -qsF "$file" /proc/[0-9]*/maps && continue
        [ -n "$(find /proc/[0-9]*/fd -lname "$file*" -print -quit 2>/dev/null)" ] && continue
        [ ! -e "$file" ] || echo "$file"
    done
}
left_behind >"$work/before"
# shellcheck disable=SC2086
timeout -k 5 $((limit + 60)) "$mpirun" "${options[@]}" ${MPI_KILL_OPTIONS:-} -n "$ranks" \
    "$work/mpi_test" 1048576 1000 >"$work/log" 2>&1 &
launcher=$!
victims=()
for _ in $(seq 600); do
    sleep 0.1
    grep -q 'one-sided' "$work/log" || continue # all of them are in their second round
    mapfile -t victims < <(pgrep -f "^$work/mpi_test")
    break
done
[ "${#victims[@]}" -ge "$ranks" ] || { cat "$work/log"; echo "the ranks did not start" >&2; exit 1; }
kill -9 "${victims[$((ranks / 2))]}"
start=$(date +%s%N)
status=0
wait "$launcher" || status=$?
took=$((($(date +%s%N) - start) / 1000000))
# mpirun may end a moment before the last of them is gone.
for _ in $(seq 50); do
    left=$(pgrep -f "^$work/mpi_test" || true)
    [ -n "$left" ] || break
    sleep 0.1
done
# What killed processes left in /dev/shm the next one that uses the software card removes.
timeout -k 5 "$limit" "$mpirun" "${options[@]}" -n 2 "$work/mpi_test" 1 >"$work/next" 2>&1 ||
    { cat "$work/next"; echo "the next program ended with an error, or not within $limit s" >&2; exit 1; }
left_behind >"$work/after"
[ -z "$left" ] || { echo "still there: $left" >&2; kill -9 $left; exit 1; }
if [ "$status" = 0 ] || [ "$took" -gt $((limit * 1000)) ]; then
    tail -n 20 "$work/log"
    echo "$mpirun ended with $status after $took ms" >&2
    exit 1
fi
diff "$work/before" "$work/after" | grep '^>' && { echo "something stayed (see above)" >&2; exit 1; }
echo "a rank of $ranks was killed: all ended after $took ms, nothing stayed"
