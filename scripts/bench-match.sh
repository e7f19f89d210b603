#!/usr/bin/env bash
# Instructions per match beside libfabric's list and UCX's hash, counted by callgrind
#
# scripts/bench-match.sh BUILD_DIR [STEPS]
#
# The figures are the same on every run and on a busy machine. match: find an entry and remove
# it. insert: post a receive; append a message, and hash it where searches pass it. Each match
# is followed by an insert, so the depth stays. List and hash are written anew in
# bench/match/peers.h from the algorithms of util_srx (libfabric) and ucp tag_match (UCX).
# Limits: at depth 16 at most 1.3 times the best of the others; at 8,192 with wildcards at
# least 50 times better than the list; the figures that the last table has.
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-match.sh BUILD_DIR [STEPS]}")
steps=${2:-10000}
here=$(dirname "$(readlink -f "$0")")
program=$build/bench/match/match_instructions

die() { echo "bench-match: $*" >&2; exit 1; }
for tool in valgrind python3; do
    command -v $tool >/dev/null || die "$tool is not installed (apt-get install valgrind python3)"
done
[ -x "$program" ] || die "$program is not built (ninja -C $build bench/match/match_instructions; needs valgrind's headers)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count WHAT: a line for each cell, "posted random 8 16 tagwire 50.0 61.0": side, which entry is
# looked for or which tags, classes, depth, implementation, match, insert. What a search spends
# on hashing messages that it passes counts as insert: it happens once to each message.
count() {
    rm -f "$work"/out*
    valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$work/out" \
        "$program" "$1" "$steps" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; die "$1 does not run"; }
    find "$work" -name 'out.*' -print0 | sort -zV |
        xargs -0 python3 "$here/callgrind_calls.py" measured_match,measured_insert,UnexpectedIndex::walk_on |
        awk '{ printf "%s %s %s %s %s %.1f %.1f\n", $1, $2, $3, $4, $5, ($7 - $9) / $6, ($8 + $9) / $6 }'
}

echo "instructions per operation (callgrind): match / insert"
count compare | awk '
    function row() {
        best = match_of["list"] < match_of["hash"] ? match_of["list"] : match_of["hash"]
        verdict = ""
        if (depth == 16) verdict = match_of["tagwire"] <= 1.3 * best ? "ok" : "OVER"
        if (depth == 8192 && classes > 1) verdict = 50 * match_of["tagwire"] <= match_of["list"] ? "ok" : "OVER"
        failed += verdict == "OVER"
        printf "%-10s %-7s %7d %6d %9.1f %6.1f %10.1f %6.1f %10.1f %6.1f %9.3f  %s\n", side, entry, classes, depth,
            match_of["tagwire"], insert_of["tagwire"], match_of["list"], insert_of["list"],
            match_of["hash"], insert_of["hash"], match_of["tagwire"] / best, verdict
    }
    BEGIN {
        printf "%-10s %-7s %7s %6s %16s %17s %17s %9s\n", "queue", "entry", "classes", "depth",
            "tagwire", "list", "hash", "of best"
    }
    { side = $1; entry = $2; classes = $3; depth = $4; match_of[$5] = $6; insert_of[$5] = $7 }
    $5 == "hash" { row() }
    END { exit failed != 0 }' && failed=0 || failed=1

echo
echo "every second class directed; random: all tags differ; same: one tag for all"
count limits | awk '
    BEGIN {
        limit["posted random 1"] = limit["posted same 1"] = 150
        limit["posted random 8"] = limit["posted same 8"] = 300
        limit["unexpected random 1"] = limit["unexpected same 1"] = 150
        limit["unexpected random 8"] = 300
        printf "%-10s %-7s %7s %6s %9s %6s %6s\n", "queue", "tags", "classes", "depth", "match", "limit", "insert"
    }
    {
        most = limit[$1 " " $2 " " $3]
        verdict = most == "" ? "" : $6 <= most ? "ok" : "OVER"
        failed += verdict == "OVER"
        printf "%-10s %-7s %7d %6d %9.1f %6s %6.1f  %s\n", $1, $2, $3, $4, $6, most == "" ? "-" : most, $7, verdict
    }
    END { exit failed != 0 }' || failed=1
exit $failed
