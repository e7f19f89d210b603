#!/usr/bin/env bash
# What the provider adds to the native calls: its own instructions per fi_tsend, fi_trecv and fi_cq_read,
# counted by callgrind in a client of bench/fi/fabric_speed.  scripts/bench-fi-calls.sh BUILD_DIR
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-fi-calls.sh BUILD_DIR}")
program=$build/bench/fi/fabric_speed
[ -x "$program" ] || { echo "bench-fi-calls: $program is not built (libfabric-dev?)" >&2; exit 1; }
command -v valgrind >/dev/null || { echo "bench-fi-calls: valgrind is not installed (apt-get install valgrind)" >&2; exit 1; }
export FI_PROVIDER_PATH=$build/lib/fi
export TAGWIRE_WIRE=${TAGWIRE_WIRE:-switch:bench-$$}
# Under valgrind everything takes its time.
export TAGWIRE_PEER_TIMEOUT_MS=${TAGWIRE_PEER_TIMEOUT_MS:-60000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count ENTRIES: of fi_cq_read as many at once.
count() {
    timeout 600 "$program" server "$work/meet" tagwire 1 "$1" 2>"$work/server" &
    timeout 600 valgrind --tool=callgrind --callgrind-out-file="$work/out" \
        "$program" client "$work/meet" tagwire 1 "$1" >"$work/log" 2>&1 ||
        { tail -n 5 "$work/log" "$work/server" >&2; exit 1; }
    wait
    python3 "$(dirname "$0")/callgrind_own.py" "$work/out" 'fi::(anonymous namespace)::tsend(' \
        'fi::(anonymous namespace)::trecv(' 'read<fi_cq_tagged_entry>' >"$work/counts"
}

echo "the provider's own instructions (callgrind)"
count 1
awk '/tsend/ { print "fi_tsend, a call:", $NF } /trecv/ { print "fi_trecv, a call:", $NF }
     /read</ { print "fi_cq_read of one entry, a call:", $NF }' "$work/counts"
count 16
# Each send and receive is one completion.
awk '/send|recv/ { operations += $(NF - 1) } /read</ { all = $NF * $(NF - 1) }
     END { printf "fi_cq_read of up to 16 entries, an operation: %.1f\n", all / operations }' "$work/counts"
