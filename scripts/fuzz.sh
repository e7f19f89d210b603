# shellcheck shell=bash
# The fuzzers of test/fuzz; sourced by scripts/test.sh.

# run_fuzzers SECONDS: builds them with clang in build-fuzz, and runs each for so long.
run_fuzzers() {
    local launcher=
    tagwire_packages+=(clang libclang-rt-dev)
    command -v ccache >/dev/null && launcher='ccache '
    CC="${launcher}clang" CXX="${launcher}clang++" prepare build-fuzz fuzzers -- \
        -Dfuzzers=true -Dbenchmarks=false -Db_sanitize=address,undefined -Db_lundef=false
    TAGWIRE_FUZZ_SECONDS=$1 meson test -C build-fuzz --no-rebuild --suite fuzz --print-errorlogs
}
