# shellcheck shell=bash
# For the benchmarks of two sides, sourced: two network namespaces joined by a veth pair (root only),
# and the heading of a table.
#
# make_veth: names them in $veth_a and $veth_b, with the devices vta (10.199.0.1) and vtb (10.199.0.2);
# false, with nothing left behind, where namespaces are not to be had. remove_veth: they go.
veth_a='' veth_b=''

make_veth() {
    [ "$(id -u)" = 0 ] || return 1
    ip netns add "bench-a-$$" 2>/dev/null || return 1
    veth_a=bench-a-$$ veth_b=bench-b-$$
    if ! { ip netns add "$veth_b" &&
           ip link add vta netns "$veth_a" type veth peer name vtb netns "$veth_b"; } 2>/dev/null; then
        remove_veth
        return 1
    fi
    local side name number=0
    for side in a b; do
        name=bench-$side-$$ number=$((number + 1))
        ip -n "$name" link set lo up
        ip -n "$name" link set "vt$side" up
        ip -n "$name" address add "10.199.0.$number/24" dev "vt$side"
    done
}

remove_veth() {
    local name
    for name in $veth_a $veth_b; do
        ip netns delete "$name" 2>/dev/null || true
    done
    veth_a='' veth_b=''
}

# speed_heading TITLE COLUMN: what bench/fi's programs print follows.
speed_heading() {
    printf '%s\n%-14s %12s %14s %12s   (load %s)\n' "$1" "$2" '8 B, us' '8 B, million/s' '1 MiB, MB/s' \
        "$(cut -d' ' -f1 /proc/loadavg)"
}
