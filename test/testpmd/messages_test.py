#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tagged messages between two tagwire-testpmd processes, with plain frames on the same queues."""
import re
import time

import programs
from frames import mixed
from programs import FILES, read_all

QUEUES = ["--rxq=2", "--txq=2", "--rss-udp", "--rxd=2048", "--no-flush-rx"]
SIZES = "0,1,8,63,257,1500,4K,20000,64K"
SIZE_LIST = [0, 1, 8, 63, 257, 1500, 4096, 20000, 65536]
FRAMES = 300


def total_bytes(count):
    return sum(SIZE_LIST[i % len(SIZE_LIST)] for i in range(count))


def wait_for_forwarded(program, count):
    program.wait(f"show port stats {FILES}",
                 lambda text: int(re.search(r"TX-packets: (\d+)", text).group(1)) >= count,
                 "the plain frames are not forwarded")


def foreign(paths):
    """Without ARP: who announces an address tells all."""
    return [frame for frame in read_all(paths) if frame[12:14] != b"\x08\x06"]


class Exchange(programs.TestpmdTest):
    """What is the same on every kind of port: `devices` are the two that join two processes."""

    def start_pair(self, mode, plain, *generator):
        """(generator, responder), each with a port and a pair of capture files behind it."""
        responder_files, self.responder_out = self.pcap(1, queues=2)
        generator_files, self.generator_out = self.pcap(1, queues=2)
        responder_port, generator_port = self.devices()
        responder = self.start(f"--forward-mode={mode},{plain}", "--tag-ip=10.0.0.1", "--tag-portmask=1",
                               *QUEUES, "--disable-link-check", vdevs=(responder_port, responder_files))
        responder.say("start", f"{mode} on port 0 at 10.0.0.1:18515")
        generator = self.start("--tag-ip=10.0.0.2", "--tag-peer=10.0.0.1", "--tag-portmask=1",
                               f"--forward-mode=taggen,{plain}", f"--tag-size={SIZES}", *generator,
                               *QUEUES, "--disable-link-check", vdevs=(generator_port, generator_files))
        return generator, responder

    def exchange(self, mode, count, *generator):
        """A number of messages from each queue, counted and verified on both sides."""
        generator, responder = self.start_pair(mode, "io", f"--tag-count={count}", *generator)
        generator.say("start", "taggen on port 0 at 10.0.0.2:18515")
        generator.say(f"wait tag {programs.PATIENCE}", "Done.")
        octets = total_bytes(count)
        echoes = mode == "tagecho"
        back = (count, octets) if echoes else (0, 0)
        peers = generator.peers(generator.say("show tag peers"))
        for address, state, *numbers in peers:
            self.assertEqual(state, f"{mode} done", address)
            self.assertEqual(numbers, [count, octets, 0, *back, 0], address)
        theirs = responder.peers(responder.say("show tag peers"))
        self.assertEqual(len(theirs), len(peers))
        for address, state, *numbers in theirs:
            self.assertEqual(state, "taggen done", address)
            self.assertEqual(numbers, [*back, 0, count, octets, 0], address)
        for program in (generator, responder):
            totals = program.totals(program.stop())
            self.assertEqual(totals["verdict"], "right")
            self.assertEqual([totals[name] for name in ("mismatches", "errors", "strangers")], [0, 0, 0])
            program.say("show tag match", "matched_posted: ")
            program.say("show tag cq", "error_completions: 0")
        return generator, responder, peers

    def end(self, *testpmds):
        for program in testpmds:
            program.check_mbufs()
        for program in testpmds:
            program.quit()


class Switch(Exchange):
    def devices(self):
        return programs.CARD, programs.CARD

    def test_two_queues_exchange_verified_messages_with_an_echo(self):
        generator, responder, peers = self.exchange("tagecho", 600)
        self.assertEqual([peer[0] for peer in peers], ["10.0.0.1:18515", "10.0.0.1:18516"])
        self.end(generator, responder)

    def test_two_queues_send_verified_messages_to_a_sink(self):
        self.end(*self.exchange("tagsink", 600)[:2])

    def test_every_queue_speaks_to_every_queue_by_ring(self):
        generator, responder, peers = self.exchange("tagecho", 200, "--tag-pairing=all",
                                                    "--tag-steering=ring")
        self.assertEqual(len(peers), 4)
        self.assertRegex(generator.command("show tag peers"), r"handed to other queues: [1-9]")
        self.end(generator, responder)

    def test_plain_frames_are_forwarded_meanwhile_bit_for_bit(self):
        generator, responder = self.start_pair("tagecho", "io", "--tag-count=0")
        generator.say("start")
        running = lambda text: text.count("tagecho running") == 2  # noqa: E731
        generator.wait("show tag peers", running, "the messages do not begin")
        before = sum(peer[5] for peer in generator.peers(generator.say("show tag peers")))

        injector, frames = self.inject(generator, responder)
        generator.wait("show tag peers",
                       lambda text: sum(peer[5] for peer in generator.peers(text)) > before + 100,
                       "no messages beside the frames")
        injector.stop()
        totals = generator.totals(generator.stop())
        self.assertEqual(totals["verdict"], "right", generator.log[-4000:])
        self.assertEqual(totals["sent"], totals["received"])
        text = responder.stop()
        self.assertEqual(responder.totals(text)["received"], totals["sent"])
        self.assertRegex(text, r"CPU cycles/packet=\d+\.\d\d .*io packets=\d+")
        self.assertRegex(text, r"CPU cycles/message-frame=\d+\.\d\d .*tagecho message-frames=\d+")
        self.end(generator, responder, injector)
        for paths in (self.generator_out, self.responder_out):
            self.assertEqual(sorted(foreign(paths)), sorted(frames))

    def test_plain_frames_are_readdressed_meanwhile(self):
        generator, responder = self.start_pair("tagsink", "mac", "--tag-count=0", "--eth-peer=1,02:00:00:00:00:77")
        generator.say("start")
        generator.wait("show tag peers", lambda text: text.count("tagsink running") == 2,
                       "the messages do not begin")
        injector, frames = self.inject(generator, responder)
        injector.stop()
        self.assertEqual(generator.totals(generator.stop())["verdict"], "right")
        self.assertEqual(responder.totals(responder.stop())["verdict"], "right")
        mac = self.mac_of(generator, FILES)
        self.end(generator, responder, injector)
        self.assertEqual(sorted(foreign(self.generator_out)),
                         sorted(bytes.fromhex("020000000077") + mac + frame[12:] for frame in frames))

    def inject(self, *receivers):
        """A third station on the switch sends to nobody's address: all get a copy. Returns when
        they forwarded them."""
        frames = mixed(FRAMES)
        wanted = [program.stats(FILES)["TX-packets"] + FRAMES for program in receivers]
        files, _ = self.pcap(1, frames)
        injector = self.start("--no-flush-rx", vdevs=(programs.CARD, files), forwarding=1)
        injector.say("start")
        for program, count in zip(receivers, wanted):
            wait_for_forwarded(program, count)
        return injector, frames

    @staticmethod
    def mac_of(program, port):
        text = program.command(f"show port info {port}")
        return bytes.fromhex(text.partition("MAC address: ")[2][:17].replace(":", ""))


class Memif(Exchange):
    """Neither flow rules nor RSS: each queue is a ring of its own."""

    def devices(self):
        socket = self.path("memif.sock")
        return f"net_memif0,role=server,socket={socket}", f"net_memif0,role=client,socket={socket}"

    def test_two_queues_exchange_verified_messages_with_an_echo(self):
        self.end(*self.exchange("tagecho", 600)[:2])

    def test_two_queues_send_verified_messages_to_a_sink(self):
        self.end(*self.exchange("tagsink", 600)[:2])

    def test_frames_for_another_queue_are_handed_to_its_lcore(self):
        generator, responder, _ = self.exchange("tagecho", 200, "--tag-pairing=all")
        for program in (generator, responder):
            program.say("show tag peers", "ring full: 0")
            self.assertRegex(program.command("show tag peers"), r"handed to other queues: [1-9]")
        self.end(generator, responder)

    def test_plain_frames_pass_through_both_meanwhile_bit_for_bit(self):
        """The generator's other port is a memif, too, to a source of frames."""
        responder_files, responder_out = self.pcap(1, queues=2)
        responder_port, generator_port = self.devices()
        far = self.path("far.sock")
        common = ["--tag-portmask=1", *QUEUES, "--disable-link-check"]
        responder = self.start("--forward-mode=tagecho,io", "--tag-ip=10.0.0.1", *common,
                               vdevs=(responder_port, responder_files))
        responder.say("start")
        generator = self.start("--forward-mode=taggen,io", "--tag-ip=10.0.0.2", "--tag-peer=10.0.0.1",
                               f"--tag-size={SIZES}", *common,
                               vdevs=(generator_port, f"net_memif1,role=server,id=1,socket={far}"))
        generator.say("start")
        generator.wait("show tag peers", lambda text: text.count("tagecho running") == 2,
                       "the messages do not begin")
        frames = mixed(FRAMES)
        wanted = responder.stats(FILES)["TX-packets"] + FRAMES
        files, _ = self.pcap(1, frames, queues=2)
        injector = self.start(*QUEUES, vdevs=(f"net_memif0,role=client,id=1,socket={far}", files))
        injector.say("start")
        wait_for_forwarded(responder, wanted)
        totals = generator.totals(generator.stop())
        self.assertEqual(totals["verdict"], "right", generator.log[-4000:])
        self.assertGreater(totals["received"], 0)
        self.assertEqual(responder.totals(responder.stop())["received"], totals["sent"])
        injector.stop()
        self.end(generator, responder, injector)
        self.assertEqual(sorted(foreign(responder_out)), sorted(frames))


class Life(programs.TestpmdTest):
    """Start and stop, peers that come and go."""

    def start_responder(self, *arguments):
        responder = self.start("--forward-mode=tagecho", "--tag-ip=10.0.0.1", "--rxq=2", "--txq=2", *arguments)
        responder.say("start")
        return responder

    def start_generator(self, *arguments):
        return self.start("--forward-mode=taggen", "--tag-ip=10.0.0.2", "--tag-peer=10.0.0.1", "--rxq=2",
                          "--txq=2", *arguments)

    def test_many_starts_and_stops_lose_no_mbuf(self):
        responder = self.start_responder()
        generator = self.start_generator("--tag-count=20", "--tag-size=8,4K")
        for _ in range(10):
            generator.say("start")
            generator.say(f"wait tag {programs.PATIENCE}", "Done.")
            self.assertEqual(generator.totals(generator.stop())["received"], 40)
            generator.check_mbufs()
            generator.say("port start all", "Done")
        for _ in range(5):
            responder.stop()
            responder.check_mbufs()
            responder.say("port start all", "Done")
            responder.say("start")
        responder.quit()
        generator.quit()

    def test_the_mode_changes_between_runs(self):
        responder = self.start_responder()
        responder.stop()
        responder.say("set fwd tagsink mac", "Set tagsink,mac packet forwarding mode")
        responder.say("start", "tagsink,mac packet forwarding", "tagsink on port 0")
        generator = self.start_generator("--tag-count=50")
        generator.say("start")
        generator.say(f"wait tag {programs.PATIENCE}", "Done.")
        self.assertEqual(generator.totals(generator.stop()),
                         {"sent": 100, "received": 0, "mismatches": 0, "errors": 0, "strangers": 0,
                          "verdict": "right"})
        responder.stop()
        responder.say("set fwd io", "Set io packet forwarding mode")
        self.assertNotIn("tagsink", responder.say("start", "io packet forwarding"))
        responder.say("show tag peers", "no messages")
        responder.quit()
        generator.quit()

    def test_quit_while_running_ends_in_order(self):
        responder = self.start_responder()
        generator = self.start_generator()
        generator.say("start")
        generator.wait("show tag peers", lambda text: text.count("tagecho running") == 2,
                       "the messages do not begin")
        generator.quit()
        self.assertEqual(generator.totals(generator.log)["verdict"], "right")
        self.assertIn("Bye...", generator.log)
        responder.quit()
        self.assertEqual(responder.totals(responder.log)["verdict"], "right")

    def test_a_responder_that_stops_is_named_and_the_status_tells(self):
        responder = self.start_responder()
        generator = self.start_generator()
        generator.say("start")
        generator.wait("show tag peers", lambda text: text.count("tagecho running") == 2,
                       "the messages do not begin")
        responder.stop()
        text = generator.wait("show tag peers", lambda text: text.count("failed") == 2,
                              "nobody notices that the responder stopped")
        self.assertIn("it stopped after", text)
        self.assertEqual(generator.totals(generator.stop())["verdict"], "WRONG")
        generator.quit(status=1)
        responder.quit()

    def test_a_generator_that_dies_does_not_hinder_the_next(self):
        responder = self.start_responder("--tag-timeout=2")
        first = self.start_generator()
        first.say("start")
        first.wait("show tag peers", lambda text: text.count("tagecho running") == 2,
                   "the messages do not begin")
        first.kill()
        second = self.start_generator("--tag-count=50")
        second.say("start")
        second.say(f"wait tag {programs.PATIENCE}", "Done.")
        self.assertEqual(second.totals(second.stop())["verdict"], "right")
        second.quit()
        responder.stop()
        responder.check_mbufs()
        responder.quit()

    def test_a_responder_may_start_later(self):
        generator = self.start_generator("--tag-count=50", "--tag-timeout=60")
        generator.say("start")
        time.sleep(0.5)
        responder = self.start_responder()
        generator.say(f"wait tag {programs.PATIENCE}", "Done.")
        generator.quit()
        responder.quit()

    def test_too_long_messages_are_refused_before_they_are_sent(self):
        responder = self.start_responder("--tag-max-size=4K")
        generator = self.start_generator("--tag-size=8,8K", "--tag-count=10")
        generator.say("start")
        generator.wait("show tag peers",
                       lambda text: text.count("it takes messages of 4096 B at most") == 2, "no refusal")
        generator.quit(status=1)
        responder.quit()

    def test_without_a_prompt_the_exit_status_tells(self):
        responder = self.start_responder()
        arguments = ["--forward-mode=taggen", "--tag-ip=10.0.0.2", "--tag-peer=10.0.0.1", "--rxq=2", "--txq=2"]
        result = self.run_to_end(*arguments, "--tag-count=100", "--tag-size=1K")
        self.assertEqual(result.status, 0, result.text)
        self.assertIn("taggen: sent 200 received 200 mismatches 0 errors 0 strangers 0: right", result.output)
        responder.quit()
        result = self.run_to_end(*arguments, "--tag-count=100", "--tag-timeout=0.5")
        self.assertEqual(result.status, 1, result.text)
        self.assertIn("no answer in 0.5 s", result.errors)


if __name__ == "__main__":
    programs.main()
