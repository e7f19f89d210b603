# SPDX-License-Identifier: BSD-3-Clause
"""What a port lets in, and changes while traffic runs."""
import re
import subprocess

import frames
from rig import NETDEVS, check, netdev_mac
from scenarios_basic import RSS_KEY, flat, record_stats, same_key
from scenarios_offload import answer, describe

GROUP = bytes.fromhex("01005e7f0001")
GROUP6 = bytes.fromhex("333300000042")
EXTRA = bytes.fromhex("02000000aa01")


def address(mac):
    return bytes.fromhex(mac.replace(":", ""))


def text_of(mac):
    return ":".join(f"{byte:02x}" for byte in mac)


def arrivals(pmd, named, expected):
    """The names of the frames that arrive, in their order. They wait in one ring and come
    together: those beyond the `expected` ones are not missed."""
    names = {frame: name for name, frame in named.items()}
    pmd.send(list(named.values()))
    return [names[frame] for frame in flat(pmd.receive(len(expected)))]


def admission(pmd, record):
    """Which destinations a port takes: promiscuous, all-multicast, added addresses."""
    own = address(netdev_mac(NETDEVS[1]))
    inside = pmd.ports["in"]
    named = {name: frames.udp4(100 + i, host=i, destination=destination) for i, (name, destination) in
             enumerate({"own": own, "stranger": frames.STRANGER, "broadcast": frames.BROADCAST,
                        "group": GROUP, "group6": GROUP6, "extra": EXTRA}.items())}
    everything = list(named)
    groups = ["own", "broadcast", "group", "group6"]
    steps = [
        ("promiscuous", [f"set promisc {inside} on"], everything),
        ("neither", [f"set promisc {inside} off", f"set allmulti {inside} off"], ["own", "broadcast"]),
        ("all-multicast", [f"set allmulti {inside} on"], groups),
        ("not any more", [f"set allmulti {inside} off"], ["own", "broadcast"]),
        ("address added", [f"mac_addr add {inside} {text_of(EXTRA)}"], ["own", "broadcast", "extra"]),
        ("address removed", [f"mac_addr remove {inside} {text_of(EXTRA)}"], ["own", "broadcast"]),
        ("group added", [f"mcast_addr add {inside} {text_of(GROUP)}"], ["own", "broadcast", "group"]),
        ("group removed", [f"mcast_addr remove {inside} {text_of(GROUP)}"], ["own", "broadcast"]),
        ("stopped and started", [f"port stop {inside}", f"port start {inside}"], ["own", "broadcast"]),
        ("promiscuous again", [f"set promisc {inside} on"], everything),
    ]
    for step, lines, expected in steps:
        for line in lines:
            pmd.command(line)
        got = arrivals(pmd, named, ["broadcast"])
        record(step, got)
        check(not set(got) - set(expected) - {"group6"}, f"{step}: {got}, not {expected}")


def vlan_filter(pmd, record):
    """With the filter on, only frames of the VLANs that were added, and those without a tag."""
    own = address(netdev_mac(NETDEVS[1]))
    inside = pmd.ports["in"]
    tags = {"none": None, "vlan 5": 5, "vlan 100": 100, "vlan 100 priority 3": 100 | 3 << 13}
    named = {name: frames.udp4(100 + i, host=i, destination=own, vlan=tag)
             for i, (name, tag) in enumerate(tags.items())}
    pmd.command(f"set promisc {inside} off")
    pmd.command(f"set allmulti {inside} off")
    record("off", arrivals(pmd, named, list(named)))
    said = pmd.reconfigure("in", f"vlan set filter on {inside}")
    record("switching on", answer(said))
    record("on, no VLAN added", arrivals(pmd, named, ["none"]))
    hundred = ["vlan 100", "vlan 100 priority 3"]
    for step, line, expected in (
            ("100 added", f"rx_vlan add 100 {inside}", hundred),
            ("5 added too", f"rx_vlan add 5 {inside}", [*hundred, "vlan 5"]),
            ("5 removed", f"rx_vlan rm 5 {inside}", hundred),
            ("promiscuous", f"set promisc {inside} on", list(named))):
        pmd.command(line)
        record(step, arrivals(pmd, named, expected))


def mtu(pmd, record):
    """Refused and accepted values; port, network device and frames agree."""
    inside = pmd.ports["in"]
    sizes = (64, 1014, 1514, 1518)
    named = {str(size): frames.udp4(size, host=size) for size in sizes}
    record("at the start", arrivals(pmd, named, list(named)))
    for value in (1000, 1500, 60, 70000):
        record(f"{value} while it runs", answer(pmd.command(f"port config mtu {inside} {value}")))
        shown = re.search(r"MTU: (\d+)", pmd.command(f"show port info {inside}"))[1]
        record(f"{value}: port says", shown)
        link = subprocess.run(["ip", "link", "show", NETDEVS[1]], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        record(f"{value}: network device says", re.search(r"mtu (\d+)", link)[1])
        record(f"{value}: frames", arrivals(pmd, named, list(named)))


def queue_stop(pmd, record):
    """A queue that is stopped takes nothing, the others go on, and it comes back. (net_mlx5
    stops an RX queue only without its vector path.)"""
    same_key(pmd)
    out, inside = pmd.ports["out"], pmd.ports["in"]
    sent = [frames.udp4(100, host=i) for i in range(64)]
    pmd.send(sent)
    whole = [sorted(queue) for queue in pmd.receive(len(sent))]
    record("all frames by queue", whole)
    check(all(whole), "the frames do not spread")
    for stopped in (1, 0):
        record(f"stopping RX queue {stopped}", answer(pmd.command(f"port {inside} rxq {stopped} stop")))
        pmd.send(sent)
        got = [sorted(queue) for queue in pmd.receive(len(whole[1 - stopped]))]
        record(f"RX queue {stopped} stopped: its frames", got[stopped])
        record(f"RX queue {stopped} stopped: frames of the other", got[1 - stopped])
        check(got[1 - stopped] == whole[1 - stopped], "the queue that runs lost frames")
        record(f"starting RX queue {stopped}", answer(pmd.command(f"port {inside} rxq {stopped} start")))
        pmd.send(sent)
        got = [sorted(queue) for queue in pmd.receive(len(sent))]
        record(f"RX queue {stopped} started", got)
        check(got == whole, f"after queue {stopped} started: {list(map(len, got))}")
    record("stopping TX queue 1", answer(pmd.command(f"port {out} txq 1 stop")))
    record("starting TX queue 1", answer(pmd.command(f"port {out} txq 1 start")))
    pmd.send(sent)
    got = [sorted(queue) for queue in pmd.receive(len(sent))]
    record("TX queue 1 stopped and started", got)
    check(got == whole, f"after TX queue 1 started: {list(map(len, got))}")
    record_stats(pmd, record, "after")


def rss_fields(pmd, record):
    """Hash of each kind of frame for each choice of fields."""
    sent = {"udp4": frames.udp4(90, host=3), "tcp4": frames.tcp4(91, host=3),
            "udp6": frames.udp6(92, host=3), "tcp6": frames.tcp6(93, host=3),
            "fragment": frames.fragment4(94, host=3)}
    inside = pmd.ports["in"]
    for fields in ("ip", "udp", "tcp"):
        pmd.reconfigure("in", f"port config {inside} rss-hash-key ipv4 {RSS_KEY}",
                        f"port config all rss {fields}")
        for name, packet in describe(pmd, sent, len(sent)).items():
            record(f"{fields}: hash of {name}", packet.get("RSS hash", "none"))
            record(f"{fields}: queue of {name}", packet["Receive queue"])


def rss_key(pmd, record):
    """A new hash key while the port runs, and after a start."""
    sent = {"udp4": frames.udp4(90, host=3)}
    inside = pmd.ports["in"]
    same_key(pmd)
    before = describe(pmd, sent, 1)["udp4"]["RSS hash"]
    record("hash", before)
    pmd.command(f"port config {inside} rss-hash-key ipv4 {'5a' * 40}")
    running = describe(pmd, sent, 1)["udp4"]["RSS hash"]
    pmd.reconfigure("in")
    started = describe(pmd, sent, 1)["udp4"]["RSS hash"]
    record("hash after a start", started)
    record("a new key is used", {before: "after a start", started: "at once"}.get(running, "never"))
    check(started != before, "the new key is not used")


def lost_frames(pmd):
    """Of all that the two ports sent to each other, what never arrived."""
    out, into = pmd.stats("out"), pmd.stats("in")
    return (out["TX-packets"] - into["RX-packets"]) + (into["TX-packets"] - out["RX-packets"])


def wait_for_more(pmd, role, frames_more):
    before = pmd.stats(role)["RX-packets"]
    pmd.wait(f"show port stats {pmd.ports[role]}",
             lambda text: int(re.search(r"RX-packets: (\d+)", text)[1]) > before + frames_more,
             "nothing goes round")


def busy_queues(pmd):
    pmd.start_loop(2)
    before = pmd.xstats("in")
    wait_for_more(pmd, "in", 1000)
    after = pmd.xstats("in")
    pmd.stop_loop()
    return tuple(q for q in range(4) if after[f"rx_q{q}_packets"] > before[f"rx_q{q}_packets"])


def rss_table(pmd, record):
    """The redirection table changes while frames go round. (testpmd's own frames differ in
    address or port, which depends on its version.)"""
    same_key(pmd, "udp")
    inside = pmd.ports["in"]
    size = int(re.search(r"Redirection table size: (\d+)",
                         pmd.command(f"show port info {inside}"))[1])
    record("table size", str(size))
    lost = 0
    for queues in ((0,), (3,), (1, 2), (0, 1, 2, 3)):
        pmd.start_loop(2)
        wait_for_more(pmd, "in", 1000)
        for first in range(0, size, 8):  # a word has 127 characters at most
            part = ",".join(f"({i},{queues[i % len(queues)]})"
                            for i in range(first, min(first + 8, size)))
            text = pmd.command(f"port config {inside} rss reta {part}")
            check(answer(text) == "accepted", f"reta: {text}")
        pmd.stop_loop()
        lost += lost_frames(pmd)
        pmd.command("clear port stats all")
        busy = busy_queues(pmd)
        record(f"queues of table {queues}", busy)
        check(busy == queues, f"frames go to {busy}, not {queues}")
        check(lost_frames(pmd) == 0, f"{lost_frames(pmd)} frames lost without a change")
    record("changes that lose frames", "some" if lost else "none")


# Name, the frame it is meant for, pattern and actions. {} is the queue that the frame does not
# reach without the rule.
RULES = [
    ("UDP port to queue", "udp 5000",
     "pattern eth / ipv4 / udp dst is 5000 / end actions queue index {} / end"),
    ("TCP port dropped", "tcp 8080",
     "pattern eth / ipv4 / tcp dst is 8080 / end actions drop / end"),
    ("IPv4 source marked", "from host 3",
     "pattern eth / ipv4 src is 10.1.0.3 / end actions mark id 4660 / queue index {} / end"),
    ("IPv6 to queue", "udp6", "pattern eth / ipv6 / end actions queue index {} / end"),
    ("Ethernet address to queue", "to 77",
     "pattern eth dst is 02:00:00:00:00:77 / end actions queue index {} / end"),
    ("VLAN to queue", "vlan 100",
     "pattern eth / vlan vid is 100 / end actions queue index {} / end"),
    ("RSS over one queue", "udp 7000",
     "pattern eth / ipv4 / udp dst is 7000 / end actions rss queues {} end / end"),
    ("counted", "udp 5001",
     "pattern eth / ipv4 / udp dst is 5001 / end actions count / queue index {} / end"),
    ("bad queue", "other", "pattern eth / ipv4 / end actions queue index 9 / end"),
    ("no action", "other", "pattern eth / ipv4 / end actions end"),
    ("egress", "other", "egress pattern eth / end actions drop / end"),
]
DROPPED = "tcp 8080"


def flow_frames():
    return {
        "udp 5000": frames.udp4(80, host=1, port=5000),
        "tcp 8080": frames.tcp4(81, host=2, port=8080),
        "from host 3": frames.udp4(82, host=3, port=9),
        "udp6": frames.udp6(83, host=4),
        "to 77": frames.other(84, destination=bytes.fromhex("020000000077")),
        "vlan 100": frames.udp4(85, host=5, vlan=100),
        "vlan 101": frames.udp4(86, host=5, vlan=101),
        "udp 7000": frames.udp4(87, host=6, port=7000),
        "udp 5001": frames.udp4(88, host=7, port=5001),
        "other": frames.tcp4(91, host=8),
    }


def where_frames_go(pmd, named, expected):
    """{name: (queue, mark)} of the frames that arrive."""
    return {name: (packet["Receive queue"], packet.get("FDIR matched ID", "no mark"))
            for name, packet in describe(pmd, named, len(expected)).items()}


def flow_rules(pmd, record):
    """Each rule alone: is it taken, and where do frames go; then three together, then none."""
    inside, named = pmd.ports["in"], flow_frames()
    same_key(pmd)
    before = where_frames_go(pmd, named, named)
    record("without a rule", before)
    texts = {}
    for name, frame, rule in RULES:
        text = rule.format(1 - int(before[frame][0], 16))
        texts[name] = text if text.startswith("egress") else f"ingress {text}"
    for name, frame, _ in RULES:
        checked = pmd.command(f"flow validate {inside} {texts[name]}")
        record(f"{name}: validate", "valid" if "Flow rule validated" in checked else "refused")
        made = re.search(r"Flow rule #(\d+) created",
                         pmd.command(f"flow create {inside} {texts[name]}"))
        record(f"{name}: create", "created" if made else "refused")
        if made is None:
            continue
        expected = [other for other in named if frame != DROPPED or other != frame]
        places = where_frames_go(pmd, named, expected)
        record(f"{name}: frames", places)
        check(places.get(frame) != before[frame], f"{name}: the frame goes where it went before")
        if name == "counted":
            said = pmd.command(f"flow query {inside} {made[1]} count")
            record("counted: hits and bytes", re.findall(r"(hits|bytes): (\d+)", said))
        said = pmd.command(f"flow destroy {inside} rule {made[1]}")
        record(f"{name}: destroy", "destroyed" if "destroyed" in said else "refused")
    for name, _, _ in RULES[:3]:
        pmd.command(f"flow create {inside} {texts[name]}")
    record("three together", where_frames_go(pmd, named, [n for n in named if n != DROPPED]))
    record("rules listed", len(re.findall(r"^\d+\t", pmd.command(f"flow list {inside}"), re.M)))
    pmd.command(f"flow flush {inside}")
    after = where_frames_go(pmd, named, named)
    record("after flush", after)
    check(after == before, "frames do not go where they went before the rules")


def isolation(pmd, record):
    """In isolated mode only rules let frames in."""
    inside, named = pmd.ports["in"], flow_frames()
    same_key(pmd)
    pmd.command(f"port stop {inside}")
    record("isolate", answer(pmd.command(f"flow isolate {inside} 1")))
    pmd.command(f"port start {inside}")
    record("no rule", where_frames_go(pmd, named, []))
    pmd.command(f"flow create {inside} ingress {RULES[0][2].format(1)}")
    record("one rule", where_frames_go(pmd, named, ["udp 5000"]))
    pmd.command(f"flow flush {inside}")
    pmd.command(f"port stop {inside}")
    record("leave", answer(pmd.command(f"flow isolate {inside} 0")))
    pmd.command(f"port start {inside}")
    record("as before", where_frames_go(pmd, named, named))


SCENARIOS = {
    "promiscuous, multicast, addresses": (admission, {}),
    "VLAN filter": (vlan_filter, {}),
    "MTU": (mtu, {}),
    "queue stop and start": (queue_stop, {"queues": 2, "devargs": {"net_mlx5": ",rx_vec_en=0"}}),
    "flow rules": (flow_rules, {"queues": 2}),
    "isolated mode": (isolation, {"queues": 2}),
    "RSS fields": (rss_fields, {"queues": 4}),
    "RSS key": (rss_key, {"queues": 4}),
    "RSS table under traffic": (rss_table, {"queues": 4, "arguments": ["--txonly-multi-flow"]}),
}
