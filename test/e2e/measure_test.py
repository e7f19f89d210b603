#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ping-pong and stream between two processes; the results as JSON."""
import json
import os
import unittest

import peers


class Pingpong(peers.PeersTest):
    def test_every_size_has_ordered_percentiles(self):
        server = self.start_server()
        document = self.run_client("pingpong", "-s", "0,8,1472,64K", "-n", "200", "-W", "20")
        self.assert_ended_right(server)

        self.assertEqual([row["size"] for row in document["results"]], [0, 8, 1472, 65536])
        for row in document["results"]:
            self.assertEqual(row["iterations"], 200)
            values = [row[key] for key in ("min_us", "p50_us", "p90_us", "p99_us", "p99.9_us", "max_us")]
            self.assertEqual(values, sorted(values))
            self.assertGreater(values[0], 0)

    @unittest.skipUnless(os.environ.get("TAGWIRE_TEST_SLOW"), "TAGWIRE_TEST_SLOW is not set")
    def test_messages_of_a_gibibyte(self):
        server = self.start_server()
        document = self.run_client("pingpong", "-s", "1G", "-n", "1", "-W", "0")
        self.assert_ended_right(server)
        self.assertEqual(document["results"][0]["size"], 1 << 30)

    def test_the_path_in_use_is_named(self):
        server = self.start_server()
        document = self.run_client("pingpong", "-n", "10", "-W", "0")
        self.assert_ended_right(server)

        self.assertEqual(document["path"]["driver"], "net_mlx5raw")
        self.assertIn("mlx5_0", document["path"]["device"])
        self.assertIn(self.wire, document["path"]["wire"])
        self.assertIn(self.server_ip, document["peer"])

    def test_json_on_standard_output_is_alone_there(self):
        server = self.start_server()
        client = self.start_client("pingpong", "-n", "10", "--json", "-")
        result = client.finish()
        self.assert_ended_right(server)

        self.assertEqual(result.status, 0, result.text)
        self.assertTrue(json.loads(result.output)["complete"])
        self.assertIn("p99", result.errors)


class Stream(peers.PeersTest):
    def test_every_message_arrives_right(self):
        server = self.start_server()
        document = self.run_client("stream", "-c", "-s", "0,1,8,1500,100000", "-n", "1000", "-w", "16")
        self.assert_ended_right(server)

        self.assertEqual([row["size"] for row in document["results"]], [0, 1, 8, 1500, 100000])
        for row in document["results"]:
            self.assertEqual(row["messages"], 1000)
            self.assertTrue(row["checked"])
            self.assertGreater(row["messages_per_second"], 0)

    def test_large_messages(self):
        server = self.start_server()
        document = self.run_client("stream", "-c", "-s", "8M", "-n", "4", "-W", "0", "-w", "2")
        self.assert_ended_right(server)
        self.assertEqual(document["results"][0]["size"], 8 << 20)

    def test_a_server_that_keeps_on_serves_one_client_after_the_other(self):
        server = self.start_server("--keep")
        for _ in range(3):
            self.run_client("stream", "-n", "100")
        server.signal(peers.signal.SIGINT)
        self.assert_ended_right(server)


if __name__ == "__main__":
    peers.main()
