#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# softcx-run from outside: stock programs of the distribution, options, errors.
# usage: run_test.sh SOFTCX-RUN
set -u
# What a stock program leaks is its own (this matters to a sanitized build).
export ASAN_OPTIONS="detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
run=$1
failures=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check NAME EXPECTED-STATUS PATTERN COMMAND...: the pattern in stdout and stderr.
check() {
    name=$1 expected=$2 pattern=$3
    shift 3
    timeout 60 "$@" >"$scratch/output" 2>&1
    status=$?
    echo >>"$scratch/output"
    if [ $status -ne "$expected" ] || ! grep -qE -- "$pattern" "$scratch/output"; then
        echo "FAILED: $name: status $status (expected $expected), looking for: $pattern"
        sed 's/^/    /' "$scratch/output"
        failures=$((failures + 1))
    else
        echo "ok: $name"
    fi
}

check 'ibv_devices lists the device' 0 'mlx5_0' "$run" ibv_devices
check 'ibv_devices lists several' 0 'mlx5_3' "$run" --devices 4 ibv_devices
check 'ibv_devinfo -l' 0 '^1 HCA found' "$run" ibv_devinfo -l
for expected in 'board_id:[[:space:]]+MT_0000000008' 'vendor_id:[[:space:]]+0x02c9' \
    'vendor_part_id:[[:space:]]+4119' 'fw_ver:[[:space:]]+16\.35\.2000' \
    'state:[[:space:]]+PORT_ACTIVE' 'link_layer:[[:space:]]+Ethernet' \
    'rx_hash_function:[[:space:]]+0x1' 'max_rwq_indirection_table_size:[[:space:]]+2048' \
    'IP csum offload' 'hca_core_clock:[[:space:]]+78125kHZ' \
    'node_guid:[[:space:]]+0011:22ff:fe33:4455' 'GID\[  1\]:.*fe80::11:22ff:fe33:4455, RoCE v2'; do
    check "ibv_devinfo -v: $expected" 0 "$expected" "$run" --mac 02:11:22:33:44:55 ibv_devinfo -v
done
if /usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null; then
    check 'pyverbs lists the device' 0 'pyverbs.device.Device' "$run" /usr/bin/python3 -c \
        'import pyverbs.device as d; print(d.get_device_list())'
    check 'pyverbs opens it' 0 'mlx5_0' "$run" /usr/bin/python3 -c \
        'import pyverbs.device as d; c = d.Context(name="mlx5_0"); print(c.name, c.query_port(1))'
fi

check '--help' 0 'usage: softcx-run' "$run" --help
check 'an unknown option' 2 'unknown option --speed' "$run" --speed 9 true
check 'an option without its value' 2 '--wire needs a value' "$run" --wire
check 'no program' 2 'no program given' "$run" --devices 2
check 'a program that is not there' 2 'no such program' "$run" no-such-program-here
check 'the status of the program' 7 '' "$run" sh -c 'exit 7'
check 'arguments with spaces' 0 '^a  b\|c$' "$run" printf '%s|%s\n' 'a  b' c
check '--option=value' 0 'mlx5_3' "$run" --devices=4 ibv_devices
check '--version' 0 '^softcx-run [0-9]' "$run" --version
# The program does not start: a test that skips without a device would pass.
for wrong in '--devices 0' '--devices 40' '--mode x' '--mac zz' '--faults los=0.1' '--log loud' '--checks Fatal'; do
    # shellcheck disable=SC2086
    check "$wrong is refused" 2 "=${wrong#* }: " "$run" $wrong echo started
    grep -q started "$scratch/output" && { echo "FAILED: $wrong: the program started"; failures=$((failures + 1)); }
done
check 'a variable that is wrong is refused, too' 2 'SOFTCX_CHECKS=yes: use count or fatal' \
    env SOFTCX_CHECKS=yes "$run" true
check 'the first device is the first of the list' 0 '^    mlx5_0' sh -c "'$run' --devices 3 ibv_devices | sed -n 3p"
check 'mode step without a step is told' 0 'nobody called softcx_step' "$run" --mode step /usr/bin/python3 -c '
import pyverbs.device as d, pyverbs.pd as p, pyverbs.cq as c, pyverbs.qp as q
context = d.Context(name="mlx5_0"); pd = p.PD(context); cq = c.CQ(context, 8)
cap = q.QPCap(8, 8, 1, 1)
qp = q.QP(pd, q.QPInitAttr(qp_type=8, scq=cq, rcq=cq, cap=cap), q.QPAttr())'
check 'a bad wire is named, with the remedy' 2 \
    'SOFTCX_WIRE=cable: no such wire: use loopback, pair, switch:NAME, netdev:NAME' \
    "$run" --wire cable ibv_devices
check 'an odd pair is refused' 2 'even number' "$run" --devices 3 --wire pair ibv_devinfo

check 'a netdev that is not there is named, with the remedy' 2 \
    'SOFTCX_NETDEV: no-such-netdev: no such network device here: make it first' \
    "$run" --netdev no-such-netdev ibv_devices
check 'a netdev that is no Ethernet port' 2 'SOFTCX_NETDEV: lo: no Ethernet device' \
    "$run" --netdev lo ibv_devices

# The thread of auto mode is there until the program steps the device itself.
check 'auto mode becomes step mode at the first step' 0 \
    '^softcx, 2 devices, wire pair, thread mode \(until the first step\) / softcx, .*, step mode$' \
    "$run" --devices 2 /usr/bin/python3 -c '
import ctypes
softcx = ctypes.CDLL(None)
softcx.softcx_describe.restype = ctypes.c_char_p
before = softcx.softcx_describe().decode()
softcx.softcx_step()
print(before, "/", softcx.softcx_describe().decode())'

# Nothing is left behind, and what a killed process left goes with the next start.
count() { find /dev/shm -maxdepth 1 -name 'softcx-sys-*' 2>/dev/null | wc -l; }
"$run" ibv_devices >/dev/null
before=$(count)
"$run" sh -c 'test -d /sys/class/infiniband; ls /sys/class/infiniband >/dev/null; kill -9 $$' 2>/dev/null
"$run" ibv_devices >/dev/null
if [ "$(count)" -gt "$before" ]; then
    echo "FAILED: device files of a killed process are left in /dev/shm"
    failures=$((failures + 1))
fi

[ $failures -eq 0 ] || { echo "$failures failed"; exit 1; }
