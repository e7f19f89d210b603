#!/usr/bin/env bash
# Instructions per packet of net_mlx5raw and of DPDK's own net_mlx5, counted by callgrind on softcx
#
# scripts/bench-driver.sh BUILD_DIR
#     both drivers, default and best options, in one table
# scripts/bench-driver.sh BUILD_DIR DRIVER [DEVARGS] [fast-free]
#     one driver (net_mlx5 or net_mlx5raw), such as: net_mlx5 rxq_cqe_comp_en=0 fast-free
#
# How: bench/driver/driver_instructions sends, receives and forwards bursts of 32 on two
# ports back to back (one queue of 512 descriptors, 1 segment, one mempool of 8191 mbufs
# with a cache of 256), and switches callgrind on only around rte_eth_rx_burst and
# rte_eth_tx_burst. The device runs outside of that. Of what is counted, the instructions of
# the program itself (the inlined ethdev wrapper, the same for both) are left out by their
# object; what the driver inlines (mempool) or calls (other libraries) stays in.
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-driver.sh BUILD_DIR [DRIVER [DEVARGS] [fast-free]]}")
here=$(dirname "$(readlink -f "$0")")
program=$build/bench/driver/driver_instructions
plugin=$build/drivers/net/mlx5raw/librte_net_mlx5raw.so

die() { echo "bench-driver: $*" >&2; exit 1; }

for tool in valgrind ip unshare python3; do
    command -v $tool >/dev/null || die "$tool is not installed (apt-get install valgrind iproute2 util-linux python3)"
done
[ -x "$program" ] || die "$program is not built (ninja -C $build bench/driver/driver_instructions)"
[ -e "$plugin" ] || die "$plugin is not built (ninja -C $build drivers/net/mlx5raw/librte_net_mlx5raw.so)"

# DPDK's driver wants a network device for each card: veths in a network namespace of our own.
if [ -z "${TAGWIRE_BENCH_NAMESPACE:-}" ]; then
    unshare --net true 2>/dev/null || die "no network namespace can be made: run as root"
    TAGWIRE_BENCH_NAMESPACE=1 exec unshare --net bash "$0" "$@"
fi
ip link add sc0 type veth peer name sc0p || die "the kernel makes no veth"
ip link add sc1 type veth peer name sc1p
for name in sc0 sc0p sc1 sc1p; do ip link set "$name" up; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SOFTCX_NETDEV=sc0,sc1 SOFTCX_MODE=step

# count DRIVER DEVARGS [fast-free]: a line for each dump, "rx 64 71.2 1.00": phase, frame
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

# compare TITLE STOCK-OPTIONS OUR-OPTIONS [fast-free]
compare() {
    local title=$1 stock=$2 ours=$3
    shift 3
    count net_mlx5 "$stock" "$@" >"$work/stock"
    local stock_paths
    stock_paths=$(paths)
    count net_mlx5raw "$ours" "$@" >"$work/ours"
    echo
    echo "$title"
    echo "  net_mlx5     dv_flow_en=0${stock:+,$stock}: $stock_paths"
    echo "  net_mlx5raw  ${ours:-no options}: $(paths)"
    printf '  %-12s %6s %10s %13s %7s\n' row bytes net_mlx5 net_mlx5raw ratio
    paste -d ' ' "$work/stock" "$work/ours" |
        awk '{ name = $1 == "rx" ? "RX" : $1 == "tx" ? "TX" : "io forward"
               printf "  %-12s %6d %10.1f %13.1f %7.2f\n", name, $2, $3, $7, $7 / $3 }'
}

version=$(dpkg-query -W -f '${Version}' librte-net-mlx5-23 2>/dev/null || pkg-config --modversion libdpdk)
optimization=$(meson introspect --buildoptions "$build" | python3 -c '
import json, sys
print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "optimization"))')
echo "instructions per packet (callgrind), bursts of 32, one queue"
echo "net_mlx5: DPDK $version as the distribution built it (-O2); net_mlx5raw: this build (-O$optimization)"
compare "Default options" "" ""
compare "Best options: fast free of mbufs" "" "" fast-free
echo
echo "Only the driver counts: how, and what is left out, is at the head of scripts/bench-driver.sh."
