# SPDX-License-Identifier: BSD-3-Clause
"""Forwarding, sizes and counters. Each scenario drives one testpmd and records what it
observes; what both drivers must do alike is also checked against what is right."""
import re

import frames
from rig import check

# What testpmd's io mode makes of a frame: nothing.
COUNT = 300
RSS_KEY = ("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b4"
           "77cb2da38030f20c6a42b73bbeac01fa")


def flat(queues):
    return [frame for queue in queues for frame in queue]


def same_key(pmd, fields="ip"):
    """Drivers have default keys of their own; with the same key they spread alike. (net_mlx5
    uses a new key from the next start on.)"""
    for role in ("out", "in"):
        pmd.reconfigure(role, f"port config {pmd.ports[role]} rss-hash-key ipv4 {RSS_KEY}",
                        f"port config all rss {fields}")


def record_stats(pmd, record, when):
    for role in ("out", "in"):
        for name, value in pmd.stats(role).items():
            record(f"{when}: {role} {name}", value)


def io(pmd, record):
    """Every kind and size of frame through both ports, with 1 or 4 queues each."""
    same_key(pmd)
    sent = frames.mixed(COUNT)
    pmd.send(sent)
    got = pmd.receive(len(sent))
    check(sorted(flat(got)) == sorted(sent), f"{len(flat(got))} of {len(sent)} frames as sent")
    for queue, some in enumerate(got):
        record(f"frames of queue {queue}", sorted(some))
    record_stats(pmd, record, "after")


def mac(pmd, record):
    """The mac engine writes the port's own and the peer's address."""
    sent = frames.mixed(COUNT)
    pmd.send(sent, mode="mac")
    got = flat(pmd.receive(len(sent)))
    check([frame[12:] for frame in got] == [frame[12:] for frame in sent], "frames after the addresses")
    check(all(a[:12] != b[:12] for a, b in zip(got, sent)), "the addresses are as they were")
    record("frames", got)


def macswap(pmd, record):
    sent = frames.mixed(COUNT)
    pmd.send(sent, mode="macswap")
    got = flat(pmd.receive(len(sent)))
    check(got == [f[6:12] + f[:6] + f[12:] for f in sent], "the addresses are not swapped")
    record("frames", got)


def jumbo(pmd, record):
    """Frames of up to 9,000 bytes in buffers of 2 KB: scatter in, several segments out."""
    for role in ("out", "in"):
        pmd.reconfigure(role, f"port config mtu {pmd.ports[role]} 9000",
                        f"port config {pmd.ports[role]} rx_offload scatter on",
                        f"port config {pmd.ports[role]} tx_offload multi_segs on")
    sent = [frames.udp4(size, host=i) for i, size in
            enumerate((64, 1514, 2047, 2048, 2049, 4096, 4097, 8191, 8999, 9000, 9014))]
    pmd.send(sent)
    got = flat(pmd.receive(len(sent)))
    check(got == sent, f"{len(got)} of {len(sent)} frames, as sent: {len(set(got) & set(sent))}")
    record("frames", got)
    pmd.send(sent)
    seen = pmd.receive_descriptions(len(sent))
    record("segments", [(packet["length"], packet["nb_segs"]) for packet in seen])
    record_stats(pmd, record, "after")


def stats(pmd, record):
    """Basic and extended statistics, and that clearing them clears them."""
    same_key(pmd)
    sent = frames.mixed(COUNT)
    pmd.send(sent)
    pmd.receive(len(sent))
    octets = sum(map(len, sent))
    for role, direction in (("out", "TX"), ("in", "RX")):
        basic = pmd.stats(role)
        check(basic[f"{direction}-packets"] == COUNT, f"{role}: {basic}")
        check(basic[f"{direction}-bytes"] == octets, f"{role}: {basic}")
    record_stats(pmd, record, "after")
    for role in ("out", "in"):
        extended = pmd.xstats(role)
        for name, value in extended.items():
            record(f"{role} xstat {name}", value)
    pmd.command("clear port stats all")
    pmd.command("clear port xstats all")
    record_stats(pmd, record, "cleared")
    for role in ("out", "in"):
        left = {name: value for name, value in pmd.xstats(role).items()
                if value != 0 and "_path_" not in name}  # the path in use is no counter
        record(f"{role} xstats left after clear", left)


def missed(pmd, record):
    """More frames than the ring has room for: the counters tell of those that are lost."""
    sent = [frames.udp4(100, host=i) for i in range(1500)]
    pmd.send(sent)
    got = flat(pmd.receive(1024))
    check(got == sent[:len(got)], "the first frames are not those that came")
    record("frames that came", len(got))
    basic = pmd.stats("in")
    record("packets, missed and without buffer together",
           basic["RX-packets"] + basic["RX-missed"] + basic["RX-nombuf"])
    record_stats(pmd, record, "after")


def info(pmd, record):
    """What the ports say of themselves."""
    text = pmd.command(f"show port info {pmd.ports['in']}")
    for line in text.splitlines():
        match = re.match(r"^\s*([A-Z][^:*]*?):\s+(\S.*?)\s*$", line)
        if match and "testpmd" not in line:
            record(f"info {match[1]}", match[2])
    types = re.search(r"Supported RSS offload flow types:(.*?)(?:Minimum|$)", text, re.S)
    record("info RSS types", sorted(types[1].split()) if types else [])
    for direction in ("rx", "tx"):
        text = pmd.command(f"show port {pmd.ports['in']} {direction}_offload capabilities")
        for scope in ("Per Queue", "Per Port"):
            match = re.search(rf"{scope}\s*:(.*)", text)
            for name in match[1].split() if match else []:
                record(f"offload {direction} {scope.lower()} {name}", True)


def link(pmd, record):
    """The link as the port reports it; MTU of port and network device."""
    text = pmd.command(f"show port info {pmd.ports['in']}")
    record("link", re.search(r"Link status: (\S+)", text)[1])
    record("duplex", re.search(r"Link duplex: (\S+)", text)[1])
    record("speed", re.search(r"Link speed: (.*)", text)[1].strip())


SCENARIOS = {
    "io, 1 queue": (io, {"queues": 1}),
    "io, 4 queues": (io, {"queues": 4}),
    "mac": (mac, {}),
    "macswap": (macswap, {}),
    "9,000-byte frames": (jumbo, {}),
    "stats": (stats, {"queues": 2}),
    "missed frames": (missed, {}),
    "info": (info, {}),
    "link": (link, {}),
}
