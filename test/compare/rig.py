# SPDX-License-Identifier: BSD-3-Clause
"""testpmd on two softcx devices back to back, with either driver, in a network namespace."""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../testpmd"))
from prompt import Failed, Prompt, check, read_pcap, write_pcap  # noqa: E402,F401

DEADLINE = 120  # seconds for anything that a loaded machine may be slow at
PATIENCE = 10  # seconds for frames that should come
NETDEVS = ("sc0", "sc1")
PCI = ("5cf0:00:00.0", "5cf0:00:00.1")
CLONE_NEWNET = 0x40000000
SKIPPED = 77  # Meson's status for a test that was not run


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(SKIPPED)


def enter_namespace():
    """A network namespace of this process, with a veth for each device; it goes with us."""
    if shutil.which("ip") is None:
        skip("there is no ip command to make network devices with (apt-get install iproute2)")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        skip(f"no network namespace: unshare: {os.strerror(ctypes.get_errno())} (run as root)")
    for name in NETDEVS:
        made = subprocess.run(["ip", "link", "add", name, "mtu", "9500", "type", "veth",
                               "peer", "name", f"{name}p", "mtu", "9500"],
                              stderr=subprocess.PIPE, text=True)
        if made.returncode != 0:
            skip(f"the kernel makes no veth: {made.stderr.strip()}")
        for end in (name, f"{name}p"):
            subprocess.run(["ip", "link", "set", end, "up"], check=True)


def netdev_mac(name):
    with open(f"/proc/self/net/dev", encoding="ascii") as file:
        check(f"{name}:" in file.read(), f"{name} is not there")
    text = subprocess.run(["ip", "-o", "link", "show", name], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return re.search(r"link/ether (\S+)", text).group(1)


class Stock:
    """DPDK's own driver; without DevX and flow tables in hardware memory it is dv_flow_en=0."""
    name = "net_mlx5"

    @staticmethod
    def arguments(index, options):
        return ["-a", f"{PCI[index]},dv_flow_en=0{options}"]

    @staticmethod
    def device(index):
        return PCI[index]

    @staticmethod
    def plugins(build):
        del build
        return []


class Ours:
    name = "net_mlx5raw"

    @staticmethod
    def arguments(index, options):
        return ["--vdev", f"net_mlx5raw{index},ibdev=mlx5_{index}{options}"]

    @staticmethod
    def device(index):
        return f"net_mlx5raw{index}"

    @staticmethod
    def plugins(build):
        return ["--no-pci", "-d", f"{build}/drivers/net/mlx5raw/librte_net_mlx5raw.so"]


class Testpmd(Prompt):
    """One testpmd at its prompt: the two ports of `driver`, and a pcap port at each end.

    The frames of source.pcap go out of the first port; what the second receives comes to
    sink.pcap (a file per queue). Forwarding pairs the ports as (source, first), (second, sink).
    """

    def __init__(self, build, driver, folder, queues=1, devargs=None, arguments=(), eal=(), pool=16384):
        """`devargs`: {driver name: ",name=value"} where a driver needs one. `arguments` are
        testpmd's, `eal` EAL's."""
        extra = (devargs or {}).get(driver.name, "")
        self.driver = driver
        self.folder = folder
        self.queues = queues
        sources = [f"rx_pcap={folder}/source{q}.pcap" for q in range(queues)]
        backs = [f"tx_pcap={folder}/back{q}.pcap" for q in range(queues)]
        nothing = [f"rx_pcap={folder}/nothing.pcap" for _ in range(queues)]
        sinks = [f"tx_pcap={folder}/sink{q}.pcap" for q in range(queues)]
        write_pcap(f"{folder}/nothing.pcap", [])
        for queue in range(queues):
            if not os.path.exists(f"{folder}/source{queue}.pcap"):
                write_pcap(f"{folder}/source{queue}.pcap", [])
        # stdbuf: through a pipe testpmd would keep its output until a buffer is full.
        command = [f"{build}/drivers/softcx/softcx-run", "--netdev", ",".join(NETDEVS),
                   "--mode", "step", "--", "stdbuf", "-oL", "dpdk-testpmd", "-l", "0,1",
                   "-d", f"{build}/drivers/softcx/dpdk/librte_softcx_step.so",
                   *driver.plugins(build), "--no-huge", "-m", "1024", "--no-shconf",
                   "--no-telemetry", "--file-prefix", f"compare{os.getpid()}", *eal,
                   *driver.arguments(0, extra), *driver.arguments(1, extra),
                   "--vdev", "net_pcap0," + ",".join(sources + backs),
                   "--vdev", "net_pcap1," + ",".join(nothing + sinks),
                   # --no-flush-rx: testpmd would begin with throwing the files' frames away.
                   "--", "-i", "--no-flush-rx", "--no-mlockall", "--nb-cores=1",
                   f"--rxq={queues}", f"--txq={queues}",
                   "--rxd=1024", "--txd=1024", f"--total-num-mbufs={pool}",
                   *arguments]
        super().__init__(command, deadline=DEADLINE)
        self.ports = self.find_ports()
        self.command("set portlist {source},{out},{in},{sink}".format(**self.ports))
        self.command("set promisc all on")

    def find_ports(self):
        names = dict(re.findall(r"Infos for port (\d+) .*?Device name: (\S+)",
                                self.command("show port info all"), re.S))
        numbers = {name: int(port) for port, name in names.items()}
        wanted = {"out": self.driver.device(0), "in": self.driver.device(1),
                  "source": "net_pcap0", "sink": "net_pcap1"}
        for role, name in wanted.items():
            check(name in numbers, f"no port {name}; ports are {names}; output:\n{self.log[-4000:]}")
            wanted[role] = numbers[name]
        return wanted

    def stats(self, role):
        return super().stats(self.ports[role])

    def xstats(self, role):
        return super().xstats(self.ports[role])

    def wait_for_frames(self, count):
        self.wait(f"show port stats {self.ports['sink']}",
                  lambda text: int(re.search(r"TX-packets: (\d+)", text).group(1)) >= count,
                  f"{count} frames did not arrive")

    def send(self, frames, mode="io"):
        """Sends `frames` out of the first port; they wait in the rings of the second. Returns
        what testpmd says of the forwarding."""
        self.command(f"port stop {self.ports['source']}")  # starting opens the files again
        for queue in range(self.queues):
            write_pcap(f"{self.folder}/source{queue}.pcap", frames[queue::self.queues])
        self.command(f"port start {self.ports['source']}")
        wanted = self.stats("source")["RX-packets"] + len(frames)
        self.start(mode, "source", "out")
        self.wait(f"show port stats {self.ports['source']}",
                  lambda text: int(re.search(r"RX-packets: (\d+)", text).group(1)) >= wanted,
                  "the frames are not sent")
        return self.command("stop")

    def start_loop(self, bursts):
        """Frames of testpmd's own go round between the two ports, until stop_loop()."""
        self.command("set fwd io")
        self.command("set portlist {out},{in}".format(**self.ports))
        self.command(f"start tx_first {bursts}")

    def stop_loop(self):
        """Takes what is still on the way."""
        self.command("stop")
        self.start("rxonly", "out", "in")
        time.sleep(0.1)
        self.command("stop")

    def receive(self, expected, mode="io"):
        """The frames that wait at the second port, by queue. After `expected` frames it waits
        a moment for those that should not come; too few are no error here."""
        before = self.stats("sink")["TX-packets"]
        self.start(mode, "in", "sink")
        end = time.monotonic() + PATIENCE
        while self.stats("sink")["TX-packets"] < before + expected and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.05)
        self.command("stop")
        self.command(f"port stop {self.ports['sink']}")  # closes the files
        frames = [read_pcap(f"{self.folder}/sink{queue}.pcap") for queue in range(self.queues)]
        self.command(f"port start {self.ports['sink']}")
        return frames

    def receive_descriptions(self, expected):
        """What the second port says of each frame (testpmd's verbose output)."""
        self.command("set verbose 1")
        start = len(self.log)
        self.start("rxonly", "in", "sink")
        end = time.monotonic() + PATIENCE
        while self.log.count("ol_flags: ", start) < expected and time.monotonic() < end:
            time.sleep(0.01)
            self.command(f"show port stats {self.ports['in']}")
        time.sleep(0.05)
        self.command("stop")
        self.command("set verbose 0")
        return parse_descriptions(self.log[start:])

    def reconfigure(self, role, *lines):
        """Commands for a port that must be stopped meanwhile; what they said."""
        self.command(f"port stop {self.ports[role]}")
        said = "".join(self.command(line) for line in lines)
        text = self.command(f"port start {self.ports[role]}")
        check("Fail" not in text, f"port {role} does not start:\n{said}{text}")
        return said + text

    def start(self, mode, first, second):
        self.command(f"set fwd {mode}")
        self.command(f"set portlist {self.ports[first]},{self.ports[second]}")
        self.command("start")


def parse_descriptions(text):
    """[{field: text}] of testpmd's lines about received packets. Pieces of its prompt, which
    another thread writes, may stand before a line and between lines."""
    found = []
    pattern = (r"(src=\S+ - dst=\S+ [^\n]*- length=[^\n]*)\n"
               r"(?:(?![^\n]*(?:src=|ol_flags))[^\n]*\n)*[^\n]*?ol_flags: ([^\n]*)")
    for line, flags in re.findall(pattern, text):
        fields = dict(part.split("=", 1) for part in line.split(" - ") if "=" in part)
        for name in ("hw ptype", "sw ptype"):
            match = re.search(rf"{name}: ([^-]*)", line)
            fields[name] = match.group(1).strip() if match else ""
        fields["flags"] = " ".join(sorted(flags.split()))
        found.append({key.strip(): value.strip() for key, value in fields.items()})
    return found
