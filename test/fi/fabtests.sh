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
# FABTESTS_LIBFABRIC names where another libfabric is installed (its --prefix), for fabtests of its
# version: 1.17 to 2.6 have been used, the provider being the same.
# TAGWIRE_FI_DIR names the folder of libtagwire-fi.so (build/lib/fi). Programs tell each other their
# addresses, and wait for each other, over TCP: as root all of it runs in a network namespace of its
# own. FABTESTS_NETNS=A,B runs servers in network namespace A and clients in B, over TAGWIRE_WIRE_A and
# TAGWIRE_WIRE_B (netdev:...); A has the address 10.99.0.1 for TCP, and B reaches it.
#
# What is not run, or not in the fabtests at hand, is listed with its reason. Everything else must pass.
set -u
server_address=10.99.0.1
if [ "$(id -u)" = 0 ] && [ -z "${FABTESTS_NETNS:-}${FABTESTS_INSIDE:-}" ]; then
    FABTESTS_INSIDE=1 exec unshare --net sh -c \
        "ip link set lo up && ip address add $server_address/32 dev lo && exec bash \"\$0\" \"\$@\"" "$0" "$@"
fi
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 1 ] || { sed -n '3,22s/^# \{0,1\}//p' "$0"; exit 2; }
source=$(readlink -f "$1")
pattern=${2:-.}

if [ -x "$source/fi_rdm" ]; then
    bin=$source
else
    bin=$source/install/bin
    if [ ! -x "$bin/fi_rdm" ]; then
        (cd "$source" && ./autogen.sh &&
            ./configure --prefix="$source/install" ${FABTESTS_LIBFABRIC:+--with-libfabric="$FABTESTS_LIBFABRIC"} &&
            make -j2 && make install) \
            >"$source/build.log" 2>&1 || { echo "the build failed: $source/build.log" >&2; exit 1; }
    fi
fi

FI_PROVIDER_PATH=${TAGWIRE_FI_DIR:-$here/build/lib/fi}
export FI_PROVIDER_PATH PATH="$bin:$PATH"
export TAGWIRE_WIRE=${TAGWIRE_WIRE:-switch:fabtests-$$}
if [ -n "${FABTESTS_LIBFABRIC:-}" ]; then
    export LD_LIBRARY_PATH="$FABTESTS_LIBFABRIC/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
# Tests that came, went, or were given another name between 1.17 and 2.6.
newest=
inject=fi_msg_inject transfer=-C
if [ -x "$bin/fi_inject_test" ]; then
    newest=yes inject=fi_inject_test transfer=-x
fi
if [ ! -e "$FI_PROVIDER_PATH/libtagwire-fi.so" ]; then
    echo "no libtagwire-fi.so in $FI_PROVIDER_PATH: build it, or name its folder in TAGWIRE_FI_DIR" >&2
    exit 2
fi
logs=$(mktemp -d)
passed=0 failed=0 skipped=0
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

# both PROGRAM ARGUMENTS: a server and a client, which tell each other their addresses over TCP.
both() {
    run_both "$*" "$1 -p tagwire -E ${*:2}" "$1 -p tagwire -E ${*:2} $server_address" ""
}

# The same, over the fabric: the client knows the server's address.
by_address() {
    run_both "$* ADDRESS" "$1 -p tagwire -s $server_address ${*:2}" \
        "$1 -p tagwire ${*:2} $server_address" $server_address
}

# Both know both addresses: connected endpoints in programs that also meet over TCP.
by_addresses() {
    run_both "$* ADDRESSES" "$1 -p tagwire -s $server_address ${*:2}" \
        "$1 -p tagwire -s 10.99.0.2 ${*:2} $server_address" $server_address
}

# left_out TEST REASON
left_out() {
    [[ $1 =~ $pattern ]] || return 0
    skipped=$((skipped + 1))
    echo "skipped $1: $2"
}

# is_there LINE PROGRAM
is_there() {
    [ ! -x "$bin/$2" ] || return 0
    left_out "$1" "these fabtests have no $2"
    return 1
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
    local line=$1 program=${2%% *}
    [[ $line =~ $pattern ]] || return 0
    is_there "$line" "$program" || return 0
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
    [ -z "${client_alone_counts:-}" ] || server_status=0
    [ "$client_status$server_status" = 00 ] || status="server $server_status, client $client_status"
    report "$line" "$status" "$logs/server" "$logs/client"
}

# several PROGRAM ARGUMENTS: three processes that meet over TCP, or one at each end of a cable.
several() {
    local line="$*" count=3 number
    [[ $line =~ $pattern ]] || return 0
    is_there "$line" "$1" || return 0
    [ -z "${FABTESTS_NETNS:-}" ] || count=2
    local command="$1 -p tagwire -n $count -s $server_address ${*:2}"
    # shellcheck disable=SC2086
    TAGWIRE_WIRE=$server_wire "${server_space[@]}" timeout "$limit" $command >"$logs/0" 2>&1 &
    local pids=($!) files=("$logs/0") statuses=()
    sleep 1 # the first one listens
    for ((number = 1; number < count; ++number)); do
        # shellcheck disable=SC2086
        TAGWIRE_WIRE=$client_wire "${client_space[@]}" timeout "$limit" $command \
            >"$logs/$number" 2>&1 &
        pids+=($!) files+=("$logs/$number")
    done
    local pid status=passed
    for pid in "${pids[@]}"; do
        wait "$pid"
        statuses+=($?)
    done
    [[ ${statuses[*]} =~ ^[0\ ]*$ ]] || status="processes ${statuses[*]}"
    report "$line" "$status" "${files[@]}"
}

# alone PROGRAM ARGUMENTS: one process.
alone() {
    local line="$*" program=$1 status
    [[ $line =~ $pattern ]] || return 0
    is_there "$line" "$program" || return 0
    shift
    TAGWIRE_IP=$server_address timeout "$limit" "$program" -p tagwire "$@" >"$logs/alone" 2>&1
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
    both $inject $options
done
both fi_resmgmt_test -e rdm -t -m 1000
both fi_resmgmt_test -e rdm -m 1000
alone fi_loopback
if [ -z "$newest" ]; then
    for kind in counters msg tagged rma atomic f_atomic; do
        by_address fi_rdm_deferred_wq -T $kind
    done
    by_address fi_rdm_deferred_wq -a
else
    left_out "fi_rdm_deferred_wq" "fabtests 2.6 count what peers write at a counter of its own (rma_cntr), and the test waits for it at the counter of receives; the sockets provider hangs in it too"
fi
left_out "fi_rdm_deferred_wq -T c_atomic" "it expects FI_CSWAP_LE to swap although the compare value is not less or equal; the sockets provider fails it too"
both fi_av_xfer -e rdm
both fi_cq_data -e rdm
both fi_multi_recv -e rdm
both fi_rdm
both fi_rdm -U
by_address fi_rdm
by_address fi_rdm_tagged_pingpong -I 100
both fi_rdm_pingpong -I 100 -v
both fi_rdm_pingpong -I 100 -v -U
both fi_rdm_cntr_pingpong -I 100
for operation in write read writedata; do
    both fi_rma_bw -e rdm -I 100 -o $operation
done
both fi_rdm_atomic -I 5 -o all
both fi_rdm_rma_event
both fi_rdm_rma_trigger
# These have no meeting over TCP.
by_address fi_shared_ctx
by_address fi_shared_ctx --no-tx-shared-ctx
by_address fi_shared_ctx --no-rx-shared-ctx
by_address fi_scalable_ep
by_address fi_rdm_shared_av
by_address fi_poll -t queue
by_address fi_poll -t counter
both fi_multi_mr -e rdm -V
both fi_multi_ep -e rdm -v
both fi_bw -e rdm -v -T 1 -U
for options in "" "-U"; do
    both fi_rdm_multi_client -C 10 -I 5 $options
done
both fi_unmap_mem -I 5
for operation in msg rma; do
    several fi_multinode "$transfer" $operation
done
left_out "fi_multinode_coll" "collectives are not there (tcp and tcp;ofi_rxm pass it)"
left_out "fi_mr_cache_evict" "it registers a key that is in use, which is refused (FI_ENOKEY), and reports errno in place of that; with stock providers errno happens to make it skip its parts"
if [[ $server_wire == netdev:* && $server_wire != *,* ]]; then
    left_out "fi_rdm_multi_domain -V" "each domain needs a port, and a wire on one network device has one (error 19, ENODEV)"
else
    both fi_rdm_multi_domain -V
fi

# Connected endpoints.
by_address fi_msg
by_address fi_msg_epoll
by_addresses fi_msg_sockets
left_out "fi_shared_ctx -e msg" "it posts a receive of 256 bytes at NULL, which is refused (sockets takes that, and all messages are empty); with its buffers allocated (ft_alloc_msgs) it passes"
by_address fi_cm_data
by_address fi_msg_pingpong -I 100 -v
by_address fi_msg_pingpong -I 5 -v -S all
by_address fi_msg_bw -I 200 -v
by_address fi_rma_bw -e msg -I 100 -o write
by_address fi_rma_bw -e msg -I 100 -o read
by_address fi_rma_bw -e msg -I 100 -o writedata
by_address fi_cq_data -e msg
by_addresses fi_multi_recv -e msg
by_address fi_multi_mr -e msg -V
by_address fi_bw -e msg -v -T 1 -U
for options in "" "-C"; do
    by_addresses fi_unexpected_msg -e msg -I 10 $options
done
by_addresses fi_recv_cancel -e msg -V
by_addresses fi_resmgmt_test -e msg -t -m 1000
by_addresses fi_resmgmt_test -e msg -m 1000
by_addresses fi_multi_ep -e msg -v

if [ -n "$newest" ]; then
    alone fi_setopt_test
    alone sighandler_test
    for operation in write writedata; do
        both fi_rma_pingpong -e rdm -I 5 -o $operation
        by_address fi_rma_pingpong -e msg -I 5 -o $operation
    done
    both fi_rma_tx_completion -e rdm
    for options in "" "-U"; do
        both fi_flood -e rdm -v -T 1 $options
    done
    by_address fi_flood -e msg -v -T 1
    for operation in senddata writedata; do
        both fi_cq_data -e rdm -o $operation
        by_address fi_cq_data -e msg -o $operation
    done
    # More messages than anybody expects yet.
    both fi_unexpected_msg -e rdm -I 10 -M 1024 -S 512
    both fi_unexpected_msg -e rdm -I 10 -M 2048 -S 9000
    both fi_multi_recv -e rdm -I 100 -M -v
    both fi_rdm_tagged_bw -S 4096 -I 1000 --use-fi-more -v
    both fi_rdm_bw -S 4096 -I 1000 --use-fi-more -v
    both fi_rma_bw -e rdm -I 100 -o write --use-fi-more
    # The server's second message is too long; it waits in vain for an answer then.
    client_alone_counts=yes run_both "truncation: fi_rdm_tagged_pingpong -S 200001 to -S 200000" \
        "fi_rdm_tagged_pingpong -p tagwire -E --timeout 3 -I 5 -S 200001" \
        "fi_rdm_tagged_pingpong -p tagwire -E --expect-error 265 -I 5 -S 200000 $server_address" ""
    for options in "-A" "-Q" "-A -Q" "-A -Q --threading completion"; do
        both fi_multi_ep -e rdm -v $options
    done
    # As many domains as threads.
    TAGWIRE_WORKERS=9 both fi_rdm_bw_mt -n 8
fi

if [[ "fi_ubertest" =~ $pattern ]]; then
    # Its providers and endpoint types are in its configuration.
    limit=900 run_both "fi_ubertest -u ubertest.conf" "fi_ubertest -x" \
        "fi_ubertest -u $here/test/fi/ubertest.conf $server_address" $server_address
fi

echo "$passed passed, $failed failed, $skipped skipped"
for name in "${failures[@]}"; do
    echo "  $name"
done
rm -rf "$logs"
[ "$failed" = 0 ]
