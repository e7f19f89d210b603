#!/usr/bin/env bash
# UCX's public headers of another release than the installed one: an include folder from a source tree.
# lib/ucp and its tests are then built against them with   CPPFLAGS=-I$PWD/DIR meson setup BUILD_DIR
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: scripts/ucx-headers.sh SOURCE_TREE DIR" >&2; exit 2; }
source=$1 dir=$2
[ -e "$source/src/ucp/api/ucp_version.h.in" ] || { echo "ucx-headers: $source is not a source tree of UCX" >&2; exit 2; }

part() { sed -n "s/^define(\[ucx_ver_$1\], *\([0-9]*\)).*/\1/p" "$source/configure.ac"; }
mkdir -p "$dir/ucp/api" "$dir"/ucs/{config,memory,sys,type}
cp "$source"/src/ucp/api/*.h "$dir/ucp/api"
for header in config/types memory/memory_type sys/compiler_def type/cpu_set type/status type/thread_mode; do
    cp "$source/src/ucs/$header.h" "$dir/ucs/$header.h"
done
sed "s/@MAJOR_VERSION@/$(part major)/g; s/@MINOR_VERSION@/$(part minor)/g" \
    "$source/src/ucp/api/ucp_version.h.in" >"$dir/ucp/api/ucp_version.h"
echo "UCX $(part major).$(part minor): $dir"
