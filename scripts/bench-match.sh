#!/usr/bin/env bash
# Instructions per matching operation, counted by callgrind: the same figures on
# every run and on a busy machine.  scripts/bench-match.sh BUILD_DIR [STEPS]
set -euo pipefail

build=${1:?usage: bench-match.sh BUILD_DIR [STEPS]}
steps=${2:-10000}
program=$build/bench/match/match_instructions
[ -x "$program" ] || { echo "bench-match: $program is not built" >&2; exit 1; }
command -v valgrind >/dev/null || { echo "bench-match: valgrind is not installed (apt-get install valgrind)" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# measure SIDE CLASSES DEPTH PATTERN FUNCTION: instructions inside FUNCTION for each step.
measure() {
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
        --toggle-collect="$5" "$program" "$1" "$2" "$3" "$steps" "$4" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
    awk -v steps="$steps" '/^(summary|totals):/ { print int($2 / steps + 0.5); exit }' "$work/out"
}

# row SIDE CLASSES DEPTH PATTERN LIMIT
row() {
    local side=$1 classes=$2 depth=$3 pattern=$4 limit=$5 insert match verdict
    case "$side" in
        posted) insert=measured_posted_post ;;
        unexpected) insert=measured_unexpected_append ;;
    esac
    match=$(measure "$side" "$classes" "$depth" "$pattern" "measured_${side}_match")
    verdict=""
    if [ "$limit" != - ]; then
        verdict=ok
        [ "$match" -le "$limit" ] || { verdict=OVER; failed=1; }
    fi
    printf '%-11s %7s %8s  %-7s %9s %7s %6s  %s\n' "$side" "$classes" "$depth" "$pattern" "$match" \
        "$limit" "$(measure "$side" "$classes" "$depth" "$pattern" "$insert")" "$verdict"
}

echo "instructions per operation (callgrind, $steps operations each)"
printf '%-11s %7s %8s  %-7s %9s %7s %6s\n' queue classes depth tags match limit insert
row posted 1 8192 random 150
row posted 1 8192 same 150
row posted 2 8192 random -
row posted 8 8192 random 300
row posted 8 8192 same 300
row unexpected 1 8192 random -
row unexpected 1 8192 same -
row unexpected 2 8192 random -
row unexpected 8 8192 random -
row unexpected 8 8192 same -
echo "match: find and remove. insert: post a receive, or append a message; a message is hashed"
echo "by the searches that pass it, so that cost is in the match column of the unexpected rows."
exit $failed
