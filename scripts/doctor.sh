#!/usr/bin/env bash
# ./run doctor: what this machine has of what Tagwire needs, and the remedy for each
# miss. Needs nothing but bash and coreutils, and changes nothing.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh

if [ $# -gt 0 ]; then
    echo "usage: ./run doctor    (no arguments; exit status 0: every essential is there)"
    [ "$1" = --help ] || [ "$1" = -h ]
    exit
fi

rows=()
bad=0

# row STATUS ITEM FOUND REMEDY, status ok, note (works without it) or missing.
row() {
    rows+=("$1"$'\t'"$2"$'\t'"$3"$'\t'"$4")
    [ "$1" != missing ] || bad=$((bad + 1))
}

install_hint="as root: ./run build installs it, or: apt-get install"

tool() { # tool COMMAND PACKAGE
    local path
    if path=$(command -v "$1"); then
        row ok "$1" "$path" ""
    else
        row missing "$1" "not found" "$install_hint $2"
    fi
}

library() { # library PKG_CONFIG_NAME PACKAGE [LEAST VERSION]
    local version
    if ! command -v pkg-config >/dev/null; then
        row missing "$1" "unknown without pkg-config" "$install_hint $2"
    elif ! version=$(pkg-config --modversion "$1" 2>/dev/null); then
        row missing "$1" "not found" "$install_hint $2"
    elif [ -n "${3:-}" ] && ! pkg-config --atleast-version="$3" "$1"; then
        row missing "$1" "$version, too old" "version $3 or later is needed (Debian 12 has it)"
    else
        row ok "$1" "$version" ""
    fi
}

check_system() {
    local name=unknown
    [ -r /etc/os-release ] && name=$(. /etc/os-release && echo "$PRETTY_NAME")
    if command -v apt-get >/dev/null; then
        row ok "system" "$name, $(uname -m)" ""
    else
        row note "system" "$name, $(uname -m)" "packages are installed by themselves on Debian only"
    fi
    if grep -q -m 1 -w sse4_2 /proc/cpuinfo 2>/dev/null; then
        row ok "processor" "has SSE4.2, which DPDK needs" ""
    else
        row missing "processor" "no SSE4.2" "DPDK of Debian needs an x86-64 processor with SSE4.2"
    fi
    local cores
    cores=$(nproc)
    if [ "$cores" -ge 2 ]; then
        row ok "cores" "$cores" ""
    else
        row note "cores" "$cores" "two polling processes share it: right, but slow"
    fi
    local memory
    memory=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
    if [ "${memory:-0}" -ge 2048 ]; then
        row ok "memory" "$memory MB available" ""
    else
        row missing "memory" "${memory:-0} MB available" "the demo needs 2048 MB: end other programs"
    fi
}

check_build() {
    tool c++ g++
    tool meson meson
    tool ninja ninja-build
    tool pkg-config pkg-config
    tool python3 python3
    library libdpdk libdpdk-dev 22.11
    library libibverbs libibverbs-dev
    library libmlx5 libibverbs-dev
    library fmt libfmt-dev
    library nlohmann_json nlohmann-json3-dev
    library CLI11 libcli11-dev
    library libcrypto libssl-dev
    library gtest libgtest-dev
    library benchmark libbenchmark-dev
    check_driver_headers
    check_provider
}

check_driver_headers() {
    local folder
    if ! pkg-config --exists libdpdk 2>/dev/null; then
        row missing "DPDK driver headers" "unknown without libdpdk" "install libdpdk-dev, then ./run build takes them"
        return
    fi
    folder=$(driver_headers_dir 2>/dev/null)
    if [ -z "$folder" ]; then
        row ok "DPDK driver headers" "installed with DPDK" ""
    elif [ -z "$(missing_driver_headers "$folder")" ]; then
        row ok "DPDK driver headers" "$folder" ""
    else
        row missing "DPDK driver headers" "not yet taken" "./run build takes them from Debian's source package (about 16 MB)"
    fi
}

# The part of libmlx5 that libibverbs loads.
check_provider() {
    if compgen -G '/etc/libibverbs.d/mlx5.driver' >/dev/null; then
        row ok "libmlx5 provider" "/etc/libibverbs.d/mlx5.driver" ""
    else
        row missing "libmlx5 provider" "libibverbs does not know mlx5" "$install_hint ibverbs-providers"
    fi
}

check_tests() {
    local program
    for program in dpdk-testpmd:dpdk-dev raw_ethernet_bw:perftest ibv_devinfo:ibverbs-utils valgrind:valgrind; do
        if command -v "${program%:*}" >/dev/null; then
            row ok "${program%:*}" "$(command -v "${program%:*}")" ""
        else
            row note "${program%:*}" "not found" "tests and benchmarks want it: apt-get install ${program#*:}"
        fi
    done
}

check_run_time() {
    local free
    if [ -w /dev/shm ]; then
        free=$(df -m --output=avail /dev/shm 2>/dev/null | tail -n 1 | tr -d ' ')
        if [ "${free:-0}" -ge 64 ]; then
            row ok "/dev/shm" "$free MB free" ""
        else
            row missing "/dev/shm" "${free:-0} MB free" "the software wire needs 64 MB: remove files there, or mount -o remount,size=1G /dev/shm"
        fi
    else
        row missing "/dev/shm" "not writable" "the software wire lives there: mount -t tmpfs tmpfs /dev/shm"
    fi

    local total=0 kinds
    kinds=$(cat /sys/kernel/mm/hugepages/hugepages-*/nr_hugepages 2>/dev/null)
    for kinds in $kinds; do total=$((total + kinds)); done
    if [ "$total" -gt 0 ]; then
        row ok "hugepages" "$total reserved" ""
    elif [ -w /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages ]; then
        row ok "hugepages" "none reserved; ./run demo reserves them for its run" ""
    else
        row note "hugepages" "none reserved" "slower with --no-huge; as root: echo 512 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    fi

    local locked
    locked=$(ulimit -l)
    if [ "$locked" = unlimited ] || [ "$(id -u)" = 0 ]; then
        row ok "locked memory" "limit $locked kB, user $(id -un 2>/dev/null || id -u)" ""
    else
        row note "locked memory" "limit $locked kB" "a real card pins the buffers: 'ulimit -l unlimited', or memlock in /etc/security/limits.conf"
    fi
}

check_hardware() {
    local device found=
    for device in /sys/class/infiniband/mlx5_*; do
        [ -e "$device" ] && found="$found ${device##*/}"
    done
    if [ -z "$found" ]; then
        row note "mlx5 cards" "none" "the software ConnectX stands in (softcx-run); with a card: modprobe mlx5_ib"
        return
    fi
    row ok "mlx5 cards" "${found# }" ""
    for device in /dev/infiniband/uverbs*; do
        [ -e "$device" ] || continue
        if [ -r "$device" ] && [ -w "$device" ]; then
            row ok "$device" "readable and writable" ""
        else
            row missing "$device" "no permission" "be root, or: setfacl -m u:$(id -un):rw $device (raw packets need CAP_NET_RAW too)"
        fi
    done
}

check_programs() {
    local doctor=build/app/doctor/tagwire-doctor run=build/drivers/softcx/softcx-run line
    if [ ! -x "$doctor" ] || [ ! -x "$run" ]; then
        row note "Tagwire's programs" "not built" "./run build"
        return
    fi
    local output
    output=$( (timeout 60 "$doctor" devices
        timeout 60 "$run" --devices 2 --wire pair "$doctor" exchange) 2>/dev/null)
    if ! printf '%s' "$output" | grep -q $'^[a-z]*\ttagged message\tcrosses'; then
        printf '%s' "$output" | grep -q '^missing' ||
            row missing "self-test" "it ended early" "$run --devices 2 --wire pair $doctor exchange"
    fi
    while IFS= read -r line; do
        [ -n "$line" ] || continue
        rows+=("$line")
        case "$line" in missing*) bad=$((bad + 1)) ;; esac
    done <<<"$output"
}

print_rows() {
    local line status item found remedy item_width=4 found_width=5
    for line in "${rows[@]}"; do
        IFS=$'\t' read -r status item found remedy <<<"$line"
        [ ${#item} -le $item_width ] || item_width=${#item}
        [ ${#found} -le $found_width ] || found_width=${#found}
    done
    [ "$found_width" -le 60 ] || found_width=60
    for line in "${rows[@]}"; do
        IFS=$'\t' read -r status item found remedy <<<"$line"
        if [ -n "$remedy" ]; then
            printf '%-8s %-*s  %-*s  -> %s\n' "$status" "$item_width" "$item" "$found_width" "$found" "$remedy"
        else
            printf '%-8s %-*s  %s\n' "$status" "$item_width" "$item" "$found"
        fi
    done
}

check_system
check_build
check_tests
check_run_time
check_hardware
check_programs
print_rows
echo
if [ "$bad" -eq 0 ]; then
    echo "Everything essential is here. A note works without it."
    exit 0
fi
echo "$bad missing: each line says what to do after '->'."
exit 1
