#!/usr/bin/env bash
# ./run demo: memory and clearing up around scripts/demo.py.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=scripts/hugepages.sh
. scripts/hugepages.sh

if [ "${1:-}" = --help ]; then
    cat <<'EOF'
usage: ./run demo [--quick] [--keep-files] [--no-huge]

Two tagwire-perf processes on the software ConnectX exchange files both ways, then
ping-pong and stream. Exit status 0: everything arrived right.

  --quick       a 16 MiB file instead of 256 MiB, shorter measurements
  --keep-files  leave the temporary folder (received files, JSON results, logs)
  --no-huge     do not reserve hugepages
EOF
    exit 0
fi

for argument in "$@"; do
    case $argument in
        --quick | --keep-files | --no-huge) ;;
        *) echo "demo: error: unknown option $argument (./run demo --help lists the options)" >&2; exit 2 ;;
    esac
done

child=
cleanup() {
    trap '' INT TERM
    if [ -n "$child" ]; then
        kill -TERM "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    restore_hugepages
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

arguments=()
hugepages_text="--no-huge, as asked for"
case " $* " in
    *' --no-huge '*) ;;
    # Two processes, with room for the pools of each.
    *) reserve_hugepages 1024 || arguments+=(--no-huge) ;;
esac

python3 scripts/demo.py --build build --memory "$hugepages_text" "$@" ${arguments[@]+"${arguments[@]}"} &
child=$!
status=0
wait "$child" || status=$?
child=
exit "$status"
