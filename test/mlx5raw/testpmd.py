#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stock dpdk-testpmd with net_mlx5raw on softcx: io, mac, txonly/rxonly, RSS.

usage: testpmd.py BUILD_DIR [TEST...]
"""
import os
import re
import shutil
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../testpmd"))
from prompt import DEADLINE, Failed, Prompt, check, read_pcap, write_pcap  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
DRIVER = f"{BUILD}/drivers/net/mlx5raw/librte_net_mlx5raw.so"
PLUGIN = f"{BUILD}/drivers/softcx/dpdk/librte_softcx_step.so"
SOFTCX_RUN = f"{BUILD}/drivers/softcx/softcx-run"
POOL = 16384
RSS_KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c"
                        "6a42b73bbeac01fa")


class Testpmd(Prompt):
    """One testpmd at its prompt."""

    def __init__(self, name, vdevs, wire, devices, arguments):
        # stdbuf: through a pipe testpmd would keep its output until a buffer is full.
        command = [SOFTCX_RUN, "--devices", str(devices), "--wire", wire, "--mode", "step", "--",
                   "stdbuf", "-oL", "dpdk-testpmd", "-l", "0,1", "-d", DRIVER, "-d", PLUGIN,
                   "--no-huge", "-m", "256",
                   "--no-shconf", "--no-pci", "--no-telemetry", "--file-prefix", name]
        for vdev in vdevs:
            command += ["--vdev", vdev]
        # --no-flush-rx: testpmd would begin with throwing the files' frames away.
        command += ["--", "-i", "--no-flush-rx", "--no-mlockall", "--rxq=2", "--txq=2", "--nb-cores=1",
                    f"--total-num-mbufs={POOL}", *arguments]
        super().__init__(command)

    def stop_and_count_mbufs(self):
        self.command("stop")
        self.check_mbufs()


def mlx5raw(index):
    return f"net_mlx5raw{index},ibdev=mlx5_{index}"


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff


def udp_frame(size, source_port):
    payload = bytes((size * 3 + i) & 0xff for i in range(size - 42))
    udp = struct.pack(">HHHH", source_port, 4791, len(payload) + 8, 0) + payload
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), size, 0, 64, 17, 0,
                       bytes([10, 1, size >> 8, size & 0xff]), bytes([10, 2, 0, 1]))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return bytes([2, 0, 0, 0, 0, 0x42]) + bytes([2, 0, 0, 0, 0, 0x41]) + b"\x08\x00" + head + udp


def toeplitz(data):
    key = int.from_bytes(RSS_KEY, "big")
    width = len(RSS_KEY) * 8
    result = 0
    for i in range(len(data) * 8):
        if data[i // 8] & (0x80 >> (i % 8)):
            result ^= (key >> (width - 32 - i)) & 0xffffffff
    return result


def udp_hash(frame):
    return toeplitz(frame[26:38])


SIZES = range(60, 1515)


def bit_for_bit(folder, mode):
    """pcap file -> port 1 -> wire -> port 2 -> pcap file per queue."""
    frames = [udp_frame(size, 1000 + size) for size in SIZES]
    half = [frames[0::2], frames[1::2]]
    for i in (0, 1):
        write_pcap(f"{folder}/in{i}.pcap", half[i])
    source = f"net_pcap0,rx_pcap={folder}/in0.pcap,rx_pcap={folder}/in1.pcap," \
             f"tx_pcap={folder}/back0.pcap,tx_pcap={folder}/back1.pcap"
    write_pcap(f"{folder}/none.pcap", [])
    sink = f"net_pcap1,rx_pcap={folder}/none.pcap,rx_pcap={folder}/none.pcap," \
           f"tx_pcap={folder}/out0.pcap,tx_pcap={folder}/out1.pcap"
    pmd = Testpmd(f"tagwire_{mode}", [source, mlx5raw(0), mlx5raw(1), sink], "pair", 2,
                  ["--rss-udp", f"--forward-mode={mode}"])
    try:
        names = re.findall(r"Device name: (\S+)", pmd.command("show port info all"))
        check(names == ["net_pcap0", "net_mlx5raw0", "net_mlx5raw1", "net_pcap1"],
              f"ports are {names}")
        check_info(pmd, 1)
        pmd.command("start")
        pmd.wait("show port stats 3",
                 lambda text: f"TX-packets: {len(frames)} " in text, "not all frames arrived")
        octets = sum(map(len, frames))
        for port, direction in ((1, "TX"), (2, "RX")):
            stats = pmd.stats(port)
            check(stats[f"{direction}-packets"] == len(frames), f"port {port}: {stats}")
            check(stats[f"{direction}-bytes"] == octets, f"port {port}: {stats}")
            check(stats["RX-errors"] + stats["TX-errors"] + stats["RX-nombuf"] == 0,
                  f"port {port}: {stats}")
        xstats = pmd.xstats(2)
        check(xstats["rx_good_packets"] == len(frames), f"{xstats}")
        check(xstats["rx_q0_packets"] + xstats["rx_q1_packets"] == len(frames), f"{xstats}")
        check(min(xstats["rx_q0_packets"], xstats["rx_q1_packets"]) > len(frames) / 4,
              f"RSS does not spread: {xstats}")
        for name, value in xstats.items():
            if re.search("error|recover|dropped|flushed|failures", name):
                check(value == 0, f"{name} is {value}")
        check(pmd.xstats(1)["tx_good_bytes"] == octets, "tx_good_bytes")
        pmd.stop_and_count_mbufs()
        pmd.quit()
    finally:
        pmd.kill()

    out = [read_pcap(f"{folder}/out{i}.pcap") for i in (0, 1)]
    expected = [[], []]
    for frame in half[0] + half[1]:
        # Port 2 has two queues, its table names them in turn.
        expected[udp_hash(frame) % 128 % 2].append(frame)
    if mode == "mac":
        check(all(frame[:12] != got[:12] for frame, got in zip(frames, out[0] + out[1])),
              "the addresses are unchanged")
        expected = [[frame[12:] for frame in queue] for queue in expected]
        out = [[frame[12:] for frame in queue] for queue in out]
    for queue in (0, 1):
        check(sorted(out[queue]) == sorted(expected[queue]),
              f"queue {queue}: {len(out[queue])} frames came, {len(expected[queue])} should have, "
              f"{len(set(out[queue]) & set(expected[queue]))} of them as they were sent")


def check_info(pmd, port):
    info = pmd.command(f"show port info {port}")
    for pattern in (r"MAC address: (?!00:00:00:00:00:00)[0-9A-F:]{17}",
                    r"Driver name: net_mlx5raw", r"Firmware-version: \d+\.\d+\.\d+",
                    r"Link status: up", r"Link speed: \d+ Gbps", r"Link duplex: full-duplex",
                    r"MTU: 1500", r"Promiscuous mode: enabled", r"Hash key size in bytes: 40",
                    r"Redirection table size: 128", r"Current number of RX queues: 2",
                    r"Current number of TX queues: 2", r"ipv4-udp"):
        check(re.search(pattern, info), f"show port info lacks {pattern}:\n{info}")
    key = pmd.command(f"show port {port} rss-hash key")
    check(RSS_KEY.hex().upper() in key.upper(), f"RSS key:\n{key}")
    reta = pmd.command(f"show port {port} rss reta 128 (0xffffffffffffffff,0xffffffffffffffff)")
    entries = re.findall(r"hash index=(\d+), queue=(\d+)", reta)
    check([int(queue) for _, queue in entries] == [i % 2 for i in range(128)], f"reta:\n{reta}")


def io(folder):
    bit_for_bit(folder, "io")


def mac(folder):
    bit_for_bit(folder, "mac")


def drained(pmd, port):
    """The statistics once nothing more comes. The bytes of a compressed session are counted when it
    is expanded, its packets when they are handed out: before that the two can differ."""
    end = time.monotonic() + DEADLINE
    stats = pmd.stats(port)
    while time.monotonic() < end:
        time.sleep(0.1)
        before, stats = stats, pmd.stats(port)
        if stats == before:
            return stats
    raise Failed(f"packets still arrive: {stats}")


def txonly_rxonly(folder):
    """Two processes on the shared-memory switch: one sends, the other counts."""
    wire = f"switch:tagwire-testpmd-{os.getpid()}"
    receiver = sender = None
    try:
        receiver = Testpmd("tagwire_rx", [mlx5raw(0)], wire, 1,
                           ["--rss-udp", "--forward-mode=rxonly"])
        sender = Testpmd("tagwire_tx", [mlx5raw(0)], wire, 1,
                         ["--forward-mode=txonly", "--txonly-multi-flow", "--port-topology=chained"])
        receiver.command("start")
        sender.command("start")
        receiver.wait("show port stats 0",
                      lambda text: int(re.search(r"RX-packets: (\d+)", text).group(1)) > 20000,
                      "too few packets arrive")
        sender.command("stop")
        sent = sender.stats(0)
        check(sent["TX-packets"] > 20000 and sent["TX-errors"] == 0, f"sender: {sent}")
        check(sent["TX-bytes"] == sent["TX-packets"] * 64, f"sender: {sent}")
        got = drained(receiver, 0)
        check(got["RX-packets"] <= sent["TX-packets"], f"{got} of {sent}")
        check(got["RX-bytes"] == got["RX-packets"] * 64, f"receiver: {got}")
        xstats = receiver.xstats(0)
        check(min(xstats["rx_q0_packets"], xstats["rx_q1_packets"]) > 0,
              f"RSS does not spread: {xstats}")
        check(xstats["rx_q0_error_completions"] + xstats["rx_q1_error_completions"] == 0,
              f"{xstats}")
        for pmd in (sender, receiver):
            pmd.stop_and_count_mbufs()
            pmd.quit()
    finally:
        for pmd in (receiver, sender):
            if pmd is not None:
                pmd.kill()
    del folder


def rss(folder):
    """The table and the hash types change while packets go round."""
    del folder
    pmd = Testpmd("tagwire_rss", [mlx5raw(0), mlx5raw(1)], "pair", 2, ["--forward-mode=io"])
    try:
        pmd.command("start tx_first 8")
        pmd.wait("show port stats 1",
                 lambda text: int(re.search(r"RX-packets: (\d+)", text).group(1)) > 10000,
                 "nothing goes round")
        for queue in (1, 0, 1):
            for port in (0, 1):
                for first in range(0, 128, 8):  # a word has 127 characters at most
                    part = ",".join(f"({i},{queue})" for i in range(first, first + 8))
                    pmd.command(f"port config {port} rss reta {part}")
            reta = pmd.command("show port 1 rss reta 128 (0xffffffffffffffff,0xffffffffffffffff)")
            check({q for q in re.findall(r"queue=(\d+)", reta)} == {str(queue)}, reta)
            before = pmd.xstats(1)[f"rx_q{queue}_packets"]
            pmd.wait("show port xstats 1",
                     lambda text: int(re.search(rf"rx_q{queue}_packets: (\d+)", text).group(1))
                     > before + 10000, f"nothing goes to queue {queue}")
        pmd.command("port config all rss udp")
        check("ipv4-udp" in pmd.command("show port 0 rss-hash"), "rss-hash")
        for port in (0, 1):
            stats = pmd.stats(port)
            check(stats["RX-errors"] + stats["TX-errors"] == 0, f"{stats}")
        pmd.stop_and_count_mbufs()
        pmd.quit()
    finally:
        pmd.kill()


TESTS = {"io": io, "mac": mac, "txonly_rxonly": txonly_rxonly, "rss": rss}


def main():
    failed = 0
    for name in sys.argv[2:] or TESTS:
        folder = tempfile.mkdtemp(prefix="tagwire-testpmd-")
        started = time.monotonic()
        try:
            TESTS[name](folder)
            print(f"ok      {name} ({time.monotonic() - started:.1f} s)")
        except Failed as error:
            failed += 1
            print(f"FAILED  {name}: {error}")
        finally:
            shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
