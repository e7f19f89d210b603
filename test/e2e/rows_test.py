#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rows T1 to T24 of fi_tagged(3), from outside, between two processes on a software wire.

    rows_test.py [ROW...]     all rows, or these, in the order given

One line for each row says what was seen; the first row that fails ends the run.
"""
import os
import socket
import subprocess
import sys
import tempfile
import unittest

import peers

TAGWIRE_ROWS = os.environ.get("TAGWIRE_ROWS", "tagwire-rows")
ROWS = [str(row) for row in range(1, 25)]


class Rows(peers.PeersTest):
    rows = ROWS

    def start_side(self, role, end):
        command = [peers.SOFTCX_RUN, "--wire", self.wire, TAGWIRE_ROWS, *peers.MEMORY, "--", role,
                   str(end.fileno()), *self.rows]
        output = tempfile.TemporaryFile("w+")
        self.addCleanup(output.close)
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, pass_fds=[end.fileno()],
                                   stdin=subprocess.DEVNULL)
        end.close()
        self.addCleanup(self.end, process)
        return process, output

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait()

    def test_every_row(self):
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sides = [self.start_side(role, end) for role, end in zip(("server", "client"), ends)]
        texts = []
        for process, output in sides:
            try:
                process.wait(timeout=peers.PATIENCE)
            except subprocess.TimeoutExpired:
                self.end(process)
            output.seek(0)
            texts.append(output.read())
        print(texts[1], flush=True)
        self.assertEqual([process.returncode for process, _ in sides], [0, 0], "\n".join(texts))
        seen = [line.split()[0] for line in texts[1].splitlines() if line.split()[1:2] == ["ok"]]
        self.assertEqual(seen, ["T" + row for row in self.rows])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Rows.rows = sys.argv[1:]
        del sys.argv[1:]
    peers.main()
