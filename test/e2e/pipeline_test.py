#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/l2fwd_tagged in two processes on softcx: foreign frames go on bit for bit while tagged
messages are exchanged on the same queues.

    in.pcap -> port 1 of A -> port 0 of A -> switch -> port 0 of B -> port 1 of B -> out.pcap
                 (and the same from B to A)   <- messages ->
"""
import os
import re
import signal
import struct
import time

from peers import MEMORY, PATIENCE, PeersTest, Program, main

L2FWD = os.environ.get("L2FWD_TAGGED", "l2fwd_tagged")
OUR_PORT = 4791
STRANGER, OTHER = bytes([2, 0x77, 0, 0, 0, 1]), bytes([2, 0x77, 0, 0, 0, 2])


def ipv4(protocol, source, destination, payload, options=b""):
    head = struct.pack(">BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload), 7, 0, 9,
                       protocol, 0, bytes(source), bytes(destination)) + options
    words = struct.unpack(f">{len(head) // 2}H", head)
    total = sum(words)
    total = (total & 0xffff) + (total >> 16)
    return head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xffff) + head[12:] + payload


def udp(source_port, port, payload):
    return struct.pack(">HHHH", source_port, port, 8 + len(payload), 0) + payload


def ethernet(kind, payload, to=OTHER):
    return (to + STRANGER + struct.pack(">H", kind) + payload).ljust(60, b"\0")


def foreign_frames(count, salt):
    """Frames that are nobody's here; many are close to what the workers take."""
    frames = []
    for i in range(count):
        data = bytes((i * 5 + k * salt) & 0xff for k in range(i * 3 % 1400))
        here, there = [10, 77, salt, i & 0xff], [10, 78, 0, 9]
        near = udp(1000 + i, OUR_PORT + i % 3, data)
        frames.append([
            ethernet(0x0800, ipv4(17, here, there, near)),              # our UDP port, another IP
            ethernet(0x0800, ipv4(17, here, [10, 88, 0, 1], near)),     # our IP and port, another MAC
            ethernet(0x0800, ipv4(6, here, there, b"\x12\xb7" + data)),  # our port number, TCP
            ethernet(0x86dd, bytes(40) + data),
            ethernet(0x88b5, bytes([i & 0xff, salt]) + data),
            ethernet(0x8100, b"\0\5\x08\0" + ipv4(17, here, there, near)),
            ethernet(0x0800, ipv4(17, here, there, near, options=b"\1" * 8)),
            ethernet(0x0806, struct.pack(">HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1 + i % 2, STRANGER,
                                         bytes(here), bytes(6), bytes(there)), to=b"\xff" * 6),
            ethernet(0x0800, b"\x45\0"),                                # cut
            ethernet(0x0800, ipv4(17, here, there, udp(53, 53, bytes(1472)))),
        ][i % 10])
    return frames


def write_pcap(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for frame in frames:
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def read_pcap(path):
    with open(path, "rb") as file:
        data = file.read()
    frames, at = [], 24
    while at < len(data):
        length = struct.unpack_from("<IIII", data, at)[2]
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames


def counts(text):
    """Of the last line that the program printed."""
    lines = re.findall(r"messages (\d+) sent (\d+) received (\d+) wrong (\d+) failed; "
                       r"frames (\d+) forwarded (\d+) dropped", text)
    names = ("sent", "received", "wrong", "failed", "forwarded", "dropped")
    return dict(zip(names, map(int, lines[-1]))) if lines else dict.fromkeys(names, 0)


class Pipeline(PeersTest):
    def start_pipeline(self, name, ip, peer, frames, *options, cores="0"):
        queues = len(cores.split(","))
        ports = ["net_pcap0"]
        for queue in range(queues):
            write_pcap(self.path(f"{name}-in{queue}.pcap"), frames[queue::queues])
            ports.append(f"rx_pcap={self.path(f'{name}-in{queue}.pcap')}")
        ports += [f"tx_pcap={self.path(f'{name}-out{queue}.pcap')}" for queue in range(queues)]
        lcores = ",".join(f"{core}@(0-{os.cpu_count() - 1})" for core in cores.split(","))
        program = Program(self.folder, [*MEMORY, "--no-pci", "--no-telemetry", "--lcores", lcores,
                                        "--vdev", "net_mlx5raw0,ibdev=mlx5_0", "--vdev", ",".join(ports),
                                        "--", "--ip", ip, "--peer", peer, *options],
                          self.wire, executable=L2FWD)
        self.addCleanup(program.end)
        return program

    def both(self, frames_a, frames_b, *options, cores="0"):
        a = self.start_pipeline("a", self.server_ip, self.client_ip, frames_a, *options, cores=cores)
        b = self.start_pipeline("b", self.client_ip, self.server_ip, frames_b, *options, cores=cores)
        return a, b

    def wait_until(self, condition, programs):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            ended = any(p.process.poll() is not None for p in programs)
            if ended or time.monotonic() > deadline:
                self.fail("\n".join(p.finish(1).text for p in programs))
            time.sleep(0.1)

    def bit_for_bit(self, cores, *options):
        frames_a, frames_b = foreign_frames(400, 3), foreign_frames(400, 7)
        a, b = self.both(frames_a, frames_b, "--wait", *options, cores=cores)
        # Each forwards its own file's frames and the other's.
        expected = len(frames_a) + len(frames_b)
        self.wait_until(lambda: all(counts(p.output())["forwarded"] >= expected and
                                    counts(p.output())["received"] >= 100 for p in (a, b)), (a, b))
        for program in (a, b):
            program.signal(signal.SIGINT)
        for program in (a, b):
            result = self.assert_ended_right(program)
            last = counts(result.output)
            self.assertEqual((last["dropped"], last["wrong"]), (0, 0), result.text)
            # Where the kernel tells of unmapped memory they are lent, else copied.
            large = [int(number) for number in re.findall(r"large_(?:lent|copied) (\d+)", result.output)]
            (self.assertGreater if options else self.assertEqual)(sum(large), 0, result.text)
        for name, sent in (("b", frames_a), ("a", frames_b)):
            queues = [read_pcap(self.path(f"{name}-out{queue}.pcap")) for queue in range(len(cores.split(",")))]
            # The other worker's announcement of its address goes to everybody, so it is here too.
            for announcement in (frame for queue in queues for frame in queue if frame[6:12] != STRANGER):
                self.assertEqual(announcement[:6] + announcement[12:14], b"\xff" * 6 + b"\x08\x06")
            queues = [[frame for frame in queue if frame[6:12] == STRANGER] for queue in queues]
            if len(queues) == 1:
                self.assertTrue(queues[0] == sent, "one queue keeps the order")
            self.assertTrue(sorted(sum(queues, [])) == sorted(sent))

    def test_frames_pass_bit_for_bit_and_in_order_while_messages_are_exchanged(self):
        self.bit_for_bit("0")

    def test_two_queues(self):
        self.bit_for_bit("0,1")

    def test_with_large_messages_from_where_they_are(self):
        self.bit_for_bit("0", "--zero-copy", "20000")

    def test_it_ends_after_a_count(self):
        for program in self.both([], [], "--count", "60", cores="0,1"):
            result = self.assert_ended_right(program)
            last = counts(result.output)
            self.assertEqual((last["sent"], last["received"], last["wrong"]), (120, 120, 0), result.text)

    def test_an_odd_number_of_ports_is_refused_with_a_remedy(self):
        program = Program(self.folder, [*MEMORY, "--no-pci", "--no-telemetry", "--vdev", "net_null0",
                                        "--", "--ip", "10.0.0.1"], executable=L2FWD)
        result = program.finish()
        self.assertEqual(result.status, 1, result.text)
        self.assertIn("pairs of ports", result.errors)


if __name__ == "__main__":
    main()
