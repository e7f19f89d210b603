# shellcheck shell=bash
# Set-up of a bare Debian: packages, DPDK driver headers, hugepages, Meson.
# Sourced by ./run. Everything here is idempotent and quick when nothing is to do.

tagwire_packages=(
    g++ meson ninja-build pkg-config dpkg-dev xz-utils ca-certificates
    libdpdk-dev dpdk dpdk-dev
    libibverbs-dev ibverbs-providers ibverbs-utils perftest
    libgtest-dev libgmock-dev libbenchmark-dev
    libfabric-dev libucx-dev ucx-utils libfmt-dev nlohmann-json3-dev libcli11-dev libssl-dev
    python3 python3-pyverbs valgrind procps iproute2 iputils-ping tcpdump
)

say() { printf 'tagwire: %s\n' "$*" >&2; }
die() { printf 'tagwire: error: %s\n' "$*" >&2; exit 1; }

missing_packages() {
    # dpkg-query fails when it does not know one of them, and tells of the others all the same.
    { dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${tagwire_packages[@]}" 2>/dev/null || true; } |
        awk -v wanted="${tagwire_packages[*]}" '
            $2 == "installed" { have[$1] = 1 }
            END { n = split(wanted, names, " "); for (i = 1; i <= n; ++i) if (!(names[i] in have)) print names[i] }'
}

install_packages() {
    local missing
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    # shellcheck disable=SC2086
    set -- $missing
    command -v apt-get >/dev/null || die "this is not Debian: install by hand what ./run doctor lists"
    [ "$(id -u)" = 0 ] || die "missing packages: $* (run as root once, or: sudo apt-get install $*)"
    say "installing $# Debian packages: $*"
    local log
    log=$(mktemp)
    if ! { apt-get -q update && DEBIAN_FRONTEND=noninteractive \
           apt-get -q -y --no-install-recommends install "$@"; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "apt-get could not install: $* (full log: $log)"
    fi
    rm -f "$log"
}

cache_dir() { echo "${TAGWIRE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tagwire}"; }

# Debian 12's libdpdk-dev has no driver SDK. The few headers that an out-of-tree
# driver needs come from the source package of exactly the installed version;
# apt checks its signature. Where no source package can be had (a mirror without
# sources), TAGWIRE_DPDK_HEADERS names a folder with these headers, out of a DPDK
# source tree of the same release series: they do not change within one.
driver_headers=(ethdev_driver.h ethdev_vdev.h dev_driver.h bus_vdev_driver.h)

driver_headers_dir() {
    local inc
    if [ -n "${TAGWIRE_DPDK_HEADERS:-}" ]; then
        readlink -f "$TAGWIRE_DPDK_HEADERS"
        return
    fi
    inc=$(pkg-config --variable=includedir libdpdk)
    if [ -e "$inc/ethdev_driver.h" ] || [ -e "$inc/dpdk/ethdev_driver.h" ]; then
        echo ""
        return
    fi
    echo "$(cache_dir)/dpdk-headers-$(dpkg-query -W -f '${Version}' libdpdk-dev)"
}

missing_driver_headers() {
    local h list=
    for h in "${driver_headers[@]}"; do
        [ -e "$1/$h" ] || list+=" $h"
    done
    echo "${list# }"
}

# fetch_source PACKAGE VERSION FOLDER: Debian's source package into FOLDER/src, a log in
# FOLDER/log. The source list is derived from the machine's own one, in a state of its own: the
# machine's configuration stays as it is.
fetch_source() {
    local package=$1 version=$2 tmp=$3 f
    mkdir -p "$tmp/etc/parts" "$tmp/state/lists/partial" "$tmp/src"
    : >"$tmp/etc/sources.list"
    for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$f" ] && sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$f" >>"$tmp/etc/sources.list"
    done
    for f in /etc/apt/sources.list.d/*.sources; do
        [ -f "$f" ] && sed 's/^Types:.*/Types: deb-src/' "$f" >"$tmp/etc/parts/$(basename "$f")"
    done
    local opts=(-o "Dir::Etc::sourcelist=$tmp/etc/sources.list" -o "Dir::Etc::sourceparts=$tmp/etc/parts"
                -o "Dir::State::lists=$tmp/state/lists" -o APT::Sandbox::User=root -q)
    # Lists without sources (third-party ones) may fail; what counts is the download below.
    apt-get "${opts[@]}" update >"$tmp/log" 2>&1 || true
    if ! (cd "$tmp/src" && apt-get "${opts[@]}" source --download-only "$package=$version") >>"$tmp/log" 2>&1; then
        tail -n 10 "$tmp/log" >&2
        return 1
    fi
}

fetch_driver_headers() {
    local dir version h
    dir=$(driver_headers_dir)
    [ -n "$dir" ] || return 0
    h=$(missing_driver_headers "$dir")
    [ -n "$h" ] || return 0
    [ -z "${TAGWIRE_DPDK_HEADERS:-}" ] || die "TAGWIRE_DPDK_HEADERS=$TAGWIRE_DPDK_HEADERS lacks $h"
    version=$(dpkg-query -W -f '${Version}' libdpdk-dev)
    say "taking the DPDK driver headers from Debian's source package dpdk=$version"
    local tmp
    tmp=$(mktemp -d)
    if ! fetch_source dpdk "$version" "$tmp"; then
        die "cannot download the source package dpdk=$version (log: $tmp/log); without it, set TAGWIRE_DPDK_HEADERS to a folder with ${driver_headers[*]} of that DPDK series"
    fi
    mkdir -p "$dir"
    tar -xf "$tmp"/src/dpdk_*.orig.tar.* -C "$tmp/src"
    local found
    for h in "${driver_headers[@]}"; do
        found=$(find "$tmp/src" -name "$h" | head -n 1)
        [ -n "$found" ] || die "the source package dpdk=$version has no $h"
        cp "$found" "$dir/"
    done
    rm -rf "$tmp"
}

# configure DIR [MESON OPTIONS...]: a no-op when DIR is configured already.
configure() {
    local dir=$1
    shift
    [ -e "$dir/build.ninja" ] && return 0
    say "configuring $dir"
    local log
    log=$(mktemp)
    if ! meson setup "$dir" -Dwerror=true -Ddpdk_driver_headers="$(driver_headers_dir)" "$@" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        die "meson setup failed (log: $log)"
    fi
    rm -f "$log"
}

# build DIR [TARGETS...]
build() {
    local dir=$1 log start=$SECONDS
    shift
    log=$(mktemp)
    if ! ninja -C "$dir" -n "$@" 2>/dev/null | grep -q 'no work to do'; then
        say "building $dir"
    fi
    if ! ninja -j "$(nproc)" -C "$dir" "$@" >"$log" 2>&1; then
        grep -E 'error|FAILED|undefined' -A 5 "$log" | head -n 60 >&2
        die "the build failed (log: $log)"
    fi
    [ $((SECONDS - start)) -lt 5 ] || say "built in $((SECONDS - start)) s"
    rm -f "$log"
}
