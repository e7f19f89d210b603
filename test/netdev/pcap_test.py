#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stock dpdk-testpmd between two capture files: every frame of one is in the other, in order,
with its addresses swapped.

usage: pcap_test.py BUILD_DIR
"""
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mlx5raw"))
import testpmd  # noqa: E402  (it reads BUILD_DIR from sys.argv)
from testpmd import Failed, check  # noqa: E402

ROUNDS = 5


def run(folder):
    frames = [testpmd.udp_frame(size, 1000 + size) for size in testpmd.SIZES]
    testpmd.write_pcap(f"{folder}/in.pcap", frames)
    os.environ["SOFTCX_LOG"] = "info"
    pmd = testpmd.Testpmd(f"tagwire_pcap{os.getpid()}", [testpmd.mlx5raw(0)],
                          f"pcap:in={folder}/in.pcap,out={folder}/out.pcap,loop={ROUNDS}", 1,
                          ["--rxq=1", "--txq=1", "--forward-mode=macswap"])
    try:
        pmd.command("start")
        pmd.wait("show port stats 0", lambda text: f"TX-packets: {len(frames) * ROUNDS} " in text,
                 "not all frames came through")
        pmd.stop_and_count_mbufs()
        pmd.quit()
    finally:
        pmd.kill()
    counters = re.search(r"softcx: mlx5_0: (rx_packets .*)", pmd.log)
    check(counters, f"no counters at the end:\n{pmd.log[-2000:]}")
    check(not re.search("wire_|out_of_buffer|rx_no_flow|rx_wq", counters.group(1)),
          f"frames were lost: {counters.group(1)}")
    out = testpmd.read_pcap(f"{folder}/out.pcap")
    expected = [frame[6:12] + frame[0:6] + frame[12:] for frame in frames] * ROUNDS
    check(len(out) == len(expected), f"{len(out)} of {len(expected)} frames in the file")
    for number, (got, wanted) in enumerate(zip(out, expected)):
        check(got == wanted, f"frame {number} differs: {got.hex()} is not {wanted.hex()}")
    print(f"{len(out)} frames, in order")


def main():
    folder = tempfile.mkdtemp(prefix="tagwire-pcap-")
    try:
        run(folder)
        return 0
    except Failed as error:
        print(f"FAILED: {error}")
        return 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
