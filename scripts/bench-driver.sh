#!/usr/bin/env bash
# Instructions per packet of net_mlx5raw and of DPDK's own net_mlx5, counted by callgrind on softcx
#
# scripts/bench-driver.sh BUILD_DIR
#     both drivers in one table. Fails when net_mlx5raw needs more than net_mlx5 in a row, or
#     more than 0.8 of it in an RX or TX row with default options
# scripts/bench-driver.sh BUILD_DIR DRIVER [DEVARGS] [fast-free] [checksums]
#     one driver (net_mlx5 or net_mlx5raw), such as: net_mlx5 rxq_cqe_comp_en=0 fast-free
#
# How: bench/driver/driver_instructions sends, receives and forwards bursts of 32 on two
# ports back to back (one queue of 512 descriptors, 1 segment, one mempool of 8191 mbufs
# with a cache of 256), and switches callgrind on only around rte_eth_rx_burst and
# rte_eth_tx_burst. The device runs outside of that. Of what is counted, the instructions of
# the program itself (the inlined ethdev wrapper, the same for both) are left out by their
# object; what the driver inlines (mempool) or calls (other libraries) stays in.
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-driver.sh BUILD_DIR [DRIVER [DEVARGS] [fast-free] [checksums]]}")
here=$(dirname "$(readlink -f "$0")")
program=$build/bench/driver/driver_instructions
plugin=$build/drivers/net/mlx5raw/librte_net_mlx5raw.so

die() { echo "bench-driver: $*" >&2; exit 1; }

[ -x "$program" ] || die "$program is not built (ninja -C $build bench/driver/driver_instructions)"
[ -e "$plugin" ] || die "$plugin is not built (ninja -C $build drivers/net/mlx5raw/librte_net_mlx5raw.so)"

# shellcheck source=scripts/step-cards.sh
. "$here/step-cards.sh"
step_cards "$0" "$@"

# count DRIVER DEVARGS [fast-free] [checksums]: a line for each dump, "rx 64 71.2 1.00": phase, frame
# bytes, instructions per packet, calls per burst of 32. What the ports say goes to $work/log.
count() {
    local driver=$1 options=${2:+,$2} eal=(-l 0 --no-huge -m 1024 --no-shconf --no-telemetry
        --file-prefix "bench$$") ports
    shift 2
    case "$driver" in
        net_mlx5)
            ports=(5cf0:00:00.0 5cf0:00:00.1)
            eal+=(-a "${ports[0]},dv_flow_en=0$options" -a "${ports[1]},dv_flow_en=0$options")
            ;;
        net_mlx5raw)
            ports=(net_mlx5raw0 net_mlx5raw1)
            eal+=(--no-pci -d "$plugin" --vdev "net_mlx5raw0,ibdev=mlx5_0$options"
                  --vdev "net_mlx5raw1,ibdev=mlx5_1$options")
            ;;
        *) die "no driver $driver: net_mlx5 or net_mlx5raw" ;;
    esac
    rm -f "$work"/out*
    valgrind --tool=callgrind --collect-atstart=no --callgrind-out-file="$work/out" \
        "$program" "${eal[@]}" -- "${ports[@]}" "$@" >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log" >&2; die "$driver$options $* does not run"; }
    python3 "$here/callgrind_objects.py" "$work"/out.* | awk -v program="$program" '
        function flush() { if (phase) printf "%s %.1f %.2f\n", phase, sum / packets, calls }
        /^[a-z]/ { flush(); phase = $1 " " $2; packets = $3; calls = $4 * 32 / $3; sum = 0 }
        /^ / && $1 != program { sum += $2 }
        END { flush() }'
}

paths() { sed -n 's/^driver_instructions: port [^,]*, \(rx path.*\)/\1/p' "$work/log" | head -n 1; }

if [ $# -gt 1 ]; then
    echo "phase bytes instructions/packet calls/burst"
    count "$2" "${3:-}" "${@:4}"
    paths
    exit
fi

# compare NAME STOCK-DEVARGS OUR-DEVARGS [fast-free] [checksums]: rows of the table
compare() {
    local name=$1 stock=$2 ours=$3
    shift 3
    count net_mlx5 "$stock" "$@" >"$work/stock"
    printf '  %-10s net_mlx5     %s\n' "$name" "$(paths)" >>"$work/paths"
    count net_mlx5raw "$ours" "$@" >"$work/ours"
    printf '  %-10s net_mlx5raw  %s\n' "$name" "$(paths)" >>"$work/paths"
    paste -d ' ' "$work/stock" "$work/ours" |
        awk -v name="$name" '{ row = $1 == "rx" ? "RX" : $1 == "tx" ? "TX" : "io"
            printf "%-10s %-3s %6d %10.1f %13.1f %7.2f\n", name, row, $2, $3, $7, $7 / $3 }' |
        tee -a "$work/rows"
}

version=$(dpkg-query -W -f '${Version}' librte-net-mlx5-23 2>/dev/null || pkg-config --modversion libdpdk)
optimization=$(meson introspect --buildoptions "$build" | python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "optimization"))')
echo "instructions per packet (callgrind), bursts of 32, one queue; RX with refill, TX with release"
echo
printf '%-10s %-3s %6s %10s %13s %7s\n' options row bytes net_mlx5 net_mlx5raw ratio
compare default "" ""
compare checksums "" "" checksums
compare best "" "" fast-free
cat <<EOF

default: no offload. checksums: IPv4, UDP and TCP, validated and computed by the card.
best: no offload but fast free of mbufs. Of the other arguments of net_mlx5 none needs fewer instructions:
its CQE compression is on by default; multi-packet RX, inlining and single sends need more.
net_mlx5: DPDK $version as the distribution built it (-O2), dv_flow_en=0. net_mlx5raw: this build (-O$optimization).
Paths that the drivers chose:
$(cat "$work/paths")
What counts is at the head of scripts/bench-driver.sh.

EOF
awk '$6 > 1.004 { print "MISSED: " $0 ": more than net_mlx5"; bad = 1 }
     $1 == "default" && $2 != "io" && $6 > 0.804 { print "MISSED: " $0 ": more than 0.8"; bad = 1 }
     END { if (!bad) print "net_mlx5raw needs no more than net_mlx5 in any row, and at most 0.8 of it in RX and TX by default."
           exit bad }' "$work/rows"
