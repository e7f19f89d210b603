# SPDX-License-Identifier: BSD-3-Clause
"""tagwire-testpmd processes for the tests beside this file: on a software wire, or on memif."""
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../compare"))
import prompt  # noqa: E402

# Bounds how long a hanging program may stay; no test measures time with it.
PATIENCE = 120

SOFTCX_RUN = os.environ.get("SOFTCX_RUN", "softcx-run")
TAGWIRE_TESTPMD = os.environ.get("TAGWIRE_TESTPMD", "tagwire-testpmd")
MEMORY = ["--no-huge", "-m", "320", "--no-shconf"]
CARD = "net_mlx5raw0,ibdev=mlx5_0"
FILES = 1  # the port of the capture files, in a process that has a port to others, too

_numbers = itertools.count()


def lcores(forwarding):
    """The main lcore and some that forward, on all cores that there are."""
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    return "--lcores=" + ",".join(f"{lcore}@({cores})" for lcore in range(forwarding + 1))


class Result:
    def __init__(self, status, output, errors):
        self.status, self.output, self.errors = status, output, errors

    @property
    def text(self):
        return f"status {self.status}\n--- stdout\n{self.output}\n--- stderr\n{self.errors}"


class Testpmd(prompt.Prompt):
    def __init__(self, command):
        super().__init__(command, "tagwire-testpmd> ", PATIENCE)

    def say(self, line, *expected):
        """Runs a command whose answer contains each of these."""
        text = self.command(line)
        for part in expected:
            prompt.check(part in text, f"{line!r} does not say {part!r}:\n{text}")
        return text

    def stop(self):
        return self.say("stop", "Telling cores to stop...", "\nDone.")

    def totals(self, text):
        """{"sent": n, "received": n ...} of the line that sums the messages up."""
        line = re.search(r"^  \w+: (sent \d+ .*): (right|WRONG)$", text, re.M)
        prompt.check(line, f"no sum of messages in:\n{text}")
        words = line.group(1).split()
        return dict(zip(words[0::2], map(int, words[1::2]))) | {"verdict": line.group(2)}

    def peers(self, text):
        """[(address, state, sent, sent bytes, mismatches, received, received bytes, errors)]"""
        pattern = (r"Peer (\S+): (.*)\n\s+TX-messages: (\d+)\s+TX-bytes: (\d+)\s+Mismatches: (\d+)\n"
                   r"\s+RX-messages: (\d+)\s+RX-bytes: (\d+)\s+Errors: (\d+)")
        return [(found[0], found[1], *map(int, found[2:])) for found in re.findall(pattern, text)]


class TestpmdTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="tagwire-testpmd-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.wire = f"switch:testpmd-{os.getpid()}-{next(_numbers)}"
        self.addCleanup(self.remove_wire)

    def remove_wire(self):
        """The last port of a switch removes it, unless that port's program was killed."""
        try:
            os.unlink("/dev/shm/softcx-" + self.wire.partition(":")[2])
        except FileNotFoundError:
            pass

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def command(self, *arguments, vdevs=(CARD,), wire=None, forwarding=2, eal=()):
        devices = [f"--vdev={vdev}" for vdev in vdevs]
        card = any(vdev.startswith("net_mlx5raw") for vdev in vdevs)
        softcx = [SOFTCX_RUN, "--wire", wire or self.wire] if card else []
        return [*softcx, TAGWIRE_TESTPMD, *MEMORY, "--no-pci", lcores(forwarding),
                f"--file-prefix=tt{os.getpid()}_{next(_numbers)}", *eal, *devices, "--", *arguments]

    def start(self, *arguments, **where):
        """One at its prompt."""
        program = Testpmd(self.command("-i", *arguments, **where))
        self.addCleanup(program.process.stdout.close)
        self.addCleanup(program.process.stdin.close)
        self.addCleanup(program.kill)
        return program

    def run_to_end(self, *arguments, input=b"", **where):
        command = self.command(*arguments, **where)
        done = subprocess.run(command, input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def pcap(self, number, frames=(), queues=1):
        """A device between capture files; its RX and TX file of each queue."""
        name = self.path(f"files{number}-{next(_numbers)}")
        parts = []
        for queue in range(queues):
            prompt.write_pcap(f"{name}.in{queue}", frames[queue::queues])
            parts.append(f"rx_pcap={name}.in{queue}")
        for queue in range(queues):
            parts.append(f"tx_pcap={name}.out{queue}")
        return f"net_pcap{number}," + ",".join(parts), [f"{name}.out{q}" for q in range(queues)]


def read_all(paths):
    return [frame for path in paths for frame in prompt.read_pcap(path)]


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    unittest.main(verbosity=2)
