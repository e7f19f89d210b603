#!/usr/bin/env bash
# Instructions per 8-byte tagged message in lib/transport and lib/wire, without
# driver and matching, counted by callgrind.  scripts/bench-transport.sh BUILD_DIR
set -euo pipefail

build=${1:?usage: bench-transport.sh BUILD_DIR}
program=$build/bench/transport/message_instructions
[ -x "$program" ] || { echo "bench-transport: $program is not built" >&2; exit 1; }
command -v valgrind >/dev/null || { echo "bench-transport: valgrind is not installed (apt-get install valgrind)" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count FUNCTION BATCHES MESSAGES CHECKSUM: instructions inside FUNCTION.
count() {
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
        --toggle-collect="$1" "$program" "$2" "$3" "$4" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    awk '/^(summary|totals):/ { print $2; exit }' "$work/out"
}

# Per message: the difference of two lengths, so that the set-up drops out.
per_message() {
    local few many
    few=$(count "$1" 10 "$2" "$3")
    many=$(count "$1" 110 "$2" "$3")
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
