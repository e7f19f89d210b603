#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fabtests.sh between two network namespaces, made here and removed again: frames go over one veth,
# the programs' TCP over another. As root.
#   test/fi/fabtests_netns.sh SOURCE [PATTERN]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '3,5s/^# \{0,1\}//p' "$0"; exit 2; }
a=fi-a-$$ b=fi-b-$$
cleanup() {
    ip netns del "$a" 2>/dev/null || true
    ip netns del "$b" 2>/dev/null || true
}
trap cleanup EXIT
ip netns add "$a"
ip netns add "$b"
ip link add tw0 mtu 9000 netns "$a" type veth peer name tw1 mtu 9000 netns "$b"
ip link add meet0 netns "$a" type veth peer name meet1 netns "$b"
for link in "$a lo" "$a tw0" "$a meet0" "$b lo" "$b tw1" "$b meet1"; do
    # shellcheck disable=SC2086
    ip -n ${link% *} link set ${link#* } up
done
ip -n "$a" address add 10.99.0.1/24 dev meet0
ip -n "$b" address add 10.99.0.2/24 dev meet1
# The kernels must not answer for the programs: a program has the address of the other veth, too.
for end in "$a tw0" "$b tw1"; do
    ip netns exec "${end% *}" sysctl -q "net.ipv4.conf.${end#* }.arp_ignore=1"
    ip netns exec "${end% *}" sysctl -q "net.ipv6.conf.${end#* }.disable_ipv6=1" || true
done
FABTESTS_NETNS=$a,$b TAGWIRE_WIRE_A=netdev:tw0 TAGWIRE_WIRE_B=netdev:tw1 bash "$here/fabtests.sh" "$@"
