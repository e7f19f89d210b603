#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs into a folder of its own, and uses what is there as somebody else would: through
# pkg-config, softcx-run, the plugins and the manual page. Nothing comes from the build tree.
# usage: install_test.sh MESON BUILD_DIR SOURCE_FOLDER PREFIX
set -eu
meson=$1 build=$2 sources=$3 prefix=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

check() {
    name=$1 pattern=$2
    shift 2
    if timeout 120 "$@" >"$folder/output" 2>&1 && grep -qE -- "$pattern" "$folder/output"; then
        echo "ok: $name"
    else
        echo "FAILED: $name, looking for: $pattern"
        sed 's/^/    /' "$folder/output"
        failures=$((failures + 1))
    fi
}

DESTDIR=$folder "$meson" install -C "$build" --no-rebuild --quiet
root=$folder$prefix
PKG_CONFIG_PATH=$(dirname "$(find "$root" -name softcx.pc)")
export PKG_CONFIG_PATH
# As if it had been configured for that folder.
sed -i "s|^prefix=.*|prefix=$root|" "$PKG_CONFIG_PATH"/*.pc
libdir=$(pkg-config --variable=libdir softcx)

# A program that knows nothing of softcx runs under softcx-run, in each way to run the device.
cc -Wall -Werror -o "$folder/stock" "$sources/probe.c" -libverbs
runner=$(pkg-config --variable=runner softcx)
for mode in auto thread trap; do
    [ "$mode" != trap ] || [ "$(uname -m)" = x86_64 ] || continue
    check "a stock program, mode $mode" 'a frame went round' "$runner" --mode "$mode" "$folder/stock"
done

# One that links softcx needs no runner, and steps it.
# shellcheck disable=SC2046
cc -Wall -Werror -DWITH_SOFTCX -o "$folder/linked" "$sources/probe.c" $(pkg-config --cflags --libs softcx) -libverbs
check 'a program that links softcx' 'wire loopback, step mode' \
    env LD_LIBRARY_PATH="$libdir" "$folder/linked"

# The same through the C++ library's pkg-config file.
# shellcheck disable=SC2046
cc -Wall -Werror -o "$folder/tagged" "$sources/tagged.c" $(pkg-config --cflags --libs tagwire)
check 'a program that links libtagwire' '^192.0.2.1:4791/3$' \
    env LD_LIBRARY_PATH="$libdir" "$folder/tagged"
check 'libtagwire shows its C interface alone' '^0 others$' sh -c \
    "nm -D --defined-only '$libdir/libtagwire.so' | grep -v ' A ' | grep -vc ' tw_' | sed 's/\$/ others/'"

# EAL takes no plugin from below a folder that anybody may write to, such as /tmp.
private=$build/package-test
rm -rf "$private"
mkdir "$private"
cp "$libdir"/tagwire/*.so "$private"
if command -v dpdk-testpmd >/dev/null; then
    check 'testpmd with the installed driver and plugin' 'Driver name: net_mlx5raw' sh -c "
        printf 'show port info 0\nquit\n' |
        '$runner' --mode step dpdk-testpmd -l 0,1 --no-pci --no-huge -m 256 --no-shconf --no-telemetry \
            --file-prefix package$$ -d '$private/librte_softcx_step.so' -d '$private/librte_net_mlx5raw.so' \
            --vdev net_mlx5raw0,ibdev=mlx5_0 -- -i --no-mlockall --total-num-mbufs=4096"
fi
rm -rf "$private"

# Without DPDK, fmt and the rest: no pkg-config file is in sight.
check 'softcx alone can be configured' 'softcx_only *: true' env PKG_CONFIG_LIBDIR="$folder" PKG_CONFIG_PATH= \
    "$meson" setup "$folder/alone" "$sources/../.." -Dsoftcx_only=true

page=$(find "$root" -name 'softcx-run.1*')
check 'the manual page is there' 'softcx-run.1' echo "$page"
if command -v groff >/dev/null; then
    check 'the manual page has no error' '^0 warnings$' sh -c \
        "groff -man -Tutf8 -ww -z '$page' 2>&1 | wc -l | sed 's/ *//; s/\$/ warnings/'"
fi

[ $failures -eq 0 ] || { echo "$failures failed"; exit 1; }
