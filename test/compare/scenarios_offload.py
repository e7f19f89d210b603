# SPDX-License-Identifier: BSD-3-Clause
"""What the card does to frames: checksums, segmentation, VLAN tags, packet types."""
import re
import struct

import frames
from rig import check
from scenarios_basic import flat, record_stats, same_key


def check_checksums(pmd):
    pmd.reconfigure("in", *(f"port config {pmd.ports['in']} rx_offload {layer}_cksum on"
                            for layer in ("ipv4", "udp", "tcp")))


def describe(pmd, named, expected):
    """{name: what the second port says of the frame}: told apart by their lengths."""
    names = {str(len(frame)): name for name, frame in named.items()}
    check(len(names) == len(named), "frames of the same length")
    pmd.send(list(named.values()))
    start = len(pmd.log)
    seen = {names[packet["length"]]: packet for packet in pmd.receive_descriptions(expected)}
    check(len(seen) >= expected, f"{len(seen)} of {expected} packets are described:\n{pmd.log[start:]}")
    return {name: seen[name] for name in named if name in seen}


def descriptions(pmd, record):
    """Packet type, checksum flags, hash and queue of received packets, as the mbuf has them."""
    check_checksums(pmd)
    same_key(pmd)
    sent = [
        ("udp4", frames.udp4(80)), ("tcp4", frames.tcp4(81)), ("udp6", frames.udp6(82)),
        ("tcp6", frames.tcp6(83)), ("fragment", frames.fragment4(84)), ("no ip", frames.other(85)),
        ("udp4 vlan", frames.udp4(86, vlan=100)), ("tcp6 vlan", frames.tcp6(87, vlan=4095)),
        ("ip wrong", frames.udp4(88, ip_right=False)), ("udp wrong", frames.udp4(89, right=False)),
        ("tcp wrong", frames.tcp4(92, right=False)), ("udp6 wrong", frames.udp6(93, right=False)),
        ("broadcast", frames.udp4(94, destination=frames.BROADCAST)),
        ("multicast", frames.udp4(95, destination=bytes.fromhex("01005e000001"))),
    ]
    seen = describe(pmd, dict(sent), len(sent))
    for name, packet in seen.items():
        for field in ("nb_segs", "hw ptype", "RSS hash", "Receive queue"):
            record(f"{name}: {field}", packet.get(field, "none"))
        for flag in ("IP_CKSUM", "L4_CKSUM"):
            match = re.search(rf"(?<!OUTER_)RX_{flag}_(\w+)", packet["flags"])
            record(f"{name}: {flag}", match[1] if match else "none")
        # Outer checksums are those of tunnels.
        rest = re.sub(r"RTE_MBUF_F_RX_(OUTER_)?(IP|L4)_CKSUM_\w+ ?", "", packet["flags"]).strip()
        record(f"{name}: other flags", rest)


def receive_checksum(pmd, record):
    """The csum engine counts what the driver calls bad (rather than unknown)."""
    check_checksums(pmd)
    sent = [frames.udp4(host=1), frames.udp4(host=2, ip_right=False), frames.tcp4(host=3),
            frames.tcp4(host=4, right=False), frames.udp6(host=5), frames.udp6(host=6, right=False),
            frames.tcp6(host=7, right=False), frames.other()]
    pmd.send(sent)
    before = len(pmd.log)
    pmd.receive(len(sent), mode="csum")
    text = pmd.log[before:]
    for name, right in (("Bad-ipcsum", 1), ("Bad-l4csum", 3)):
        value = max(map(int, re.findall(rf"{name}: (\d+)", text)), default=None)
        record(name, value)
        check(value in (0, right), f"{name} is {value}, not {right}")


def send_checksum(pmd, record):
    """Wrong checksums go in, right ones come out of the card."""
    out = pmd.ports["out"]
    pmd.reconfigure("out", *(f"csum set {layer} hw {out}" for layer in ("ip", "udp", "tcp")))
    sent = []
    for i, make in enumerate((frames.udp4, frames.tcp4, frames.udp6, frames.tcp6) * 20):
        extra = {"ip_right": False} if make in (frames.udp4, frames.tcp4) else {}
        sent.append(make(82 + 18 * i, host=i, right=False, **extra))
    check(not any(map(frames.checksums_are_right, sent)), "the test frames are right")
    pmd.send(sent, mode="csum")
    got = flat(pmd.receive(len(sent)))
    wrong = [i for i, frame in enumerate(got) if not frames.checksums_are_right(frame)]
    check(len(got) == len(sent) and not wrong, f"{len(got)} of {len(sent)}; wrong: {wrong}")
    record("frames", got)
    record_stats(pmd, record, "after")


def segmentation(pmd, record):
    """TSO: a large TCP send leaves as segments that are right in every header."""
    out, size = pmd.ports["out"], 800
    pmd.reconfigure("out", f"csum set ip hw {out}", f"csum set tcp hw {out}",
                    f"tso set {size} {out}", f"port config {out} tx_offload multi_segs on")
    sent = [frames.tcp4(54 + 100, host=1), frames.tcp4(54 + size, host=2),
            frames.tcp4(54 + size + 1, host=3), frames.tcp4(1514, host=4, flags=frames.TCP_PSH_ACK),
            frames.tcp6(1514, host=5), frames.tcp4(9000, host=6, flags=frames.TCP_PSH_ACK),
            frames.tcp6(8000, host=7)]
    pmd.send(sent, mode="csum")
    lengths = [len(frame) - (54 if frame[12:14] == b"\x08\x00" else 74) for frame in sent]
    expected = sum(-(-length // size) for length in lengths)
    got = flat(pmd.receive(expected))
    check(len(got) == expected, f"{len(got)} segments, not {expected}")
    wrong = [i for i, frame in enumerate(got) if not frames.checksums_are_right(frame)]
    check(not wrong, f"checksums are wrong in {wrong}")
    check(join(got) == join(sent), "the data is not that which was sent")
    record("segments", got)
    record_stats(pmd, record, "after")


def join(segments):
    """{(addresses and ports): data}, by the sequence numbers."""
    streams = {}
    for frame in segments:
        start = 34 if frame[12:14] == b"\x08\x00" else 54
        length = struct.unpack_from(">H", frame, 16)[0] + 14 if start == 34 else len(frame)
        sequence = struct.unpack_from(">I", frame, start + 4)[0]
        key = frame[26:38] if start == 34 else frame[22:58]
        streams.setdefault(key, []).append((sequence, frame[start + 20:length]))
    return {key: b"".join(data for _, data in sorted(parts)) for key, parts in streams.items()}


def vlan_strip(pmd, record):
    """The tag is taken off and told in the mbuf; off again, it stays on."""
    inside = pmd.ports["in"]
    sent = [frames.udp4(100, host=1, vlan=5), frames.tcp4(200, host=2, vlan=4000 | 3 << 13),
            frames.udp6(300, host=3), frames.other(vlan=7)]
    plain = [f[:12] + f[16:] if f[12:14] == b"\x81\x00" else f for f in sent]
    pmd.reconfigure("in", f"port config {inside} rx_offload vlan_strip on")
    pmd.send(sent)
    got = flat(pmd.receive(len(sent)))
    check(got == plain, f"{sum(a == b for a, b in zip(got, plain))} of {len(plain)} as they should be")
    record("frames", got)
    pmd.send(sent)
    seen = pmd.receive_descriptions(len(sent))
    record("tags", [packet.get("VLAN tci") for packet in seen])
    check([packet.get("VLAN tci") for packet in seen] == ["0x5", "0x6fa0", None, "0x7"],
          f"tags: {seen}")
    for state in ("off", "on"):
        record(f"switching {state} while it runs", answer(pmd.command(f"vlan set strip {state} {inside}")))
        pmd.send(sent)
        got = flat(pmd.receive(len(sent)))
        check(got == (sent if state == "off" else plain), f"switched {state}: {len(got)} frames")
        record(f"frames, {state}", got)


def answer(text):
    """'accepted' or 'refused': wording is the driver's own."""
    return "refused" if re.search(r"fail|error|not supported|invalid|only supported|bad arg|< device|> device", text, re.I) else "accepted"


def vlan_insert(pmd, record):
    out, tag = pmd.ports["out"], 100
    pmd.reconfigure("out", f"tx_vlan set {out} {tag}")
    sent = frames.mixed(60)
    pmd.send(sent, mode="macswap")  # io leaves the packets' flags alone
    got = flat(pmd.receive(len(sent)))
    right = [f[6:12] + f[:6] + struct.pack(">HH", 0x8100, tag) + f[12:] for f in sent]
    check(got == right, f"{len(got)} frames, {sum(a == b for a, b in zip(got, right))} right")
    record("frames", got)
    record_stats(pmd, record, "after")


SCENARIOS = {
    "packet descriptions": (descriptions, {"queues": 2}),
    "received checksums": (receive_checksum, {}),
    "sent checksums": (send_checksum, {}),
    "TSO": (segmentation, {}),
    "VLAN strip": (vlan_strip, {}),
    "VLAN insert": (vlan_insert, {}),
}
