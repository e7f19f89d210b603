#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# perftest, as Debian ships it, in two processes over the shared-memory switch.
# usage: perftest_test.sh SOFTCX-RUN raw_ethernet_bw|raw_ethernet_lat [MODE]
set -u
# What a stock program leaks is its own (this matters to a sanitized build).
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
run=$1 program=$2 mode=${3:-auto}
command -v "$program" >/dev/null || { echo "$program is not installed (package perftest)"; exit 77; }
switch=perftest-$$
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The receive ring holds every frame: raw Ethernet has no flow control, and perftest
# waits for frames that were dropped.
case $program in
    *_bw) options="-n 2000 -s 256 -r 4096" ;;
    *) options="-n 200 -s 256" ;;
esac
server_mac=02:00:00:00:10:01 client_mac=02:00:00:00:10:02

# shellcheck disable=SC2086
timeout 100 "$run" --mode "$mode" --log info --wire switch:$switch --mac $server_mac \
    stdbuf -oL "$program" --server -d mlx5_0 \
    --source_mac $server_mac --dest_mac $client_mac $options >"$scratch/server" 2>&1 &
server=$!
# The server must have its receives posted before the client sends.
tries=0
until grep -q 'MAC attached' "$scratch/server" || [ $tries -ge 200 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
sleep 0.5
# shellcheck disable=SC2086
timeout 100 "$run" --mode "$mode" --log info --wire switch:$switch --mac $client_mac "$program" --client -d mlx5_0 \
    --source_mac $client_mac --dest_mac $server_mac $options >"$scratch/client" 2>&1
client_status=$?
wait $server
server_status=$?
for side in server client; do
    echo "== $side"
    cat "$scratch/$side"
done
[ $client_status -eq 0 ] && [ $server_status -eq 0 ] || {
    echo "FAILED: status of the client $client_status, of the server $server_status"
    exit 1
}
iterations=$(echo "$options" | sed 's/-n \([0-9]*\).*/\1/')
for side in server client; do
    grep -qE "^ *256 +$iterations " "$scratch/$side" || {
        echo "FAILED: no result of $iterations iterations in the output of the $side"
        exit 1
    }
done
