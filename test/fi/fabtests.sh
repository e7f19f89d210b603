#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs libfabric's own tests (fabtests) over the provider, each between two processes on a software
# switch, and prints which passed.
#
#   test/fi/fabtests.sh SOURCE [PATTERN]
#
# SOURCE is a fabtests source tree of the installed libfabric's version, which is configured, built
# and installed into SOURCE/install at first, or a folder with the built programs. PATTERN (a
# regular expression) picks tests of the list.
# TAGWIRE_FI_DIR names the folder of libtagwire-fi.so (build/lib/fi). FABTESTS_NETNS=A,B runs servers in
# network namespace A and clients in B, over TAGWIRE_WIRE_A and TAGWIRE_WIRE_B (netdev:...); the
# programs then meet at FABTESTS_MEETING, an address of A that B reaches.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 1 ] || { sed -n '3,15s/^# \{0,1\}//p' "$0"; exit 2; }
source=$(readlink -f "$1")
pattern=${2:-.}

if [ -x "$source/fi_rdm" ]; then
    bin=$source
else
    bin=$source/install/bin
    if [ ! -x "$bin/fi_rdm" ]; then
        (cd "$source" && ./autogen.sh && ./configure --prefix="$source/install" && make -j2 && make install) \
            >"$source/build.log" 2>&1 || { echo "the build failed: $source/build.log" >&2; exit 1; }
    fi
fi

FI_PROVIDER_PATH=${TAGWIRE_FI_DIR:-$here/build/lib/fi}
export FI_PROVIDER_PATH PATH="$bin:$PATH"
export TAGWIRE_WIRE=${TAGWIRE_WIRE:-switch:fabtests-$$}
logs=$(mktemp -d)
passed=0 failed=0
failures=()
server_space=() client_space=()
server_wire=$TAGWIRE_WIRE client_wire=$TAGWIRE_WIRE
if [ -n "${FABTESTS_NETNS:-}" ]; then
    server_space=(ip netns exec "${FABTESTS_NETNS%,*}") client_space=(ip netns exec "${FABTESTS_NETNS#*,}")
    server_wire=$TAGWIRE_WIRE_A client_wire=$TAGWIRE_WIRE_B
fi

report() { # NAME STATUS LOG...
    local name=$1 status=$2
    shift 2
    if [ "$status" = passed ]; then
        passed=$((passed + 1))
        echo "passed  $name"
    else
        failed=$((failed + 1))
        failures+=("$name")
        echo "FAILED  $name ($status)"
        [ -z "${FABTESTS_VERBOSE:-}" ] || tail -n "$FABTESTS_VERBOSE" "$@" | sed 's/^/        /'
    fi
}

limit=${FABTESTS_LIMIT:-60}

# The programs tell each other their addresses, and wait for each other, over TCP here.
meeting=${FABTESTS_MEETING:-127.0.0.1}

# both PROGRAM ARGUMENTS: a server and a client.
both() {
    local line="$*"
    run_both "$line" "${1} -p tagwire -E ${*:2}" "${1} -p tagwire -E ${*:2} $meeting" ""
}

# The same, over the fabric alone.
both_by_address() {
    local line="$* SERVER-ADDRESS"
    run_both "$line" "${1} -p tagwire -s 10.99.0.1 ${*:2}" "${1} -p tagwire ${*:2} 10.99.0.1" 10.99.0.1
}

# Until it listens on fabtests' TCP port (9228), or, if it meets its client on the fabric, for a while.
wait_for_server() {
    local i
    for i in $(seq "${FABTESTS_PATIENCE:-20}"); do
        sleep 0.1
        kill -0 "$1" 2>/dev/null || return 0
        "${server_space[@]}" grep -q ':240C [0-9A-F]*:0000 0A' /proc/net/tcp && return 0
    done
}

# run_both NAME SERVER CLIENT SERVER-ADDRESS
run_both() {
    local line=$1
    [[ $line =~ $pattern ]] || return 0
    # shellcheck disable=SC2086
    TAGWIRE_IP=$4 TAGWIRE_WIRE=$server_wire "${server_space[@]}" timeout "$limit" \
        $2 >"$logs/server" 2>&1 &
    local pid=$! client_status server_status
    wait_for_server "$pid"
    # shellcheck disable=SC2086
    TAGWIRE_WIRE=$client_wire "${client_space[@]}" timeout "$limit" \
        $3 >"$logs/client" 2>&1
    client_status=$?
    wait "$pid"
    server_status=$?
    local status=passed
    [ "$client_status$server_status" = 00 ] || status="server $server_status, client $client_status"
    report "$line" "$status" "$logs/server" "$logs/client"
}

# alone PROGRAM ARGUMENTS: one process.
alone() {
    local line="$*" program=$1 status
    [[ $line =~ $pattern ]] || return 0
    shift
    TAGWIRE_IP=10.99.0.1 timeout "$limit" "$program" -p tagwire "$@" >"$logs/alone" 2>&1
    status=$?
    # Programs that count end with 0 although some of what they count failed.
    if [ "$status" = 0 ] && grep -q '^Summary: .*failed\|[1-9][0-9]* tests* failed' "$logs/alone" &&
        ! grep -q 'Summary: all tests passed' "$logs/alone"; then
        status="some parts failed"
    fi
    [ "$status" != 0 ] || status=passed
    report "$line" "$status" "$logs/alone"
}

alone fi_getinfo_test
alone fi_av_test -g 10.99.1.1 -n 1 -s 10.99.0.1
alone fi_dom_test -n 2
alone fi_eq_test
alone fi_cq_test
alone fi_mr_test
alone fi_cntr_test
for options in "" "-v" "-U" "-v -U -S 4096" "-t counter" "-c sread" "-c fd"; do
    both fi_rdm_tagged_pingpong -I 100 $options
done
both fi_rdm_tagged_pingpong -I 5 -v -S all
for options in "" "-v" "-U" "-v -U" "-I 200 -W 128 -j 0"; do
    both fi_rdm_tagged_bw -S 4096 -I 1000 $options
done
both fi_rdm_tagged_peek
both fi_unexpected_msg -e rdm -I 10
both fi_unexpected_msg -e rdm -I 10 -C
both fi_unexpected_msg -e rdm -I 10 -M 512 -S 65536
both fi_recv_cancel -e rdm -V
for options in "-A inject -v" "-N -A inject -v" "-A inj_complete -v" "-N -A inj_complete -v"; do
    both fi_msg_inject $options
done
both fi_resmgmt_test -e rdm -t -m 1000
both fi_resmgmt_test -e rdm -m 1000
alone fi_loopback
both fi_rdm_deferred_wq
both fi_av_xfer -e rdm
both fi_cq_data -e rdm
both fi_multi_recv -e rdm
both fi_rdm
both fi_rdm -U
both_by_address fi_rdm
both_by_address fi_rdm_tagged_pingpong -I 100
both fi_rdm_pingpong -I 100 -v
both fi_rdm_pingpong -I 100 -v -U
both fi_rdm_cntr_pingpong -I 100
for operation in write read writedata; do
    both fi_rma_bw -e rdm -I 100 -o $operation
done
both fi_rdm_atomic -I 5 -o all
both fi_rdm_rma_event
both fi_rdm_rma_trigger
both fi_shared_ctx
both fi_shared_ctx --no-tx-shared-ctx
both fi_shared_ctx --no-rx-shared-ctx
both fi_scalable_ep
both fi_rdm_shared_av
both fi_multi_mr -e rdm -V
both fi_poll -t queue
both fi_poll -t counter
both fi_multi_ep -e rdm -v
both fi_bw -e rdm -v -T 1 -U
both fi_rdm_multi_client -C 10 -I 5
both fi_rdm_multi_domain -V
if [[ "ubertest" =~ $pattern ]]; then
    TAGWIRE_IP=10.99.0.1 timeout 600 fi_ubertest -p tagwire -x >"$logs/server" 2>&1 &
    pid=$!
    sleep 1
    TAGWIRE_IP=10.99.0.2 timeout 600 fi_ubertest -p tagwire -u "$here/test/fi/ubertest.conf" 127.0.0.1 \
        >"$logs/client" 2>&1
    status=$?
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    grep -q 'ENOSYS\|failed: *[1-9]' "$logs/client" && status="parts"
    [ "$status" != 0 ] || status=passed
    report "fi_ubertest -u ubertest.conf" "$status" "$logs/client"
fi

echo "$passed passed, $failed failed"
for name in "${failures[@]}"; do
    echo "  $name"
done
rm -rf "$logs"
[ "$failed" = 0 ]
