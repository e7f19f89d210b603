#!/usr/bin/env bash
# Proves that a bare Debian reaches a running demo: makes a minimal chroot with
# debootstrap, clones this repository inside it, and runs ./run demo there.
#   scripts/chroot.sh [--debian 12|13] [--keep] [--dir DIR] [COMMAND...]     (as root; default: 12, ./run demo)
# The packages come from wherever this machine's own apt takes them. What is not
# committed is not in the clone.
set -euo pipefail

repository=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
suite=bookworm
keep=
root=

say() { printf 'chroot: %s\n' "$*" >&2; }
die() { printf 'chroot: error: %s\n' "$*" >&2; exit 1; }

while [ $# -gt 0 ]; do
    case "$1" in
        --debian)
            case "${2:-}" in
                12) suite=bookworm ;;
                13) suite=trixie ;;
                *) die "--debian takes 12 or 13" ;;
            esac
            shift
            ;;
        --keep) keep=1 ;;
        --dir) root=${2:?--dir needs a folder}; shift ;;
        --) shift; break ;;
        -*) die "unknown option $1" ;;
        *) break ;;
    esac
    shift
done
[ $# -gt 0 ] || set -- ./run demo

[ "$(id -u)" = 0 ] || die "debootstrap and chroot need root"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"

# "deb URL RELEASE COMPONENT" for each Debian source of this machine, of the wanted release.
own=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
sources() {
    apt-get indextargets --format '$(ORIGIN)|deb $(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        sed -n "s/^Debian|\(deb [^ ]* \)$own\([^ ]* .*\)/\1$suite\2/p" | sort -u
}
list=$(sources)
mirror=$(printf '%s\n' "$list" | awk -v s="$suite" '$3 == s && $4 == "main" { print $2; exit }')
[ -n "$mirror" ] || die "this machine's apt has no Debian source with its lists: apt-get update"

if [ -z "$root" ]; then
    root=$(mktemp -d "${TMPDIR:-/var/tmp}/tagwire-chroot.XXXXXX")
else
    mkdir -p "$root"
fi
# The mounts live in a namespace of their own and are gone before this removes anything.
cleanup() {
    if [ -n "$keep" ]; then
        say "kept: $root"
    else
        rm -rf --one-file-system "$root"
    fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if [ ! -e "$root/etc/debian_version" ]; then
    say "debootstrap --variant=minbase $suite"
    log=$(mktemp)
    debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$log" 2>&1 ||
        { tail -n 20 "$log" >&2; die "debootstrap failed (log: $log)"; }
    rm -f "$log"
fi
printf '%s\n' "$list" >"$root/etc/apt/sources.list"
# How this machine's apt reaches the network, and name resolution.
apt-config dump | grep -iE '^Acquire::(http|https)::(proxy|CaInfo)' >"$root/etc/apt/apt.conf.d/90network" || true
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
mkdir -p "$root/src/origin"
headers=
if [ -n "${TAGWIRE_DPDK_HEADERS:-}" ]; then
    headers=/src/dpdk-headers
    mkdir -p "$root$headers"
    cp "$TAGWIRE_DPDK_HEADERS"/*.h "$root$headers/"
fi

export root repository headers
export -n TAGWIRE_CACHE XDG_CACHE_HOME
say "installing git, then: git clone, $*"
unshare --mount --pid --fork bash -euo pipefail -c '
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/tmp"
    mount --bind -o ro "$repository" "$root/src/origin"
    exec chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
        ${headers:+TAGWIRE_DPDK_HEADERS=$headers} \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        bash -euo pipefail -c '\''
            export DEBIAN_FRONTEND=noninteractive
            { apt-get -q update && apt-get -q -y --no-install-recommends install git; } >/root/apt.log 2>&1 ||
                { tail -n 20 /root/apt.log >&2; exit 1; }
            rm -rf /src/tagwire
            git -c safe.directory="*" clone -q /src/origin /src/tagwire
            cd /src/tagwire
            git log --oneline -1
            exec "$@"
        '\'' chroot "$@"
' chroot "$@" && status=0 || status=$?
say "exit status $status"
exit "$status"
