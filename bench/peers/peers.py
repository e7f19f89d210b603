# SPDX-License-Identifier: BSD-3-Clause
"""Medians of 8-byte latency and message rate of tagwire, UCX and libfabric, measured in turn.

Started by scripts/bench-peers.sh, which tells how each is measured. Ends only processes that
it started.
"""
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # of one measurement; each takes some seconds at most
# Every peer has at least as much to do as makes its figure steady.
ROUND_TRIPS, MESSAGES = 30000, 300000
TCP_ROUND_TRIPS, TCP_MESSAGES = 10000, 100000
WANTED = 5  # times better than TCP
LATE = "did not end in time"


class Failed(Exception):
    """A measurement that could not be made."""


def cores():
    allowed = sorted(os.sched_getaffinity(0))
    return [allowed[0], allowed[1 % len(allowed)]]


CORES = cores()


@contextlib.contextmanager
def running(command, **options):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def output_of(command, **options):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=PATIENCE, **options)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command[0]} {LATE}") from error
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Tagwire:
    def __init__(self, build):
        self.run = os.path.join(build, "drivers/softcx/softcx-run")
        self.perf = os.path.join(build, "app/perf/tagwire-perf")

    def command(self, wire, core, *arguments):
        return [self.run, "--wire", wire, self.perf, f"--lcores=0@{CORES[core]}", "--", *arguments]

    def client(self, wire, *test):
        document = json.loads(output_of(self.command(wire, 1, "client", "10.89.0.1", "--ip", "10.89.0.2",
                                                     "--no-progress", "--json", "-", *test)))
        return document["results"][0]

    def measure(self):
        wire = f"switch:bench-{os.getpid()}"
        with tempfile.TemporaryFile("w+") as log, running(
                self.command(wire, 0, "server", "--keep", "--ip", "10.89.0.1"), stdout=log, stderr=log) as server:
            end = time.monotonic() + PATIENCE
            text = ""
            while "waiting for" not in text:
                if server.poll() is not None or time.monotonic() > end:
                    raise Failed("tagwire-perf does not start: " + text)
                time.sleep(0.05)
                log.seek(0)
                text = log.read()
            latency = self.client(wire, "pingpong", "-s", "8", "-n", str(ROUND_TRIPS))["p50_us"]
            rate = self.client(wire, "stream", "-s", "8", "-n", str(MESSAGES))["messages_per_second"]
            server.send_signal(signal.SIGINT)
            server.wait(timeout=PATIENCE)
        return latency, rate


class Ucx:
    def __init__(self, transport):
        self.environment = dict(os.environ, UCX_TLS=transport, UCX_WARN_UNUSED_ENV_VARS="n")
        self.tcp = transport == "tcp"
        if self.tcp:
            self.environment["UCX_NET_DEVICES"] = "lo"
        self.port = 20000 + os.getpid() % 10000

    def perftest(self, core, *arguments):
        return ["taskset", "-c", str(CORES[core]), "ucx_perftest", *arguments]

    def figures(self, test, count):
        """The numbers of the last line: iterations, percentile, average latency, overall, MB/s, MB/s, rates."""
        self.port += 1
        with running(self.perftest(0, "-p", str(self.port)), env=self.environment, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL):
            end = time.monotonic() + PATIENCE
            while not is_listening(self.port):
                if time.monotonic() > end:
                    raise Failed("ucx_perftest does not listen")
                time.sleep(0.02)
            text = output_of(self.perftest(1, "127.0.0.1", "-p", str(self.port), "-t", test, "-s", "8",
                                           "-n", str(count), "-w", "1000", "-f", "-v"), env=self.environment)
        return [float(number) for number in text.strip().splitlines()[-1].split(",")]

    def measure(self):
        latency = self.figures("tag_lat", TCP_ROUND_TRIPS if self.tcp else ROUND_TRIPS)[1]
        rate = self.figures("tag_bw", TCP_MESSAGES if self.tcp else MESSAGES)[-1]
        return latency, rate


def is_listening(port):
    """Without a connection, which the server would take for its client."""
    with open("/proc/net/tcp") as table:
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in table)


class Fabric:
    def __init__(self, build, provider):
        self.command = [os.path.join(build, "bench/peers/fabric_pair"), provider]
        counts = (TCP_ROUND_TRIPS, TCP_MESSAGES) if provider.startswith("tcp") else (ROUND_TRIPS, MESSAGES)
        self.command += [str(count) for count in counts]

    def measure(self):
        latency, rate = output_of(self.command).split()
        return float(latency), float(rate)


def main():
    build, rounds = sys.argv[1], int(sys.argv[2])
    peers = {
        "tagwire, softcx": Tagwire(build),
        "UCX, posix": Ucx("posix"),
        "UCX, tcp": Ucx("tcp"),
        "libfabric, shm": Fabric(build, "shm"),
        "libfabric, tcp": Fabric(build, "tcp;ofi_rxm"),
    }
    seen = {name: [] for name in peers}
    for number in range(rounds):
        for name, peer in peers.items():
            print(f"bench-peers: round {number + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
            try:
                seen[name].append(peer.measure())
            except Failed as error:
                print(f"bench-peers: error: {name}: {error}", file=sys.stderr)
                return 1
    print(f"8-byte tagged messages between two processes: medians of {rounds} rounds (lowest to highest)\n")
    print(f"{'':18}{'latency, us':>24}{'million messages/s':>28}{'tagwire is':>34}")
    median = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in seen.items()}
    ours = median["tagwire, softcx"]
    missed = []
    for name, rows in seen.items():
        latencies, rates = zip(*rows)
        row = (f"{name:18}{median[name][0]:8.2f} ({min(latencies):.2f} to {max(latencies):.2f})".ljust(46) +
               f"{median[name][1] / 1e6:8.3f} ({min(rates) / 1e6:.3f} to {max(rates) / 1e6:.3f})".ljust(32))
        if peers[name] is not peers["tagwire, softcx"]:
            ratios = (median[name][0] / ours[0], ours[1] / median[name][1])
            row += f"{ratios[0]:6.2f} times faster, {ratios[1]:6.2f} times the rate"
            if "tcp" in name and min(ratios) < WANTED:
                missed.append(name)
        print(row)
    print("\nLatency: half of a round trip. Rate: one way, at the receiver.")
    for name in missed:
        print(f"NOT REACHED: {WANTED} times better than {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
