# shellcheck shell=bash
# ./run test; sourced by ./run, which has set-up and build.

test_usage() {
    cat <<'EOF'
usage: ./run test [OPTIONS] [-- MESON TEST ARGUMENTS]

Builds, and runs every test: unit (pure, fast), sim (simulated network and time),
e2e (processes on the software device). Exit status 0: all passed.

  --suite NAME   only this suite: unit, sim or e2e (may be given again)
  --filter TEXT  only tests whose name contains TEXT
  --slow         the long forms too (more seeds, more operations, larger files)
  --asan         an AddressSanitizer and UndefinedBehaviorSanitizer build in build-asan
  --tsan         a ThreadSanitizer build in build-tsan
  --fuzz [SEC]   the fuzzers alone, each for SEC seconds (20); built with clang in build-fuzz.
                 Without options they run too, after the tests
  --debian N     all of this in a chroot of Debian 12 or 13, from bare (root, debootstrap);
                 the other options are passed on
  --hw DEV,DEV   the driver's port tests on two connected ports of a real card
                 (test/hw/README.md); DEV as ibv_devices lists it
  --list         the names of the tests
EOF
}

# --debian first: the rest is for the ./run test inside.
inside=()
release=
all=("$@")
for ((i = 0; i < ${#all[@]}; ++i)); do
    if [ "${all[i]}" = --debian ]; then
        release=${all[i + 1]:-}
        [ -n "$release" ] || die "--debian needs a release: 12 or 13"
        ((++i))
    else
        inside+=("${all[i]}")
    fi
done
[ -z "$release" ] || exec bash scripts/chroot.sh --debian "$release" ./run test ${inside[@]+"${inside[@]}"}

dir=build
filter=
slow=
list=
hardware=
fuzz=20 # seconds; not with a choice of tests
only_fuzz=
options=()
meson_arguments=()
while [ $# -gt 0 ]; do
    case "$1" in
        --fuzz | --slow) ;;
        *) fuzz= ;;
    esac
    case "$1" in
        -h | --help) test_usage; exit 0 ;;
        --suite) meson_arguments+=(--suite "${2:?--suite needs a name}"); shift ;;
        --filter) filter=${2:?--filter needs a text}; shift ;;
        --slow) slow=1 ;;
        --list) list=1 ;;
        --hw) hardware=${2:?--hw needs two devices, such as mlx5_0,mlx5_1}; shift ;;
        --fuzz)
            only_fuzz=1
            if [[ ${2:-} =~ ^[1-9][0-9]*$ ]]; then
                fuzz=$2
                shift
            fi
            ;;
        --asan) dir=build-asan; options=(-Db_sanitize=address,undefined -Db_lundef=false) ;;
        --tsan) dir=build-tsan; options=(-Db_sanitize=thread -Db_lundef=false) ;;
        --) shift; meson_arguments+=("$@"); break ;;
        *) test_usage >&2; die "unknown option for test: $1" ;;
    esac
    shift
done

# shellcheck source=scripts/fuzz.sh
. scripts/fuzz.sh
if [ -n "$only_fuzz" ]; then
    [ -n "$fuzz" ] || die "--fuzz goes with no other option"
    run_fuzzers "$fuzz"
    exit
fi

# Programs of others that are run over the libraries; who cannot install them skips these tests.
[ "$(id -u)" != 0 ] || tagwire_packages+=(libfabric-bin openmpi-bin libopenmpi-dev)
targets=()
[ -z "$hardware" ] || targets=(test/hw/mlx5raw_hw_test)
prepare "$dir" ${targets[@]+"${targets[@]}"} -- ${options[@]+"${options[@]}"}

if [ -n "$hardware" ]; then
    TAGWIRE_HW_DEVICES=$hardware exec "$dir/test/hw/mlx5raw_hw_test" ${meson_arguments[@]+"${meson_arguments[@]}"}
fi

names() { meson test -C "$dir" --no-rebuild --list "${meson_arguments[@]}" 2>/dev/null | sed -n 's/^tagwire:[^ ]* \/ //p'; }

if [ -n "$list" ]; then
    meson test -C "$dir" --no-rebuild --list ${meson_arguments[@]+"${meson_arguments[@]}"}
    exit
fi
if [ -n "$filter" ]; then
    mapfile -t chosen < <(names | grep -F -- "$filter")
    [ ${#chosen[@]} -gt 0 ] || die "no test has '$filter' in its name: ./run test --list"
    meson_arguments+=("${chosen[@]}")
fi
[ -z "$slow" ] || export TAGWIRE_TEST_SLOW=1
case "$dir" in
    build-asan)
        # Programs of others keep memory until the end of the process. Tests that have it all
        # to themselves turn this on (mlx5raw-ports); others count their objects.
        export ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:${ASAN_OPTIONS:-}"
        export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}"
        meson_arguments+=(--timeout-multiplier 4)
        ;;
    build-tsan)
        export TSAN_OPTIONS="halt_on_error=1:${TSAN_OPTIONS:-}"
        meson_arguments+=(--timeout-multiplier 4)
        ;;
esac

status=0
meson test -C "$dir" --no-rebuild --print-errorlogs ${meson_arguments[@]+"${meson_arguments[@]}"} || status=$?
logs=("$dir/meson-logs/testlog.json")
if [ -n "$fuzz" ]; then
    run_fuzzers "$fuzz" || status=$?
    logs+=(build-fuzz/meson-logs/testlog.json)
fi
# One line in a fixed form, whatever Meson's version prints.
python3 - "${logs[@]}" <<'EOF' || status=1
import json, sys
results = [json.loads(line)["result"] for log in sys.argv[1:] for line in open(log)]
good = sum(r in ("OK", "EXPECTEDFAIL") for r in results)
skipped = results.count("SKIP")
print(f"{good} passed, {len(results) - good - skipped} failed, {skipped} skipped")
sys.exit(0 if good else 1)
EOF
exit "$status"
