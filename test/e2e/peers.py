# SPDX-License-Identifier: BSD-3-Clause
"""Two tagwire-perf processes on one software wire, for the tests beside this file."""
import atexit
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# Bounds how long a hanging program may stay; no test measures time with it.
PATIENCE = 120

SOFTCX_RUN = os.environ.get("SOFTCX_RUN", "softcx-run")
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
TAGWIRE_PERF = os.environ.get("TAGWIRE_PERF", "tagwire-perf")
MEMORY = ["--no-huge", "-m", "256", "--no-shconf"]

_numbers = itertools.count()


class Result:
    def __init__(self, status, output, errors):
        self.status = status
        self.output = output
        self.errors = errors

    @property
    def text(self):
        return f"status {self.status}\n--- stdout\n{self.output}\n--- stderr\n{self.errors}"


class Program:
    """A running tagwire-perf (or another). Its output goes to files, so it never blocks on a pipe."""

    def __init__(self, folder, arguments, wire=None, mac=None, executable=TAGWIRE_PERF):
        number = next(_numbers)
        self.output_path = os.path.join(folder, f"{number}.out")
        self.errors_path = os.path.join(folder, f"{number}.err")
        prefix = []
        if wire:
            prefix = [SOFTCX_RUN, "--wire", wire] + (["--mac", mac] if mac else [])
        with open(self.output_path, "wb") as output, open(self.errors_path, "wb") as errors:
            self.process = subprocess.Popen(prefix + [executable, *arguments], stdout=output,
                                            stderr=errors, stdin=subprocess.DEVNULL)
        atexit.register(self.end)

    def output(self):
        with open(self.output_path, errors="replace") as file:
            return file.read()

    def errors(self):
        with open(self.errors_path, errors="replace") as file:
            return file.read()

    def wait_for(self, text):
        deadline = time.monotonic() + PATIENCE
        while text not in self.output() + self.errors():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no '{text}' from {self.process.args}:\n{self.finish(1).text}")
            time.sleep(0.02)

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self, patience=PATIENCE):
        try:
            status = self.process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self.end()
            status = "none: it hung"
        return Result(status, self.output(), self.errors())

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class PeersTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="tagwire-e2e-")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.wire = f"switch:e2e-{os.getpid()}-{next(_numbers)}"
        self.addCleanup(self.remove_wire)
        self.server_ip, self.client_ip = "10.88.0.1", "10.88.0.2"

    def remove_wire(self):
        """The last port of a switch removes it, unless that port's program was killed."""
        try:
            os.unlink("/dev/shm/softcx-" + self.wire.partition(":")[2])
        except FileNotFoundError:
            pass

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def make_folder(self, name):
        os.makedirs(self.path(name), exist_ok=True)
        return self.path(name)

    def start(self, *arguments, wire="", mac=None):
        program = Program(self.folder, [*MEMORY, "--", *arguments], self.wire if wire == "" else wire, mac)
        self.addCleanup(program.end)
        return program

    def start_server(self, *arguments):
        server = self.start("server", "--ip", self.server_ip, *arguments)
        server.wait_for("waiting for")
        return server

    def start_client(self, *arguments):
        return self.start("client", self.server_ip, "--ip", self.client_ip, *arguments)

    def run_client(self, *arguments):
        """To its right end; returns the JSON document."""
        path = self.path("client.json")
        result = self.start_client(*arguments, "--json", path).finish()
        self.assertEqual(result.status, 0, result.text)
        document = self.read_json(path)
        self.assertTrue(document["complete"])
        return document

    def read_json(self, path):
        with open(path) as file:
            return json.load(file)

    def assert_ended_right(self, program):
        result = program.finish()
        self.assertEqual(result.status, 0, result.text)
        return result


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    unittest.main(verbosity=2)
