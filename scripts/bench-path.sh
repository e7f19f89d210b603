#!/usr/bin/env bash
# Instructions per 8-byte tagged message on its whole path, with and without the driver
#
# scripts/bench-path.sh BUILD_DIR
#
# How: bench/path/path_instructions runs two workers of libtagwire.so in one process, in steady
# state: a stream of 1 or of 64 messages for each turn, then a ping-pong, over net_mlx5raw on
# softcx in step mode, whose device runs outside of what is counted. callgrind collects only inside
# the public calls. The program's own object is left out, and "without the driver" the driver's;
# what libtagwire calls (libc, EAL) stays in. A third run goes over a wire that hands mbufs across,
# with checksums computed by software.
#   send     the call, its share of the sender's tw_progress (frames built, acknowledgements
#            received, completions written), its share of tw_cq_read
#   receive  the call, its share of the receiver's tw_progress (frame to completion, and the
#            acknowledgement sent), its share of tw_cq_read
#   ping-pong, one way: the two calls (receive posted, message sent), the turn of progress that
#            sends and then finds nothing at the port, tw_cq_read that finds nothing, the other
#            side's turn that receives, and its tw_cq_read of both completions. A program that
#            waits makes more turns that find nothing: they are not part of the path. What timers
#            resend (they run by the machine's clock, valgrind does not) is not counted either.
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-path.sh BUILD_DIR}")
here=$(dirname "$(readlink -f "$0")")
program=$build/bench/path/path_instructions
plugin=$build/drivers/net/mlx5raw/librte_net_mlx5raw.so

die() { echo "bench-path: $*" >&2; exit 1; }

[ -x "$program" ] || die "$program is not built (ninja -C $build bench/path/path_instructions)"

# shellcheck source=scripts/step-cards.sh
. "$here/step-cards.sh"
step_cards "$0" "$@"

# count NAME EAL... -- PORTS...: lines "part together instructions-per-message" in $work/NAME
count() {
    local name=$1
    shift
    rm -f "$work"/out*
    valgrind --tool=callgrind --collect-atstart=no --callgrind-out-file="$work/out" \
        "$program" -l 0 --no-huge -m 512 --no-shconf --no-telemetry --no-pci --file-prefix "path$$" \
        "$@" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; die "the program does not run"; }
    if [ -n "${TAGWIRE_BENCH_KEEP:-}" ]; then
        mkdir -p "$TAGWIRE_BENCH_KEEP/$name" && cp "$work"/out* "$work/log" "$TAGWIRE_BENCH_KEEP/$name"
    fi
    python3 "$here/callgrind_objects.py" "$work"/out.* >"$work/objects"
    sum_parts "$name"
}

# sum_parts NAME [OBJECT]: what was counted, without the program and OBJECT
sum_parts() {
    awk -v program="$program" -v without="${2:-none}" '
        function flush() { if (part) printf "%s %s %.1f\n", part, together, sum / messages }
        /^[a-z]/ { flush(); part = $1; together = $2; messages = $3; sum = 0 }
        /^[^a-z ]/ { flush(); part = "" }
        /^ / && $1 != program && $1 != without { sum += $2 }
        END { flush() }' "$work/objects" >"$work/$1"
}

# table NAME: the figures of a run
table() {
    awk '{ sum[$1, $2] += $3; cost[$1, $2] = sum[$1, $2] / ++dumps[$1, $2] }
        END {
            for (i = 1; i <= 64; i += 63) {
                s = cost["send", i] + cost["sender-turn", i] + cost["sender-read", i]
                r = cost["receive", i] + cost["receiver-turn", i] + cost["receiver-read", i]
                printf "%-9d %8.1f %8.1f %8.1f %8.1f   %8.1f %8.1f %8.1f %8.1f\n", i, cost["send", i],
                    cost["sender-turn", i], cost["sender-read", i], s, cost["receive", i],
                    cost["receiver-turn", i], cost["receiver-read", i], r
            }
            printf "ping-pong, one way: %.1f (calls %.1f, turn that sends %.1f, read %.1f, turn that receives %.1f, read %.1f)\n",
                cost["ping-pong", 1], cost["ping-calls", 1], cost["ping-sending-turn", 1],
                cost["ping-read-nothing", 1], cost["ping-receiving-turn", 1], cost["ping-read", 1]
        }' "$work/$1"
}

count mlx5raw -d "$plugin" --vdev net_mlx5raw0,ibdev=mlx5_0 --vdev net_mlx5raw1,ibdev=mlx5_1 -- \
    net_mlx5raw0 net_mlx5raw1
sum_parts bare "$plugin"
count wire --
echo "instructions per 8-byte tagged message (callgrind); what counts is at the head of scripts/bench-path.sh"
for name in bare mlx5raw wire; do
    case $name in
        bare) echo "without the driver, checksums by the card" ;;
        mlx5raw) echo "with the driver, net_mlx5raw on softcx" ;;
        wire) echo "without driver, checksums by software" ;;
    esac
    printf '%-9s %8s %8s %8s %8s   %8s %8s %8s %8s\n' together send turn read SEND receive turn read RECEIVE
    table $name | tee "$work/table-$name"
done
echo
awk 'FILENAME ~ /bare$/ && $1 == 64 && $5 > 200 { print "MISSED: send " $5 ", limit 200"; bad = 1 }
     FILENAME ~ /bare$/ && $1 == 64 && $9 > 300 { print "MISSED: receive with match " $9 ", limit 300"; bad = 1 }
     FILENAME ~ /mlx5raw$/ && $1 == "ping-pong," && $4 > 700 { print "MISSED: ping-pong with the driver " $4 ", limit 700"; bad = 1 }
     END { if (!bad) print "All limits hold: send 200 and receive 300 without the driver, 64 together; ping-pong 700 with it."
           exit bad }' "$work/table-bare" "$work/table-mlx5raw"
