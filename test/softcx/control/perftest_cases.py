# SPDX-License-Identifier: BSD-3-Clause
"""The options of perftest's raw Ethernet programs that concern an Ethernet port.

A case has a name, the program, the options of both sides, and those of one side. `size` and
`count` are what the report must show. Without `slow` it belongs to the quick set.
"""
from dataclasses import dataclass

BW, LAT, BURST, RATE = ('raw_ethernet_bw', 'raw_ethernet_lat', 'raw_ethernet_burst_lat',
                        'raw_ethernet_fs_rate')

@dataclass
class Case:
    name: str
    program: str
    both: str = ''
    server: str = ''
    client: str = ''
    size: int = 256
    count: int | None = 1000  # None: as many as there is time for
    expect: str = ''          # a pattern that the client's output must have besides the report
    slow: bool = False


# The client sends to the destination, and the server takes what goes there: both sides get the
# same addresses and ports.
PORTS = '-K 4000 -k 5000 '
IP4 = PORTS + '-J 10.9.0.1 -j 10.9.0.2'
IP6 = PORTS + '--raw_ipv6 -J fd00:0:0:0:0:0:0:1 -j fd00:0:0:0:0:0:0:2'

# What perftest 4.5 needs to work at all on Ethernet: a rate of the list that it has for
# InfiniBand (a rate of its own software limiter is refused), a CQE for every send (the server
# counts one completion a send), bursts of 16 at least (it polls so many into that array), and
# a send ring that is never full (the server leaves out an answer then, and the client waits).
BURSTS = '-n 1000 -Q 1 -t 2048 --rate_limit 2.5 --burst_size 32 '

# What cannot be tested, with the reason.
IMPOSSIBLE = {
    '-e': 'these programs wait for an event and never arm the CQ',
    '-W': 'these programs never open the counters that they print',
    '-g, -M, and --raw_mcast at the receiver': 'attach a raw packet QP to a multicast group, '
                                               'which the kernel grants to UD only',
    '--use_rss': "needs the verbs of NVIDIA's own libibverbs; Debian's build has it not",
    '--flow_label': 'the sender never writes the label into its frames (fs_rate is tested)',
    '-Y': 'taken by the parser for no option at all',
    '--use-srq, --inline_recv, --odp': 'the model has neither SRQ, nor scatter to CQE, nor paging',
    '--rate_limit_type HW and PP': 'packet pacing',
    '--use_hugepages': 'only where hugepages are reserved',
    '--dlid, --pkey_index, -S, -u, --tclass': 'InfiniBand transport: no effect on raw packets',
    '--run_infinitely': 'has no end',
}

CASES = [
    # raw_ethernet_bw: sizes
    Case('bw', BW),
    Case('bw of the smallest frame', BW, '-s 64', size=64, slow=True),
    Case('bw of 1500 bytes', BW, '-s 1500', size=1500, slow=True),
    # As many as the switch's ring of 2 MiB takes: a receiver that is late must not lose one.
    Case('bw of jumbo frames', BW, '-n 200 -s 9000 -m 9600', size=9000, count=200),
    # how long
    Case('bw for a time', BW, '-D 1 -f 0', count=None),
    Case('bw for a time, with margins', BW, '-D 3 -f 1', count=None, slow=True),
    Case('bw for a time, with the CPU', BW, '-D 1 -f 0 --cpu_util', count=None, slow=True),
    # directions and queue pairs
    Case('bw both ways', BW, '-b'),
    Case('bw both ways, reported apart', BW, '-b --report-both', slow=True),
    Case('bw from the server', BW, '--reversed'),
    Case('bw of four queue pairs with one rule', BW, '-q 4', count=4000),
    Case('bw with an MR for each queue pair', BW, '-q 2 --mr_per_qp', count=2000, slow=True),
    # layers
    Case('bw of UDP over IPv4', BW, IP4),
    Case('bw of TCP over IPv4', BW, '--tcp ' + IP4, slow=True),
    Case('bw of UDP over IPv6', BW, IP6),
    Case('bw of TCP over IPv6', BW, '--tcp ' + IP6, slow=True),
    Case('bw of flows', BW, '--flows 8 ' + IP4),
    Case('bw of flows in bursts', BW, '--flows 4 --flows_burst 8 ' + IP4, slow=True),
    Case('bw of IPv4 with TOS and TTL', BW, '-T 32 -L 9 ' + IP4, slow=True),
    Case('bw of IPv4 in a VLAN', BW, '--vlan_en ' + IP4),
    Case('bw of IPv4 in VLANs of every priority', BW, '--vlan_en --vlan_pcp 8 ' + IP4, slow=True),
    # who takes the frames
    Case('bw, promiscuous', BW, server='--promiscuous'),
    Case('bw to a sniffer', BW, server='--sniffer', slow=True),
    Case('bw of multicast to a promiscuous receiver', BW, server='--promiscuous',
         client='--raw_mcast'),
    # rings and how they are posted
    Case('bw with deep rings', BW, '-t 1024', slow=True),
    Case('bw with a shallow send ring', BW, '-t 4', slow=True),
    Case('bw with few completions', BW, '-Q 32', slow=True),
    Case('bw with lists of requests', BW, '-n 1600 -l 16 --recv_post_list 16 -Q 16', count=1600),
    Case('bw with inline data', BW, '-s 128 -I 128', size=128),
    Case('bw with ibv_post_send', BW, '--use_old_post_send', slow=True),
    Case('bw without relaxed ordering', BW, '--disable_pcie_relaxed', slow=True),
    Case('bw at a rate that the program keeps', BW, '--rate_limit_type SW --rate_units M',
         client='--rate_limit 1', slow=True),
    # the report
    Case('bw in Gb/s without a peak', BW, '-N --report_gbits', slow=True),
    Case('bw as JSON', BW, '--out_json --out_json_file /dev/null', slow=True),
    Case('bw above a limit', BW, client='-w 0.001', slow=True),

    # raw_ethernet_lat
    Case('lat', LAT, '-n 200', count=200),
    Case('lat of UDP over IPv4', LAT, '-n 200 ' + IP4, count=200),
    Case('lat of TCP over IPv6', LAT, '-n 200 --tcp ' + IP6, count=200, slow=True),
    Case('lat for a time', LAT, '-D 1 -f 0', count=None, slow=True),
    Case('lat of jumbo frames', LAT, '-n 200 -s 9000 -m 9600', size=9000, count=200, slow=True),
    Case('lat with inline data', LAT, '-n 200 -s 64 -I 64', size=64, count=200, slow=True),
    Case('lat in cycles with every result', LAT, '-n 200 -C -U', count=200, slow=True),
    Case('lat with a histogram', LAT, '-n 200 -H', count=200, slow=True),
    Case('lat with a gap', LAT, '-n 100 --latency_gap 100', count=100, slow=True),
    Case('lat, promiscuous', LAT, '-n 200 --promiscuous', count=200, slow=True),

    # raw_ethernet_burst_lat
    Case('burst_lat', BURST, BURSTS),
    Case('burst_lat of UDP over IPv4', BURST, BURSTS + IP4, slow=True),
    Case('burst_lat of jumbo frames', BURST, BURSTS + '-s 9000 -m 9600', size=9000, slow=True),
    Case('burst_lat with fewer answers', BURST, BURSTS + '--reply_every 5', slow=True),

    # raw_ethernet_fs_rate: one process, flows of its own
    Case('fs_rate', RATE, '-n 1000', count=1000),
    Case('fs_rate of UDP over IPv4', RATE, '-n 1000 ' + IP4, count=1000),
    Case('fs_rate of TCP over IPv6 with a flow label', RATE,
         '-n 500 --tcp --flow_label 7 ' + IP6, count=500, slow=True),
    Case('fs_rate of many flows', RATE, '-n 3000', count=3000, slow=True),
]
