#!/usr/bin/env bash
# rdma-core's own Python tests on softcx: a table of what passes and what a skip needs.
# usage: scripts/pyverbs-tests.sh [SOURCE] [MODULE...]
#
# SOURCE (or TAGWIRE_RDMA_CORE) is a tree of rdma-core of the installed version; its folder
# tests/ is used as it is. Without one, Debian's source package is downloaded into the cache, or
# with --no-download the result is 77 (skipped, to Meson). The result is 0 when nothing failed
# and each skip is in test/softcx/pyverbs-expected.txt.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh

/usr/bin/python3 -c 'import pyverbs.device' 2>/dev/null ||
    die "no pyverbs: install python3-pyverbs (as root: apt-get install python3-pyverbs)"
run=${TAGWIRE_BUILD:-build}/drivers/softcx/softcx-run
[ -x "$run" ] || die "$run is not built: ./run build"
version=$(dpkg-query -W -f '${Version}' python3-pyverbs)

download=1
[ "${1:-}" != --no-download ] || { download=0; shift; }
source=${1:-${TAGWIRE_RDMA_CORE:-}}
[ $# -eq 0 ] || shift
if [ -z "$source" ]; then
    [ $download = 1 ] || { say "skipped: TAGWIRE_RDMA_CORE names no source tree of rdma-core"; exit 77; }
    source=$(cache_dir)/rdma-core-$version
    if [ ! -e "$source/tests/run_tests.py" ]; then
        say "taking rdma-core's tests from Debian's source package rdma-core=$version"
        tmp=$(mktemp -d)
        fetch_source rdma-core "$version" "$tmp" ||
            die "cannot download rdma-core=$version (log: $tmp/log): give a source tree of it instead, as $0 SOURCE"
        mkdir -p "$source"
        tar -xf "$tmp"/src/rdma-core_*.orig.tar.* -C "$source" --strip-components=1
        rm -rf "$tmp"
    fi
fi
[ -e "$source/tests/run_tests.py" ] || die "$source is no source tree of rdma-core: it has no tests/run_tests.py"
say "rdma-core $version, tests of $source"
exec /usr/bin/python3 scripts/pyverbs-tests.py --softcx-run "$run" --source "$(readlink -f "$source")" \
    --expected test/softcx/pyverbs-expected.txt "$@"
