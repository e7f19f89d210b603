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

# count SIDE CLASSES DEPTH PATTERN FUNCTION STEPS: instructions inside FUNCTION.
count() {
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
        --toggle-collect="$5" "$program" "$1" "$2" "$3" "$6" "$4" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
    awk '/^(summary|totals):/ { print $2; exit }' "$work/out"
}

# measure ...FUNCTION: per step, without what building up the depth costs.
measure() {
    local all start
    all=$(count "$@" "$steps")
    start=$(count "$@" 0)
    echo $(((all - start + steps / 2) / steps))
}

# row SIDE CLASSES DEPTH PATTERN LIMIT
row() {
    local side=$1 classes=$2 depth=$3 pattern=$4 limit=$5 insert match hashing verdict
    match=$(measure "$side" "$classes" "$depth" "$pattern" "measured_${side}_match")
    case "$side" in
        posted) insert=$(measure "$side" "$classes" "$depth" "$pattern" measured_posted_post) ;;
        unexpected)
            # Messages are hashed by the searches that pass them, once each: a cost of the message.
            insert=$(measure "$side" "$classes" "$depth" "$pattern" measured_unexpected_append)
            hashing=$(measure "$side" "$classes" "$depth" "$pattern" '*UnexpectedQueue::walk_on*')
            match=$((match - hashing))
            insert=$((insert + hashing))
            ;;
    esac
    verdict=""
    if [ "$limit" != - ]; then
        verdict=ok
        [ "$match" -le "$limit" ] || { verdict=OVER; failed=1; }
    fi
    printf '%-11s %7s %8s  %-7s %9s %7s %6s  %s\n' "$side" "$classes" "$depth" "$pattern" "$match" \
        "$limit" "$insert" "$verdict"
}

echo "instructions per operation (callgrind, $steps operations each)"
printf '%-11s %7s %8s  %-7s %9s %7s %6s\n' queue classes depth tags match limit insert
row posted 1 8192 random 150
row posted 1 8192 same 150
row posted 2 8192 random -
row posted 8 8192 random 300
row posted 8 8192 same 300
row unexpected 1 8192 random 150
row unexpected 1 8192 same 150
row unexpected 2 8192 random -
row unexpected 8 8192 random 300
row unexpected 8 8192 same -
echo "match: find and remove. insert: post a receive; append a message and hash it."
exit $failed
