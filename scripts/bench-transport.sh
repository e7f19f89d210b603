#!/usr/bin/env bash
# Instructions per 8-byte tagged message without driver, counted by callgrind
#
# scripts/bench-transport.sh BUILD_DIR: in lib/transport and lib/wire alone, and through the
# public API with matching and completions.
set -euo pipefail

build=${1:?usage: bench-transport.sh BUILD_DIR}
program=$build/bench/transport/message_instructions
core=$build/bench/transport/core_instructions
large=$build/bench/transport/large_instructions
for needed in "$program" "$core" "$large"; do
    [ -x "$needed" ] || { echo "bench-transport: $needed is not built" >&2; exit 1; }
done
command -v valgrind >/dev/null || { echo "bench-transport: valgrind is not installed (apt-get install valgrind)" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count FUNCTION[,FUNCTION...] BATCHES MESSAGES [CHECKSUM]: instructions inside these.
count() {
    local functions=(${1//,/ })
    shift
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
        "${functions[@]/#/--toggle-collect=}" "$program" "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    awk '/^(summary|totals):/ { print $2; exit }' "$work/out"
}

# Per message: the difference of two lengths, so that the set-up drops out.
per_message() {
    local few many
    few=$(count "$1" 10 "${@:2}")
    many=$(count "$1" 110 "${@:2}")
    echo $(((many - few + 50 * $2) / (100 * $2)))
}

echo "instructions per 8-byte tagged message (callgrind)"
printf '%-10s %-9s %6s %12s %9s\n' together checksum send sender-poll receiver
for together in 1 16 64; do
    for checksum in nic software; do
        printf '%-10s %-9s %6s %12s %9s\n' "$together" "$checksum" \
            "$(per_message measured_send "$together" "$checksum")" \
            "$(per_message measured_sender_poll "$together" "$checksum")" \
            "$(per_message measured_receiver_poll "$together" "$checksum")"
    done
done
echo "send: the call. sender-poll: building frames, acknowledgements, completion. receiver: poll and accept."

echo
echo "through the public API, checksums by the NIC"
printf '%-10s %6s %6s %12s %14s %10s %10s\n' together send recv sender-poll receiver-poll all-send all-recv
program=$core
for together in 1 16 64; do
    send=$(per_message measured_posts "$together")
    recv=$(per_message measured_receives "$together")
    sender=$(per_message measured_sender "$together")
    receiver=$(per_message measured_receiver "$together")
    printf '%-10s %6s %6s %12s %14s %10s %10s\n' "$together" "$send" "$recv" "$sender" "$receiver" \
        $((send + sender)) $((recv + receiver))
done
echo "all-send: the call, its frames, acknowledgement, completion. all-recv: the call, match, copy, completion."

echo
echo "a large message, its sender's side: instructions, and ns of the best of five runs on this machine"
printf '%-8s %-6s %-9s %10s %10s %10s %10s\n' bytes mtu checksum copied lent copied-ns lent-ns
program=$large
# Instructions of a message, in the call and in the polls.
large_message() {
    local few many
    few=$(count measured_large_send,measured_large_poll 5 "$@")
    many=$(count measured_large_send,measured_large_poll 15 "$@")
    echo $(((many - few) / 10))
}
large_ns() {
    for _ in 1 2 3 4 5; do "$large" $((131072000 / $1)) "$@" 2>/dev/null; done | sort -n | awk '{ print $1; exit }'
}
for bytes in 65536 1048576; do
    for mtu in 1500 9000; do
        for checksum in nic software; do
            printf '%-8s %-6s %-9s %10s %10s %10s %10s\n' "$bytes" "$mtu" "$checksum" \
                "$(large_message "$bytes" copied "$checksum" "$mtu")" "$(large_message "$bytes" lent "$checksum" "$mtu")" \
                "$(large_ns "$bytes" copied "$checksum" "$mtu")" "$(large_ns "$bytes" lent "$checksum" "$mtu")"
        done
    done
done
