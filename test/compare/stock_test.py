#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own net_mlx5, as the distribution has it, finds two softcx devices on the PCI bus
and forwards every frame as it is.

usage: stock_test.py BUILD_DIR
"""
import os
import re
import subprocess
import sys
import tempfile

from rig import (NETDEVS, PCI, Failed, Stock, Testpmd, check, enter_namespace, netdev_mac,
                 read_pcap, write_pcap)

BUILD = os.path.abspath(sys.argv[1])


def frames_of_all_sizes():
    frames = []
    for size in range(60, 1515, 7):
        head = bytes.fromhex("020000000042" "020000000041" "88b5")
        frames.append(head + bytes((size * 3 + i) & 0xff for i in range(size - len(head))))
    return frames


def check_port(pmd, role, netdev):
    info = pmd.command(f"show port info {pmd.ports[role]}")
    for wanted in (rf"MAC address: {netdev_mac(netdev)}", r"Driver name: mlx5_pci",
                   r"Firmware-version: 16\.35\.2000", r"Link status: up", r"MTU: 1500"):
        check(re.search(wanted, info, re.I), f"port info lacks {wanted}:\n{info}")


def check_pci_bus():
    """The devices stand beside the machine's own."""
    own = set(os.listdir("/sys/bus/pci/devices")) if os.path.isdir("/sys/bus/pci") else set()
    shown = subprocess.run([f"{BUILD}/drivers/softcx/softcx-run", "--netdev", ",".join(NETDEVS), "ls",
                            "/sys/bus/pci/devices"], check=True, text=True, stdout=subprocess.PIPE)
    check(set(shown.stdout.split()) == own | set(PCI), f"devices on the bus: {shown.stdout}")


def run(folder):
    check_pci_bus()
    frames = frames_of_all_sizes()
    write_pcap(f"{folder}/source0.pcap", frames)
    pmd = Testpmd(BUILD, Stock, folder)
    try:
        check_port(pmd, "out", NETDEVS[0])
        check_port(pmd, "in", NETDEVS[1])
        pmd.command("start")
        pmd.wait_for_frames(len(frames))
        pmd.command("stop")
        octets = sum(map(len, frames))
        for role, direction in (("out", "TX"), ("in", "RX")):
            stats = pmd.stats(role)
            check(stats[f"{direction}-packets"] == len(frames), f"{role}: {stats}")
            check(stats[f"{direction}-bytes"] == octets, f"{role}: {stats}")
            check(stats["RX-errors"] + stats["TX-errors"] == 0, f"{role}: {stats}")
        pmd.check_mbufs()
        pmd.quit()
    finally:
        pmd.kill()
    check(read_pcap(f"{folder}/sink0.pcap") == frames, "the frames that came are not those sent")


def main():
    enter_namespace()
    with tempfile.TemporaryDirectory(prefix="tagwire-compare-") as folder:
        try:
            run(folder)
        except Failed as error:
            print(f"FAILED: {error}")
            return 1
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
