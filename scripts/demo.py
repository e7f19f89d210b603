#!/usr/bin/env python3
"""The steps of ./run demo: a server, three clients one after the other, one table.

Started by scripts/demo.sh, which cares for hugepages. Ends only processes that it
started, and removes the temporary folder, also after an error or Ctrl-C.
"""
import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

LICENSES = "/usr/share/common-licenses"
SERVER_IP, CLIENT_IP = "10.77.0.1", "10.77.0.2"
SERVER_MAC, CLIENT_MAC = "02:54:57:00:00:01", "02:54:57:00:00:02"


class DemoError(Exception):
    """What failed, for people."""


def say(text):
    print(f"demo: {text}", file=sys.stderr, flush=True)


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def generate(path, size):
    """Pseudo-random bytes: nothing on the way could compress or guess them."""
    source = random.Random(20)
    with open(path, "wb") as file:
        for start in range(0, size, 1 << 20):
            file.write(source.randbytes(min(1 << 20, size - start)))


def core_lists():
    """EAL arguments that keep the two processes on different cores, if there are two."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return [["--lcores", f"0@{cores[0]}"]] * 2
    return [["--lcores", f"0@{cores[0]}"], ["--lcores", f"0@{cores[1]}"]]


class Demo:
    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="tagwire-demo-", dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.wire = f"switch:tagwire-demo-{os.getpid()}"
        self.server = None
        self.client = None
        self.server_cores, self.client_cores = core_lists()
        self.memory = ["--no-huge", "-m", "512", "--no-shconf"] if options.no_huge else ["--in-memory"]

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def command(self, mac, cores, *arguments):
        build = self.options.build
        return [
            f"{build}/drivers/softcx/softcx-run", "--wire", self.wire, "--mac", mac,
            f"{build}/app/perf/tagwire-perf", *cores, *self.memory, "--", *arguments,
        ]

    def prepare(self):
        for name in ("to-server", "to-client", "on-server", "on-client"):
            os.mkdir(self.path(name))
        megabytes = 16 if self.options.quick else 256
        say(f"generating a file of {megabytes} MiB")
        generate(self.path("to-server", "random-bytes"), megabytes << 20)
        # The other direction gets the same bytes, under the same name.
        os.link(self.path("to-server", "random-bytes"), self.path("to-client", "random-bytes"))

    def start_server(self):
        say(f"starting the server at {SERVER_IP} and clients at {CLIENT_IP}, wire {self.wire}")
        self.log = open(self.path("server.log"), "w")
        self.server = subprocess.Popen(
            self.command(SERVER_MAC, self.server_cores, "server", "--keep", "--ip", SERVER_IP,
                         "--dir", self.path("on-server"), "--json", self.path("server.json"),
                         "--share", LICENSES, self.path("to-client", "random-bytes")),
            stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
        deadline = time.monotonic() + 30
        while "waiting for" not in open(self.path("server.log")).read():
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise DemoError("the server did not start:\n" + self.server_log())
            time.sleep(0.05)

    def server_log(self):
        with open(self.path("server.log")) as log:
            return textwrap.indent("".join(log.readlines()[-15:]), "    ")

    def run_client(self, title, *arguments):
        say(title)
        result = self.path(f"client-{arguments[0]}.json")
        log_path = self.path(f"client-{arguments[0]}.log")
        command = self.command(CLIENT_MAC, self.client_cores, "client", SERVER_IP, "--ip", CLIENT_IP,
                               "--dir", self.path("on-client"), "--json", result, *arguments)
        with open(log_path, "w") as log:
            # Standard error is the terminal's: the progress display is there.
            self.client = subprocess.Popen(command, stdout=log, start_new_session=True)
            status = self.client.wait(timeout=self.options.patience)
            self.client = None
        if status != 0:
            raise DemoError(f"'{' '.join(arguments)}' ended with status {status}\n"
                            f"the server said:\n{self.server_log()}")
        with open(result) as file:
            document = json.load(file)
        if not document["complete"]:
            raise DemoError(f"'{arguments[0]}' says that it is not complete")
        return document

    def stop_server(self):
        self.server.send_signal(signal.SIGINT)
        status = self.server.wait(timeout=15)
        self.server = None
        if status != 0:
            raise DemoError(f"the server ended with status {status}:\n{self.server_log()}")
        with open(self.path("server.json")) as file:
            return json.load(file)

    def check_files(self, rows, sources, received_in):
        """Compares what lies on the disk, not what the programs say."""
        right = 0
        for row in rows:
            name = row["name"]
            source = sources[name]
            copy = os.path.join(received_in, name)
            digests = {sha256_of(source), sha256_of(copy), row["sha256"]}
            if len(digests) != 1 or os.path.getsize(source) != row["size"]:
                raise DemoError(f"{name} arrived wrong: {digests}")
            right += 1
        if right != len(sources):
            raise DemoError(f"{right} of {len(sources)} files arrived")

    def sources(self, folder):
        found = {"random-bytes": self.path(folder, "random-bytes")}
        for name in os.listdir(LICENSES):
            if os.path.isfile(os.path.join(LICENSES, name)):
                found[f"common-licenses/{name}"] = os.path.join(LICENSES, name)
        return found

    def run(self):
        started = time.monotonic()
        self.prepare()
        self.start_server()
        quick = self.options.quick
        files = self.run_client("sending files both ways, as tagged messages of mixed sizes", "file",
                                LICENSES, self.path("to-server", "random-bytes"), "--fetch")
        pingpong = self.run_client("ping-pong", "pingpong", "-s", "8,1K,64K", "-n", "500" if quick else "3000",
                                   "-W", "300")
        stream = self.run_client("stream", "stream", "-s", "8,1K,64K", "-n", "2000" if quick else "10000",
                                 "-W", "300", "-c")
        server = self.stop_server()

        say("comparing SHA-256 of every file on the disk")
        sent = [row for row in files["results"] if row["direction"] == "sent"]
        received = [row for row in files["results"] if row["direction"] == "received"]
        self.check_files(sent, self.sources("to-server"), self.path("on-server"))
        self.check_files(received, self.sources("to-client"), self.path("on-client"))
        seen_by_server = [row["sha256"] for row in server["results"] if row["test"] == "file"]
        if seen_by_server != [row["sha256"] for row in sent + received]:
            raise DemoError("server and client report different SHA-256")
        self.print_table(files["path"], sent, received, pingpong, stream, time.monotonic() - started)

    def print_table(self, path, sent, received, pingpong, stream, seconds):
        rows = [(f"files, {way}", file_result(part),
                 f"SHA-256 equal for all {len(part)}, at the sender, the receiver and on the disk")
                for way, part in (("client to server", sent), ("server to client", received))]
        for row in pingpong["results"]:
            rows.append((f"ping-pong, {size(row['size'])}",
                         f"p50 {row['p50_us']:.1f} us, p99 {row['p99_us']:.1f} us",
                         f"half of a round trip, {row['iterations']} of them"))
        for row in stream["results"]:
            rows.append((f"stream, {size(row['size'])}",
                         f"{row['messages_per_second'] / 1e3:.1f} thousand/s, "
                         f"{row['megabytes_per_second']:.1f} MB/s",
                         f"one way, {row['messages']} messages, contents of each checked"))
        print()
        print(f"Tagwire demo: everything arrived right ({seconds:.0f} s)")
        print()
        print_columns([
            ("port driver", path["driver"], f"poll-mode driver of this repository, port {path['port']}, MTU {path['mtu']}"),
            ("device", path["device"], path["wire"]),
            ("wire", self.wire, "a learning switch in shared memory between the two processes"),
            ("memory", path["memory"], self.options.memory),
            ("processes", f"{SERVER_IP}, {CLIENT_IP}", self.describe_cores()),
        ])
        print()
        print_columns([("step", "result", "what it means"), None, *rows])
        print()
        print("The times are those of a software device on this machine's cores, not of a card.")

    def describe_cores(self):
        if self.server_cores == self.client_cores:
            return "both poll on the same core: there is only one, and the times show it"
        return (f"server polls on core {self.server_cores[1][2:]}, client on core {self.client_cores[1][2:]}")

    def clean_up(self):
        for process in (self.client, self.server):
            if process is not None and process.poll() is None:
                process.terminate()
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        try:
            # Left only when the last process of the wire had to be killed.
            os.unlink("/dev/shm/softcx-" + self.wire.partition(":")[2])
        except FileNotFoundError:
            pass
        if self.options.keep_files:
            say(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def size(count):
    return f"{count} B" if count < 1024 else f"{count // 1024} KiB"


def file_result(rows):
    total = sum(row["size"] for row in rows)
    messages = sum(row["messages"] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    return f"{len(rows)} files, {total / 1e6:.1f} MB, {messages} messages, {total / 1e6 / seconds:.0f} MB/s"


def print_columns(rows):
    columns = [max(len(row[i]) for row in rows if row) for i in range(3)]
    for row in rows:
        row = row or tuple("-" * width for width in columns)
        print("  " + "  ".join(text.ljust(width) for text, width in zip(row, columns)).rstrip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--memory", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep-files", action="store_true")
    parser.add_argument("--no-huge", action="store_true")
    parser.add_argument("--patience", type=float, default=600, help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    demo = Demo(options)
    try:
        demo.run()
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except (DemoError, OSError, subprocess.TimeoutExpired, KeyError) as error:
        say(f"error: {error}")
        say("./run doctor checks this machine; ./run demo --keep-files leaves the logs")
        return 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        demo.clean_up()
    return 0


if __name__ == "__main__":
    sys.exit(main())
