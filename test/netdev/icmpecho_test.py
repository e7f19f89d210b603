#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stock dpdk-testpmd answers Linux: ping -f from another network namespace, over a veth whose
one end is the wire of a softcx device. tcpdump at the other end must decode every frame.

usage: icmpecho_test.py BUILD_DIR [net_mlx5raw | net_mlx5] [COUNT]
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mlx5raw"))
import testpmd  # noqa: E402  (it reads BUILD_DIR from sys.argv)
from testpmd import Failed, check  # noqa: E402

DRIVER = sys.argv[2] if len(sys.argv) > 2 else "net_mlx5raw"
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
SKIPPED = 77  # Meson's status for a test that was not run
CLONE_NEWNET = 0x40000000
NEAR, FAR = "sx0", "sx1"
LINUX, DEVICE = "192.0.2.1", "192.0.2.2"
VLAN_LINUX, VLAN_DEVICE = "198.51.100.1", "198.51.100.2"


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(SKIPPED)


class Peer:
    """Another network namespace, that of a process that sleeps there; it goes with it."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        mine = os.readlink("/proc/self/ns/net")
        end = time.monotonic() + 30
        while os.readlink(f"/proc/{self.process.pid}/ns/net") == mine:
            check(time.monotonic() < end, "no second network namespace")
            time.sleep(0.01)

    def command(self, *arguments):
        return ["nsenter", "--target", str(self.process.pid), "--net", "--", *arguments]

    def run(self, *arguments, timeout=testpmd.DEADLINE):
        return subprocess.run(self.command(*arguments), check=True, text=True, timeout=timeout,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    def wait_for_link(self):
        """The kernel brings it up by and by."""
        end = time.monotonic() + testpmd.DEADLINE
        while not re.search(r"[<,]LOWER_UP[,>].* state UP ", self.run("ip", "-o", "link", "show", FAR)):
            check(time.monotonic() < end, f"{FAR} stays down")
            time.sleep(0.05)

    def kill(self):
        self.process.kill()
        self.process.wait()


def make_network():
    for program, package in (("ip", "iproute2"), ("ping", "iputils-ping"), ("tcpdump", "tcpdump"),
                             ("nsenter", "util-linux")):
        if shutil.which(program) is None:
            skip(f"there is no {program} (apt-get install {package})")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        skip(f"no network namespace: unshare: {os.strerror(ctypes.get_errno())} (run as root)")
    peer = Peer()
    try:
        lay_cable(peer)
        return peer
    except BaseException:
        peer.kill()
        raise


def lay_cable(peer):
    made = subprocess.run(["ip", "link", "add", NEAR, "type", "veth", "peer", "name", FAR,
                           "netns", str(peer.process.pid)], stderr=subprocess.PIPE, text=True)
    if made.returncode != 0:
        skip(f"the kernel makes no veth: {made.stderr.strip()}")
    # Only what the test sends: IPv6 would speak by itself.
    quiet = "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6"
    subprocess.run(["sh", "-c", f"{quiet}; ip link set {NEAR} up"], check=True)
    peer.run("sh", "-c", f"{quiet}; ip link set lo up; ip link set {FAR} up; "
             f"ip addr add {LINUX}/24 dev {FAR}")


def add_vlan(peer):
    """False when this kernel has no VLAN devices."""
    try:
        peer.run("sh", "-e", "-c", f"ip link add link {FAR} name {FAR}.5 type vlan id 5; "
                 f"ip link set {FAR}.5 up; ip addr add {VLAN_LINUX}/24 dev {FAR}.5")
        return True
    except subprocess.CalledProcessError as error:
        print(f"without tagged frames, this kernel makes no VLAN device: {error.output.strip()}")
        return False


def ping(peer, *arguments):
    text = peer.run("ping", "-q", *arguments)
    print(text.strip().splitlines()[-2])
    match = re.search(r"(\d+) packets transmitted, (\d+) received, (\S+)% packet loss", text)
    check(match and match.group(1) == match.group(2) and match.group(3) == "0",
          f"ping {' '.join(arguments)}:\n{text}")


class Capture:
    """tcpdump at the other end."""

    def __init__(self, peer, path):
        self.path = path
        self.process = subprocess.Popen(
            peer.command("tcpdump", "-i", FAR, "-Z", "root", "-B", "65536", "-s", "0", "-w", path),
            stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        while "listening on" not in line:
            check(line, "tcpdump does not start")
            line = self.process.stderr.readline()

    def decode(self):
        """Every frame as tcpdump prints it, checksums and all."""
        time.sleep(1)  # its buffer may be behind
        self.process.terminate()
        said = self.process.communicate(timeout=testpmd.DEADLINE)[1]
        check("0 packets dropped by kernel" in said, f"tcpdump lost frames itself:\n{said}")
        listed = subprocess.run(["tcpdump", "-nn", "-vv", "-e", "-r", self.path], check=True, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                timeout=testpmd.DEADLINE)
        # A frame begins at the margin, what more there is to say of it is indented.
        frames = []
        for line in listed.stdout.splitlines():
            if line[:1].isspace():
                frames[-1] += " " + line.strip()
            else:
                frames.append(line)
        return frames

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class StockDriver(testpmd.Testpmd):
    """testpmd with DPDK's own driver, which finds the device on the PCI bus by its netdev."""

    def __init__(self, name, arguments):
        testpmd.Prompt.__init__(
            self,
            [testpmd.SOFTCX_RUN, "--netdev", NEAR, "--wire", f"netdev:{NEAR}", "--mode", "step", "--",
             "stdbuf", "-oL", "dpdk-testpmd", "-l", "0,1", "-d", testpmd.PLUGIN, "--no-huge", "-m", "1024",
             "--no-shconf", "--no-telemetry", "--file-prefix", name, "-a", "5cf0:00:00.0,dv_flow_en=0",
             "--", "-i", "--no-mlockall", f"--total-num-mbufs={testpmd.POOL}", *arguments])


def start_testpmd():
    os.environ["SOFTCX_LOG"] = "info"
    name = f"tagwire_icmpecho{os.getpid()}"
    arguments = ["--rxq=1", "--txq=1", "--forward-mode=icmpecho"]
    if DRIVER == "net_mlx5":
        return StockDriver(name, arguments)
    return testpmd.Testpmd(name, [testpmd.mlx5raw(0)], f"netdev:{NEAR}", 1, arguments)


def check_frames(frames, pings, tagged_pings):
    requests = [frame for frame in frames if "ICMP echo request" in frame]
    replies = [frame for frame in frames if "ICMP echo reply" in frame]
    arp = [frame for frame in frames if "ethertype ARP" in frame]
    check(len(requests) == pings and len(replies) == pings,
          f"{len(requests)} requests, {len(replies)} replies of {pings}")
    check(len(frames) == len(requests) + len(replies) + len(arp),
          f"{len(frames)} frames, of which some are neither ICMP nor ARP")
    for frame in frames:
        check(not re.search(r"bad |wrong|truncated|malformed|invalid|\[\||unknown", frame),
              f"tcpdump does not like: {frame}")
    tagged = [frame for frame in replies if "vlan 5" in frame]
    check(len(tagged) == tagged_pings, f"{len(tagged)} tagged replies")
    print(f"tcpdump decoded {len(frames)} frames: {len(requests)} requests, {len(replies)} replies, "
          f"{len(arp)} ARP")


LONG_PINGS, VLAN_PINGS = 50, 50


def run(peer, folder):
    pmd = capture = None
    try:
        pmd = start_testpmd()
        pmd.wait("show port info 0", lambda text: "Link status: up" in text, "the link stays down")
        peer.wait_for_link()
        pmd.command("start")
        capture = Capture(peer, f"{folder}/far.pcap")
        started = time.monotonic()
        ping(peer, "-f", "-c", str(COUNT), DEVICE)
        print(f"{COUNT} echoes in {time.monotonic() - started:.1f} s")
        ping(peer, "-f", "-c", str(LONG_PINGS), "-s", "1472", DEVICE)
        tagged = VLAN_PINGS if add_vlan(peer) else 0
        if tagged:
            ping(peer, "-f", "-c", str(tagged), VLAN_DEVICE)
        check_frames(capture.decode(), COUNT + LONG_PINGS + tagged, tagged)

        # The port's link is the veth's.
        peer.run("ip", "link", "set", FAR, "down")
        pmd.wait("show port info 0", lambda text: "Link status: down" in text, "the link stays up")
        peer.run("ip", "link", "set", FAR, "up")
        pmd.wait("show port info 0", lambda text: "Link status: up" in text, "the link stays down")
        pmd.stop_and_count_mbufs()
        pmd.quit()
        counters = re.search(r"softcx: mlx5_0: (rx_packets .*)", pmd.log)
        check(counters, f"no counters at the end:\n{pmd.log[-2000:]}")
        print(counters.group(1))
        check(not re.search("wire_|out_of_buffer|client_errors|tx_no_link", counters.group(1)),
              f"frames were lost: {counters.group(1)}")
    finally:
        for part in (capture, pmd):
            if part is not None:
                part.kill()


def main():
    peer = make_network()
    folder = tempfile.mkdtemp(prefix="tagwire-icmpecho-")
    try:
        run(peer, folder)
        print("ok")
        return 0
    except (Failed, subprocess.CalledProcessError) as error:
        print(f"FAILED: {error}\n{getattr(error, 'output', None) or ''}")
        return 1
    finally:
        peer.kill()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
