#!/usr/bin/env bash
# UCX's own gtest, the parts that use the public API, on Tagwire's libucp.so.0 (libucs, libuct, libucm stay the system's).
set -euo pipefail

usage() {
    cat >&2 <<'END'
usage: scripts/ucx-gtest.sh [--blocking] [--keep DIR] [--filter FILTER] SOURCE_TREE [BUILD_DIR]

SOURCE_TREE  UCX's sources of the installed version (git clone https://github.com/openucx/ucx, its tag v1.13.1 with
             Debian 12); they are only read
BUILD_DIR    where Tagwire is built (default: build)
--blocking   SOURCE_TREE is that of UCX 1.4 (tag v1.4.0), the last whose tests call the blocking functions: its rma, atomic
             and fence tests, with that release's headers and test framework (its libucs is compiled into them)
--keep       build in DIR and leave it there; the next run compiles only what is missing
--filter     of gtest, instead of all of the public parts

Cases that look into UCX's structures cannot run on another library. They stand in
test/ucp/ucx-gtest-expected.txt with what they look at, are left out, and count as failed. The exit status is 0
when nothing else failed and at least 95 of 100 cases pass.
END
    exit 2
}

keep= filter= blocking=
while [ $# -gt 0 ]; do
    case $1 in
        --blocking) blocking=yes; shift ;;
        --keep) keep=${2:?}; shift 2 ;;
        --filter) filter=${2:?}; shift 2 ;;
        -*) usage ;;
        *) break ;;
    esac
done
[ $# -ge 1 ] && [ $# -le 2 ] || usage
source=$(readlink -f "$1")
here=$(readlink -f "$(dirname "$0")/..")
build=$(readlink -f "${2:-$here/build}")
expected=$here/test/ucp/ucx-gtest-expected.txt
[ -d "$source/test/gtest/ucp" ] || { echo "ucx-gtest: $source is not a source tree of UCX" >&2; exit 2; }
[ -e "$build/lib/ucp/libucp.so.0" ] || { echo "ucx-gtest: $build/lib/ucp/libucp.so.0 is not built" >&2; exit 2; }

if [ -n "$keep" ]; then
    mkdir -p "$keep"
    work=$(readlink -f "$keep")
else
    work=$(mktemp -d /var/tmp/ucx-gtest.XXXXXX)
    trap 'rm -rf "$work"' EXIT
fi

# What UCX's configure would find out, as far as the tests and the headers ask.
[ -e "$work/config.h" ] || cat >"$work/config.h" <<'END'
#define UCS_MAX_LOG_LEVEL UCS_LOG_LEVEL_DEBUG
#define ENABLE_PARAMS_CHECK 1
#define ENABLE_MT 1
#define ENABLE_ASSERT 1
#define ENABLE_DEBUG_DATA 0
#define HAVE_ALLOCA_H 1
#define HAVE_MALLOC_H 1
#define HAVE_CPU_SET_T 1
#define HAVE_SCHED_SETAFFINITY 1
#define HAVE_SCHED_GETAFFINITY 1
#define HAVE_LINUX_FUTEX_H 1
#define HAVE_HW_TIMER 1
#define HAVE_POSIX_MEMALIGN 1
#define HAVE_SIGHANDLER_T 1
#define HAVE___SIGHANDLER_T 1
#define HAVE_DECL_F_SETOWN_EX 1
#define HAVE___CLEAR_CACHE 1
#define UCT_TCP_EP_KEEPALIVE 1
#define HAVE_ATTRIBUTE_NOOPTIMIZE 1
#define UCM_BISTRO_HOOKS 1
#define UCX_MODULE_SUBDIR "ucx"
#define UCX_CONFIG_DIR "/etc/ucx"
#define UCX_CONFIG_FILE_NAME "ucx.conf"
#define uct_MODULES ""
END

installed_release() {
    framework=$source/test/gtest/common/googletest
    sources=("$framework"/gtest{,-death-test,-filepath,-matchers,-port,-printers,-test-part,-typed-test}.cc)
    sources+=("$source"/test/gtest/common/{main,mem_buffer,test,test_helpers,test_watchdog}.cc)
    sources+=("$source"/test/gtest/ucp/{ucp_test,ucp_datatype,test_ucp_tag,test_ucp_memheap}.cc)
    for part in tag_match tag_probe tag_cancel tag_xfer request atomic fence rma wakeup stream am; do
        sources+=("$source/test/gtest/ucp/test_ucp_$part.cc")
    done

    cxx="${CXX:-g++} -O1 -g0 -std=gnu++14 -w -DHAVE_CONFIG_H -DUCP_TEST -I$work -I$source/src -I$source/test \
-I$source/test/gtest -I$framework"
    {
        objects=
        for file in "${sources[@]}"; do
            object=$(basename "$file" .cc).o
            objects+=" $object"
            shim=
            [[ $file == */googletest/* ]] || shim="-include $here/test/ucp/ucx_gtest_shim.h"
            printf '%s: %s %s\n\t%s %s -c -o $@ %s\n' "$object" "$file" "${shim#-include }" "$cxx" "$shim" "$file"
        done
        printf 'gtest:%s\n\tg++ -o $@ $^ -L%s -l:libucp.so.0 -l:libucs.so.0 -l:libuct.so.0 -l:libucm.so.0 -lpthread -ldl\n' \
            "$objects" "$build/lib/ucp"
    } >"$rules"
}

release_1_4() {
    local gtest=$source/test/gtest
    mkdir -p "$work/ucp/api"
    sed 's/@MAJOR_VERSION@/1/g; s/@MINOR_VERSION@/4/g' "$source/src/ucp/api/ucp_version.h.in" >"$work/ucp/api/ucp_version.h"
    mapfile -t sources < <(find "$source/src/ucs" -name '*.c' ! -path '*/aarch64/*' ! -path '*/ppc64/*' \
        ! -name 'stats_*.c' ! -name client_server.c)
    sources+=("$here/test/ucp/ucx14_gtest_ucm.c" "$gtest"/common/{gtest-all,main,test,test_helpers}.cc)
    sources+=("$gtest"/ucp/{ucp_test,test_ucp_memheap,test_ucp_rma,test_ucp_atomic,test_ucp_fence}.cc)
    local common="-O1 -g0 -w -D_GNU_SOURCE -DHAVE_CONFIG_H -DCPU_FLAGS= -I$work -I$source/src -I$source/test -I$gtest"
    local objects=
    {
        for file in "${sources[@]}"; do
            local object
            object=$(basename "$file").o
            objects+=" $object"
            case $file in
                *.c) compile="${CC:-gcc} -std=gnu99" ;;
                *) compile="${CXX:-g++} -std=gnu++98" ;;
            esac
            printf '%s: %s\n\t%s %s -c -o $@ %s\n' "$object" "$file" "$compile" "$common" "$file"
        done
        printf 'gtest:%s\n\tg++ -o $@ $^ -L%s -l:libucp.so.0 -lpthread -ldl -lrt\n' "$objects" "$build/lib/ucp"
    } >"$rules"
}

rules=$work/Makefile
if [ -n "$blocking" ]; then
    release_1_4
else
    installed_release
fi
make -C "$work" -f "$rules" -j"$(nproc)" --output-sync=target gtest --no-print-directory

# Cases are instantiated once for each of UCX's transports; here they are all the same one.
: "${filter:=tcp/*:all/*:mm_tcp/*${blocking:+:self/*}}"
inside=$(awk '$1 == "inside" { print $2 }' "$expected" | paste -sd:)
export TAGWIRE_WIRE=switch:ucx-gtest-$$ UCX_HANDLE_ERRORS=bt UCX_LOG_LEVEL=warn
runner=$build/lib/ucp/tagwire-ucx-run
"$runner" "$work/gtest" --gtest_list_tests --gtest_filter="$filter" 2>/dev/null |
    awk '/^[a-z]/ { suite = $1; next } /^ / { print suite $1 }' >"$work/cases"
# A case that UCX's watchdog ends, ends the run: the result says which.
"$runner" "$work/gtest" --gtest_filter="$filter-$inside" >"$work/log" 2>&1 || true
"$here/test/ucp/ucx_gtest_result.py" "$work/log" "$work/cases" "$expected"
