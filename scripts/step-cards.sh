# shellcheck shell=bash
# Two software cards back to back in step mode, for the benchmarks that count instructions with
# callgrind. Sourced; `die` is the caller's.
#
# step_cards SCRIPT ARGS...: in a network namespace of its own, in which SCRIPT starts again; makes
# the veths that DPDK's driver wants as network devices, a folder $work that goes at the end.
step_cards() {
    local tool name
    for tool in valgrind ip unshare python3; do
        command -v $tool >/dev/null || die "$tool is not installed (apt-get install valgrind iproute2 util-linux python3)"
    done
    if [ -z "${TAGWIRE_BENCH_NAMESPACE:-}" ]; then
        unshare --net true 2>/dev/null || die "no network namespace can be made: run as root"
        TAGWIRE_BENCH_NAMESPACE=1 exec unshare --net bash "$@"
    fi
    ip link add sc0 type veth peer name sc0p || die "the kernel makes no veth"
    ip link add sc1 type veth peer name sc1p
    for name in sc0 sc0p sc1 sc1p; do ip link set "$name" up; done
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    export SOFTCX_NETDEV=sc0,sc1 SOFTCX_MODE=step
}
