#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong ends in bounded time, with an error that names what to do."""
import os
import signal
import subprocess
import time

import peers


class Usage(peers.PeersTest):
    def assert_refused(self, *arguments):
        result = self.start(*arguments, wire=None).finish()
        self.assertEqual(result.status, 2, result.text)
        self.assertIn("error:", result.errors)

    def test_wrong_arguments_are_refused_before_anything_starts(self):
        self.assert_refused()
        self.assert_refused("sideways")
        self.assert_refused("client")
        self.assert_refused("client", "10.0.0.1")
        self.assert_refused("client", "10.0.0.1", "file")
        self.assert_refused("client", "10.0.0.1", "file", self.path("missing"))
        self.assert_refused("server", "--dir", self.path("missing"))
        self.assert_refused("client", "10.0.0.1", "pingpong", "--size", "big")
        self.assert_refused("client", "10.0.0.256", "pingpong")
        self.assert_refused("server", "--ip", "here")
        self.assert_refused("server", "--ip", "127.0.0.1")
        self.assert_refused("server", "--ip", "224.0.0.1")
        self.assert_refused("server", "--ip", "0.0.0.0")
        self.assert_refused("server", "--ip", "255.255.255.255")
        self.assert_refused("client", "10.0.0.1", "--ip", "10.0.0.1", "pingpong")
        self.assert_refused("server", "--frobnicate")

    def test_results_that_cannot_be_kept_are_refused_before_anything_starts(self):
        result = self.start("server", "--json", self.path("missing", "results.json")).finish()
        self.assertEqual(result.status, 2, result.text)
        self.assertIn("No such file or directory", result.errors)
        self.assertNotIn("path:", result.output)

    def test_a_server_that_nobody_can_reach_says_so(self):
        server = self.start("server", wire="loopback")
        server.wait_for("waiting for")
        self.assertIn("softcx-run --wire switch:NAME", server.output())
        server.signal(signal.SIGINT)
        self.assertEqual(server.finish().status, 130)

    def test_the_demo_names_its_own_options_only(self):
        result = subprocess.run(["bash", os.path.join(peers.SCRIPTS, "demo.sh"), "--nope"], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=peers.PATIENCE)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn("./run demo --help", result.stdout)
        self.assertNotIn("--build", result.stdout)

    def test_help_is_no_error(self):
        for arguments in (["--help"], ["server", "--help"], ["client", "--help"], ["--version"]):
            result = self.start(*arguments, wire=None).finish()
            self.assertEqual(result.status, 0, result.text)

    def test_a_missing_port_has_a_remedy(self):
        result = self.start("server", wire=None).finish()
        self.assertEqual(result.status, 1, result.text)
        self.assertIn("softcx-run", result.errors)

    def test_a_wrong_port_number_lists_the_right_ones(self):
        result = self.start("server", "--port", "7").finish()
        self.assertEqual(result.status, 1, result.text)
        self.assertIn("net_mlx5raw0", result.errors)


class Unreachable(peers.PeersTest):
    def test_no_server_ends_with_its_address_and_a_remedy(self):
        path = self.path("client.json")
        client = self.start_client("pingpong", "--timeout", "1", "--json", path).finish()
        self.assertEqual(client.status, 1, client.text)
        self.assertIn(self.server_ip, client.errors)
        self.assertIn("is a server running there", client.errors)
        document = self.read_json(path)
        self.assertFalse(document["complete"])
        self.assertIn(self.server_ip, document["error"]["message"])


class DeadPeer(peers.PeersTest):
    """kill -9 in the middle: the other side ends by itself, and says whom it misses."""

    ENDLESS = ("stream", "-s", "4K", "-n", str(1 << 36), "--timeout", "2")

    def test_a_killed_server(self):
        server = self.start_server("--timeout", "2")
        client = self.start_client(*self.ENDLESS)
        client.wait_for("connected")
        time.sleep(0.5)
        server.signal(signal.SIGKILL)
        result = client.finish()
        self.assertEqual(result.status, 1, result.text)
        self.assertIn(self.server_ip, result.errors)

    def test_a_killed_client(self):
        server = self.start_server("--timeout", "2")
        client = self.start_client(*self.ENDLESS)
        client.wait_for("connected")
        time.sleep(0.5)
        client.signal(signal.SIGKILL)
        result = server.finish()
        self.assertEqual(result.status, 1, result.text)
        self.assertIn(self.client_ip, result.errors)

    def test_the_next_client_is_served_after_one_was_killed(self):
        server = self.start_server("--timeout", "2", "--keep")
        client = self.start_client(*self.ENDLESS)
        client.wait_for("connected")
        time.sleep(0.5)
        client.signal(signal.SIGKILL)
        server.wait_for("waiting for the next client")
        self.run_client("stream", "-n", "100", "-c")
        server.signal(signal.SIGINT)
        self.assert_ended_right(server)

    def test_a_file_of_a_killed_sender_does_not_appear(self):
        with open(self.path("large"), "wb") as file:
            file.truncate(1 << 36)  # sparse: takes far longer than the test
        inbox = self.make_folder("inbox")
        server = self.start_server("--timeout", "2", "--dir", inbox)
        client = self.start_client("file", self.path("large"))
        client.wait_for("connected")
        while not os.listdir(inbox):
            self.assertIsNone(client.process.poll())
            time.sleep(0.02)
        client.signal(signal.SIGKILL)
        self.assertEqual(server.finish().status, 1)
        self.assertEqual(os.listdir(inbox), [])


class Interrupt(peers.PeersTest):
    def test_partial_results_are_printed_and_the_server_is_told(self):
        path = self.path("client.json")
        server = self.start_server()
        client = self.start_client("stream", "-s", "64", "-n", str(1 << 36), "--json", path)
        client.wait_for("connected")
        time.sleep(1)
        client.signal(signal.SIGINT)
        result = client.finish()
        self.assertEqual(result.status, 130, result.text)
        document = self.read_json(path)
        self.assertFalse(document["complete"])
        self.assertTrue(document["results"][0]["partial"])
        self.assertGreater(document["results"][0]["messages"], 0)
        told = server.finish()
        self.assertEqual(told.status, 1, told.text)
        self.assertIn("gave up", told.errors)

    def test_a_waiting_server_ends(self):
        server = self.start_server()
        server.signal(signal.SIGINT)
        self.assertEqual(server.finish().status, 130)


if __name__ == "__main__":
    peers.main()
