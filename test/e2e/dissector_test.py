#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/wireshark/tagwire.lua against captures of simulated conversations.

    dissector_test.py SIM_TEST      exit status 77 (skipped) where tshark is not installed
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PORT = 4791  # the simulator's
FIELDS = ("udp.length", "tagwire.type", "tagwire.version", "tagwire.tag", "tagwire.length", "tagwire.kind",
          "_ws.malformed", "_ws.lua", "_ws.col.Info")
# Tests of tagwire_sim_test whose conversations together have every type of packet but PROBE, RESET and OPERATIONS.
CONVERSATIONS = (
    "Matching.UnexpectedMessagesMatchInSendingOrderWhateverTheirSize",
    "Matching.ShutdownDeliversWhatWasSentAndTellsThePeer",
    "Keys.that_are_wrong_are_refused_and_counted_and_nothing_is_delivered",
    "Keys.of_the_vector_select_messages_for_receives",
    "Untagged.arrive_in_order_in_receives_posted_before_and_after",
    "Untagged.can_be_cancelled_and_truncated",
)
PATIENCE = 120


class Dissector(unittest.TestCase):
    sim_test = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tagwire-dissector-")
        cls.addClassCleanup(folder.cleanup)
        path = os.path.join(folder.name, "conversations.pcap")
        subprocess.run([cls.sim_test, "--gtest_filter=" + ":".join(CONVERSATIONS)], check=True, timeout=PATIENCE,
                       env=dict(os.environ, TAGWIRE_SIM_PCAP=path), stdout=subprocess.DEVNULL)
        command = ["tshark", "-X", f"lua_script:{ROOT}/scripts/wireshark/tagwire.lua", "-d", f"udp.port=={PORT},tagwire",
                   "-r", path, "-T", "fields", "-E", "separator=/t"]
        for field in FIELDS:
            command += ["-e", field]
        shown = subprocess.run(command, check=True, timeout=PATIENCE, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        cls.errors = "\n".join(line for line in shown.stderr.splitlines() if "Running as user" not in line)
        frames = [dict(zip(FIELDS, line.split("\t"))) for line in shown.stdout.splitlines()]
        cls.bad = [frame for frame in frames if frame["_ws.malformed"] or frame["_ws.lua"]]
        cls.frames = [frame for frame in frames if frame["udp.length"]]

    def test_nothing_is_malformed_and_lua_has_no_error(self):
        self.assertEqual(self.errors, "")
        self.assertEqual(self.bad, [])

    def test_every_frame_is_taken(self):
        self.assertGreater(len(self.frames), 1000)
        for frame in self.frames:
            self.assertEqual(frame["tagwire.version"], "1", frame)

    def test_the_types_of_a_conversation_are_told(self):
        seen = {int(frame["tagwire.type"]) for frame in self.frames}
        self.assertLessEqual({1, 2, 3, 4, 5, 7, 8, 9, 10, 11}, seen)
        for frame in self.frames:
            self.assertNotIn("type ", frame["_ws.col.Info"])

    def test_records_and_first_packets_have_their_tags(self):
        tags = {tag for frame in self.frames if frame["tagwire.type"] == "1" for tag in frame["tagwire.tag"].split(",")}
        self.assertIn("0x0000000000000001", tags)
        first = [frame for frame in self.frames if frame["tagwire.type"] == "2"]
        self.assertTrue(all(frame["tagwire.tag"] and frame["tagwire.length"] and frame["tagwire.kind"] for frame in first))


if __name__ == "__main__":
    Dissector.sim_test = sys.argv.pop(1)
    if shutil.which("tshark") is None:
        print("skipped: tshark is not installed (apt-get install tshark)")
        sys.exit(77)
    unittest.main(verbosity=2)
