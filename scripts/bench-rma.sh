#!/usr/bin/env bash
# Instructions per put, get and fetching atomic of 8 bytes through the public API, counted by
# callgrind, without driver.  scripts/bench-rma.sh BUILD_DIR
set -euo pipefail

build=${1:?usage: bench-rma.sh BUILD_DIR}
program=$build/bench/transport/rma_instructions
[ -x "$program" ] || { echo "bench-rma: $program is not built" >&2; exit 1; }
command -v valgrind >/dev/null || { echo "bench-rma: valgrind is not installed (apt-get install valgrind)" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count FUNCTION BATCHES TOGETHER WHAT: instructions inside FUNCTION.
count() {
    local function=$1
    shift
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
        --toggle-collect="$function" "$program" "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    awk '/^(summary|totals):/ { print $2; exit }' "$work/out"
}

# Per operation: the difference of two lengths, so that the set-up drops out.
per_operation() {
    local few many
    few=$(count "$1" 10 "${@:2}")
    many=$(count "$1" 110 "${@:2}")
    echo $(((many - few + 50 * $2) / (100 * $2)))
}

echo "instructions per operation of 8 bytes (callgrind), checksums in software"
printf '%-7s %-10s %6s %8s %8s %8s\n' what together post origin target all
for what in put get fetch; do
    for together in 1 16 64; do
        post=$(per_operation measured_posts "$together" "$what")
        origin=$(per_operation measured_origin "$together" "$what")
        target=$(per_operation measured_target "$together" "$what")
        printf '%-7s %-10s %6s %8s %8s %8s\n' "$what" "$together" "$post" "$origin" "$target" $((post + origin + target))
    done
done
echo "post: the call. origin: its frames, acknowledgements, reply, completion. target: everything there."
