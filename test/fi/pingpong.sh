#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric's fi_pingpong over the provider: both kinds of endpoint, all its sizes, contents checked.
#   test/fi/pingpong.sh
# TAGWIRE_FI_DIR names the folder of libtagwire-fi.so (build/lib/fi). As root in a network namespace
# of its own, where a server's address is also one of the kernel's, over which the two meet; otherwise
# connected endpoints are left out. Exit status 77: there is no fi_pingpong.
set -eu
address=10.99.0.1
command -v fi_pingpong >/dev/null || { echo "no fi_pingpong: apt-get install libfabric-bin"; exit 77; }
if [ "$(id -u)" = 0 ] && [ -z "${PINGPONG_INSIDE:-}" ]; then
    PINGPONG_INSIDE=1 exec unshare --net sh -c \
        "ip link set lo up && ip address add $address/32 dev lo && exec bash \"\$0\"" "$0"
fi
kinds=(rdm msg)
if [ -z "${PINGPONG_INSIDE:-}" ]; then
    kinds=(rdm) address=127.0.0.1
fi
here=$(cd "$(dirname "$0")/../.." && pwd)
export FI_PROVIDER_PATH=${TAGWIRE_FI_DIR:-$here/build/lib/fi} TAGWIRE_WIRE=switch:pingpong-$$
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for kind in "${kinds[@]}"; do
    options=(-p tagwire -e "$kind" -c -S all -I 10)
    server_ip=
    [ "$address" = 127.0.0.1 ] || server_ip=$address
    TAGWIRE_IP=$server_ip timeout 120 fi_pingpong "${options[@]}" >"$work/server" 2>&1 &
    server=$!
    client=1
    # The client gives up when nobody listens yet.
    for _ in $(seq 100); do
        if ! kill -0 "$server" 2>/dev/null || grep -q ':B9E8 [0-9A-F]*:0000 0A' /proc/net/tcp; then
            client=0
            break
        fi
        sleep 0.1
    done
    [ "$client" != 0 ] || timeout 120 fi_pingpong "${options[@]}" "$address" >"$work/client" 2>&1 || client=$?
    status=0
    wait "$server" || status=$?
    if [ "$client$status" != 00 ]; then
        echo "fi_pingpong -e $kind: server $status, client $client"
        tail -n 5 "$work"/*
        exit 1
    fi
    echo "fi_pingpong -e $kind: $(grep -c '^[0-9]' "$work/client") sizes"
done
