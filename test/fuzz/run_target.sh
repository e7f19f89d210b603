#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs one fuzzer for TAGWIRE_FUZZ_SECONDS (20). What it finds stays beside it, for the
# next run; the corpus of the tree is only read.
# usage: run_target.sh FUZZER CORPUS
set -eu
fuzzer=$1 corpus=$2
found=$fuzzer-corpus
crashes=$fuzzer-crashes
mkdir -p "$found" "$crashes"
rm -f "$crashes"/*
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
seconds=${TAGWIRE_FUZZ_SECONDS:-20}
if ! "$fuzzer" -max_total_time="$seconds" -max_len=2048 -timeout=20 -rss_limit_mb=2048 -use_value_profile=1 \
    -print_final_stats=1 -artifact_prefix="$crashes/" "$found" "$corpus" >"$fuzzer.log" 2>&1; then
    grep -vE '^#[0-9]+[[:space:]]+(NEW|REDUCE|pulse|RELOAD)' "$fuzzer.log" | tail -n 60
    echo "FAILED: run again what failed: $fuzzer $crashes/*"
    exit 1
fi
grep -E '^stat::number_of_executed_units|^stat::average_exec_per_sec' "$fuzzer.log"
