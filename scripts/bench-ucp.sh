#!/usr/bin/env bash
# ucx_perftest on Tagwire's UCP library and on UCX's own, over TCP, on this host: latency and rate side by side
set -euo pipefail

build=$(readlink -f "${1:?usage: bench-ucp.sh BUILD_DIR [ROUNDS [FILTER]]}")
rounds=${2:-3}
only=${3:-}  # rows whose name has it
runner=$build/lib/ucp/tagwire-ucx-run
[ -x "$runner" ] && [ -e "$build/lib/ucp/libucp.so.0" ] || { echo "bench-ucp: the UCP library is not built (libucx-dev)" >&2; exit 1; }
command -v ucx_perftest >/dev/null || { echo "bench-ucp: ucx_perftest is not installed (apt-get install ucx-utils)" >&2; exit 1; }

# shellcheck source=scripts/veth.sh
. "$(dirname "$0")/veth.sh"
work=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    remove_veth
    rm -rf "$work"
}
trap cleanup EXIT
port=$((21000 + $$ % 20000))

# final FILE: the medians of ucx_perftest's last line: latency (us, 50th percentile) and messages per second.
final() { awk '/^Final:/ { print $3, $NF; exit }' "$1"; }

# once WHERE-SERVER WHERE-CLIENT ADDRESS TEST SIZE COUNT -> "latency rate"
once() {
    local on_server=$1 on_client=$2 address=$3 test=$4 size=$5 count=$6 i
    port=$((port + 1))
    # shellcheck disable=SC2086
    timeout 120 $on_server ucx_perftest -t "$test" -s "$size" -n "$count" -w 1000 -p $port >"$work/server" 2>&1 &
    server=$!
    for ((i = 0; i < 200; ++i)); do
        # shellcheck disable=SC2086
        if timeout 120 $on_client ucx_perftest "$address" -t "$test" -s "$size" -n "$count" -w 1000 -p $port >"$work/client" 2>&1; then
            break
        fi
        grep -q 'connect.*failed\|refused' "$work/client" || break
        sleep 0.05
    done
    wait "$server" || true
    server=
    final "$work/client" | grep . || { tail -n 5 "$work/client" >&2; echo "- -"; }
}

# row NAME COLUMN TEST SIZE COUNT: the median of the rounds, taken in turn; column 1 latency, 2 rate.
row() {
    local name=$1 column=$2 test=$3 size=$4 count=$5 round ours theirs
    [[ $name == *"$only"* ]] || return 0
    : >"$work/ours"
    : >"$work/theirs"
    for ((round = 0; round < rounds; ++round)); do
        once "$ours_server" "$ours_client" "$ours_address" "$test" "$size" "$count" >>"$work/ours"
        once "$ucx_server" "$ucx_client" "$ucx_address" "$test" "$size" "$count" >>"$work/theirs"
    done
    ours=$(cut -d' ' -f"$column" "$work/ours" | sort -n | sed -n "$((rounds / 2 + 1))p")
    theirs=$(cut -d' ' -f"$column" "$work/theirs" | sort -n | sed -n "$((rounds / 2 + 1))p")
    awk -v name="$name" -v a="$ours" -v b="$theirs" -v column="$column" 'BEGIN {
        if (a + 0 == 0 || b + 0 == 0) { printf "  %-26s %12s %12s\n", name, a, b; exit }
        printf "  %-26s %12s %12s   %s %.1f\n", name, a, b, column == 1 ? "1 /" : "x", column == 1 ? b / a : a / b }'
}

table() {
    printf '%s\n  %-26s %12s %12s\n' "$1" "8 bytes, median of $rounds" Tagwire "UCX, TCP"
    row "tag latency, us" 1 tag_lat 8 20000
    row "tag rate, messages/s" 2 tag_bw 8 200000
    row "put latency, us" 1 ucp_put_lat 8 20000
    row "put rate, puts/s" 2 ucp_put_bw 8 200000
    row "get, us" 1 ucp_get 8 5000
    row "fetch and add, us" 1 ucp_fadd 8 5000
    row "active message, us" 1 ucp_am_lat 8 20000
    row "stream, us" 1 stream_lat 8 20000
    row "tag latency 64 KiB, us" 1 tag_lat 65536 2000
}

ours_server="env TAGWIRE_WIRE=switch:bench-ucp-$$ $runner"
ours_client=$ours_server
ours_address=127.0.0.1
ucx_server="env UCX_TLS=tcp UCX_NET_DEVICES=lo"
ucx_client=$ucx_server
ucx_address=127.0.0.1
table "Two processes of this host: Tagwire over the software card, UCX over TCP on the loopback interface"

if make_veth; then
    vdev=net_af_packet0,iface=vt
    ours_server="ip netns exec $veth_a env TAGWIRE_VDEV=${vdev}a TAGWIRE_IP=10.199.0.11 $runner"
    ours_client="ip netns exec $veth_b env TAGWIRE_VDEV=${vdev}b TAGWIRE_IP=10.199.0.12 $runner"
    ours_address=10.199.0.1
    ucx_server="ip netns exec $veth_a env UCX_TLS=tcp UCX_NET_DEVICES=vta"
    ucx_client="ip netns exec $veth_b env UCX_TLS=tcp UCX_NET_DEVICES=vtb"
    ucx_address=10.199.0.1
    table "Two network namespaces joined by a veth pair: Tagwire over net_af_packet, UCX over TCP"
else
    echo "(no second table: network namespaces need root)"
fi
