# SPDX-License-Identifier: BSD-3-Clause
"""Where net_mlx5 and net_mlx5raw differ on purpose or by nature, and why. Anything else that
differs fails the comparison. (doc/driver.md has the same list for people.)"""
import dataclasses
import re
import typing

ABSENT = "(not there)"
ANY = object()


@dataclasses.dataclass
class Difference:
    """Scenario and observation are patterns for the whole text. `stock` and `ours`: the values
    that are meant, where only those are."""
    scenario: str
    observation: str
    reason: str
    stock: typing.Any = ANY
    ours: typing.Any = ANY

    def covers(self, scenario, observation, stock, ours):
        return (re.fullmatch(self.scenario, scenario) is not None
                and re.fullmatch(self.observation, observation) is not None
                and self.stock in (ANY, stock) and self.ours in (ANY, ours))


NAMES = "the drivers have names, devices and arguments of their own"
LINK = "net_mlx5 asks the network device (here a veth) for the speed, net_mlx5raw the RDMA port"
LIMITS = "limits are the driver's own"
SWITCH = "net_mlx5 knows representors of an embedded switch"
ESP = "net_mlx5 offers hashing of ESP and of one side only; the model has neither"
SCOPE = "net_mlx5 takes most RX offloads per queue and fast free per port, net_mlx5raw the reverse"
MORE = "net_mlx5 has offloads that net_mlx5raw has not"
XSTATS = "extended statistics beyond those of ethdev are the driver's own"
SEGMENTS = ("net_mlx5 leaves room before the data in the first buffer of a packet only, net_mlx5raw in "
            "each; so its later segments hold 128 bytes less")
BAD = ("net_mlx5 calls a checksum that is not right \"unknown\", and the header of an IPv6 packet, which "
       "has no checksum, good; net_mlx5raw says \"bad\", and \"unknown\" for IPv6")
NO_HASH = "net_mlx5 flags a hash of 0 on packets that were not hashed, net_mlx5raw flags none"
TX_BYTES = ("net_mlx5 22.11 counts bytes again: its multi-packet loop keeps the sum of a session that ends "
            "because the next packet wants other checksums (slen in mlx5_tx_burst_empw_simple)")
GROUPS6 = ("net_mlx5 takes every IPv6 multicast in any mode, net_mlx5raw only the groups that were added, "
           "or all with allmulticast")
OWN_ADDRESS = ("net_mlx5 24.11 makes with dv_flow_en=0 no rule for the port's own address, nor for a group "
               "that is added: outside promiscuous mode such frames are lost")
VLANS = ("net_mlx5 filters only when a VLAN was added, and then drops frames without a tag; net_mlx5raw "
         "filters from the moment that filtering is on, and takes frames without a tag")
QUEUE_STOP = ("net_mlx5 stops an RX queue only with DEVX: its vector path refuses, and its verbs code asks "
              "for WQ state 3 (unknown), which verbs refuses; so its queue takes the frames")
TABLE = ("net_mlx5 has a table as large as the number of queues until a larger one is set; net_mlx5raw "
         "always has the size of its reta_size argument")
KEY = "net_mlx5 uses a new hash key from the next start on, net_mlx5raw at once"
LOSS = ("net_mlx5 removes its rules and adds new ones, and frames in between are lost; net_mlx5raw changes "
        "to a new table in one step")

DIFFERENCES = [
    Difference("info", "info (Device name|Driver name|Devargs)", NAMES),
    Difference("info", "info Link speed", LINK, stock="10 Gbps", ours="100 Gbps"),
    Difference("link", "speed", LINK, stock="10 Gbps", ours="100 Gbps"),
    Difference("info", "info (Minimum size|Maximum configurable|M(ax|in) possible|Max segment).*", LIMITS),
    Difference("info", "info Device capabilities", LIMITS),
    Difference("info", "info Switch .*", SWITCH, ours=ABSENT),
    Difference("info", "info RSS types", ESP),
    Difference("info", "info Redirection table size", TABLE, stock="1", ours="128"),
    Difference("info", "offload rx per queue (KEEP_CRC|BUFFER_SPLIT)", MORE, ours=ABSENT),
    Difference("info", "offload (rx|tx) per (queue|port) .*", SCOPE),
    Difference("stats", "(in|out) xstat .*", XSTATS, stock=ABSENT),
    Difference("stats", "(in|out) xstat .*", XSTATS, ours=ABSENT),
    Difference("9,000-byte frames", "segments", SEGMENTS),
    Difference("packet descriptions", "[ui].* wrong: L4_CKSUM", BAD, stock="UNKNOWN", ours="BAD"),
    Difference("packet descriptions", "tcp wrong: L4_CKSUM", BAD, stock="UNKNOWN", ours="BAD"),
    Difference("packet descriptions", "ip wrong: IP_CKSUM", BAD, stock="UNKNOWN", ours="BAD"),
    Difference("packet descriptions", "(udp|tcp)6.*: IP_CKSUM", BAD, stock="GOOD", ours="UNKNOWN"),
    Difference("packet descriptions", "no ip: RSS hash", NO_HASH, stock="0x0", ours="none"),
    Difference("packet descriptions", "no ip: other flags", NO_HASH, ours=""),
    Difference("RSS fields", "(udp|tcp): hash of .*", NO_HASH, stock="0x0", ours="none"),
    Difference("received checksums", "Bad-ipcsum", BAD, stock=0, ours=1),
    Difference("received checksums", "Bad-l4csum", BAD, stock=0, ours=3),
    Difference("sent checksums", "after: out TX-bytes", TX_BYTES),
    Difference("promiscuous, multicast, addresses", "(neither|not any more|group removed|address removed"
               "|stopped and started)", GROUPS6, stock=["own", "broadcast", "group6"],
               ours=["own", "broadcast"]),
    Difference("promiscuous, multicast, addresses", "address added", GROUPS6,
               stock=["own", "broadcast", "group6", "extra"], ours=["own", "broadcast", "extra"]),
    Difference("promiscuous, multicast, addresses", "group added", GROUPS6,
               stock=["own", "broadcast", "group", "group6"], ours=["own", "broadcast", "group"]),
    Difference("promiscuous, multicast, addresses", "(neither|not any more|group removed|address removed"
               "|stopped and started)", OWN_ADDRESS, stock=["broadcast", "group6"],
               ours=["own", "broadcast"]),
    Difference("promiscuous, multicast, addresses", "all-multicast", OWN_ADDRESS,
               stock=["broadcast", "group", "group6"], ours=["own", "broadcast", "group", "group6"]),
    Difference("promiscuous, multicast, addresses", "address added", OWN_ADDRESS,
               stock=["broadcast", "group6", "extra"], ours=["own", "broadcast", "extra"]),
    Difference("promiscuous, multicast, addresses", "group added", OWN_ADDRESS,
               stock=["broadcast", "group6"], ours=["own", "broadcast", "group"]),
    Difference("VLAN filter", "off", OWN_ADDRESS, stock=[]),
    Difference("VLAN filter", "on, no VLAN added", VLANS, ours=["none"]),
    Difference("VLAN filter", "(100 added|5 removed)", VLANS, stock=["vlan 100", "vlan 100 priority 3"],
               ours=["none", "vlan 100", "vlan 100 priority 3"]),
    Difference("VLAN filter", "5 added too", VLANS,
               stock=["vlan 5", "vlan 100", "vlan 100 priority 3"],
               ours=["none", "vlan 5", "vlan 100", "vlan 100 priority 3"]),
    Difference("queue stop and start", "stopping RX queue .", QUEUE_STOP, stock="refused",
               ours="accepted"),
    Difference("queue stop and start", "RX queue . stopped: its frames", QUEUE_STOP, ours=[]),
    Difference("queue stop and start", "after: in RX-(packets|bytes)", QUEUE_STOP),
    Difference("RSS key", "a new key is used", KEY, stock="after a start", ours="at once"),
    Difference("RSS table under traffic", "table size", TABLE, stock="4", ours="128"),
    Difference("RSS table under traffic", "changes that lose frames", LOSS, stock="some", ours="none"),
]


def reason_of(scenario, observation, stock, ours):
    for difference in DIFFERENCES:
        if difference.covers(scenario, observation, stock, ours):
            return difference.reason
    return None
