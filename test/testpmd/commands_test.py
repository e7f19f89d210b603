#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tagwire-testpmd's arguments, commands and ends; plain forwarding without messages."""
import re
import signal

import programs
from frames import mixed
from programs import FILES, read_all


class Arguments(programs.TestpmdTest):
    def assert_refused(self, *arguments, says, **where):
        result = self.run_to_end(*arguments, **where)
        self.assertEqual(result.status, 1, result.text)
        self.assertIn("error:", result.errors)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, result.errors, result.text)

    def test_wrong_arguments_say_what_would_be_right(self):
        self.assert_refused("--frobnicate", says="--frobnicate")
        self.assert_refused("--rxq=0", says="--rxq")
        self.assert_refused("--rxq=many", says="--rxq")
        self.assert_refused("--burst=513", says="--burst")
        self.assert_refused("--forward-mode=macro", says=["Invalid macro packet forwarding mode", "tagecho"])
        self.assert_refused("--forward-mode=mac,tagecho", says="Invalid mac,tagecho")
        self.assert_refused("--forward-mode=tagecho,taggen", says="Invalid")
        self.assert_refused("--portmask=0", says="--portmask=0 is no mask of ports")
        self.assert_refused("--portmask=no", says="--portmask=no")
        self.assert_refused("--eth-peer=0", says="--eth-peer=0 is no peer")
        self.assert_refused("--eth-peer=99,02:00:00:00:00:01", says="--eth-peer=99")
        self.assert_refused("--tag-ip=10.0.0.256", says="10.0.0.256")
        self.assert_refused("--tag-ip=127.0.0.1", says="127.0.0.1")
        self.assert_refused("--tag-size=big", says="big")
        self.assert_refused("--tag=0x8000000000000000", says="no tag")
        self.assert_refused("--forward-mode=taggen", says=["nobody to send to", "--tag-peer"])
        self.assert_refused("--rxq=2", says=["2 RX queues need as many TX queues", "--txq=2"])
        self.assert_refused("-i", "--tx-first", says=["--tx-first cannot be used", "start tx_first"])
        self.assert_refused("--cmdline-file=" + self.path("missing"), says="missing")

    def test_too_few_lcores_or_queues_or_ports(self):
        self.assert_refused("--rxq=2", "--txq=2", forwarding=1,
                            says=["1 forwarding lcores for 2 queues", "--nb-cores=1"])
        self.assert_refused("--nb-cores=3", says="nb-cores should be > 0 and <= 2, not 3")
        self.assert_refused(forwarding=0, says="No cores defined for forwarding")
        socket = self.path("memif.sock")
        self.assert_refused("--rxq=257", "--txq=257", "--nb-cores=1", vdevs=(f"net_memif0,socket={socket}",),
                            says=["port 0 (net_memif0) has at most 255 RX queues, not 257"])
        self.assert_refused("--portmask=0x5", says=["--portmask names port 2", "1 port(s) found"])
        self.assert_refused("--tag-portmask=0x2", says="--tag-portmask names port 1")
        self.assert_refused("--total-num-mbufs=100000000", says=["no memory for 100000000 mbufs", "-m"])

    def test_no_port_is_an_error_without_a_prompt_and_a_warning_with_one(self):
        nothing = ["-b", "0000:00:00.0"]  # EAL looks for nothing else
        self.assert_refused(vdevs=(), says=["there is no port to forward on", "--vdev"], eal=nothing)
        program = self.start(vdevs=(), eal=nothing)
        self.assertIn("No probed ethernet devices", program.log)
        program.say("start", "no port forwards")
        program.say("show port info all", "there is no port")
        program.say("show port info 0", "Invalid port 0")
        program.quit()

    def test_the_own_address_is_no_peer(self):
        program = self.start("--forward-mode=taggen", "--tag-ip=10.0.0.1", "--tag-peer=10.0.0.1")
        program.say("start", "--tag-peer=10.0.0.1 is this side's own address")
        program.quit()

    def test_help_is_no_error(self):
        for question in ("--help", "--version"):
            result = self.run_to_end(question)
            self.assertEqual(result.status, 0, result.text)
            self.assertIn("tagwire-testpmd", result.output)


class Prompt(programs.TestpmdTest):
    def test_bad_commands_say_what_fits(self):
        program = self.start("--rxq=2", "--txq=2")
        program.command("frob", unknown=True)
        for line, answers in {
                "show": ["'show' is not complete: next comes one of port, fwd, tag, config", "Bad arguments"],
                "show prot info 0": ["'prot' does not fit after 'show'", "Bad arguments"],
                "show port info": ["next comes one of a port number, all"],
                "show port info x": ["'x' does not fit after 'show port info'"],
                "show port info 7": ["Invalid port 7", "The valid ports array is [ 0 ]"],
                "clear port stats 3": ["Invalid port 3"],
                "set fwd macro": ["'macro' does not fit after 'set fwd'", "tagsink"],
                "set fwd io mac": ["'mac' is too much after 'set fwd io'"],
                "set burst 0": ["0 is not between 1 and 512"],
                "set burst 513": ["513 is not between 1 and 512"],
                "set burst": ["next comes a number"],
                "stop now": ["'now' is too much after 'stop'"],
                "stop": ["Packet forwarding not started"],
                "port start 0": ["Please stop the ports first"],
                "port stop 9": ["Invalid port 9"],
                "show tag peers": ["no messages"],
                "wait tag 1": ["nothing to wait for"],
                "dump_mempool none": ["Cannot find mempool none"],
        }.items():
            program.say(line, *answers)
        program.say("set burst 16 # as said", "Number of packets per burst set to 16")
        program.say("start", "io packet forwarding packets/burst=16")
        program.say("start", "Packet forwarding already started")
        program.say("port stop all", "Please remove port 0 from forwarding configuration.")
        program.say("show fwd stats all", "Accumulated forward statistics for all ports")
        program.stop()
        program.say("port stop all", "Stopping ports...", "Done")
        program.say("start", "Not all ports were started")
        program.say("help", "help control")
        program.say("help all", "set fwd io|mac|rxonly|txonly|tagecho|taggen|tagsink", "port start PORTS")
        program.quit()  # wrong commands at the prompt are no failure of the program

    def test_what_is_shown_has_the_shape_of_testpmds(self):
        program = self.start("--rxq=2", "--txq=2")
        info = program.command("show port info 0")
        for pattern in (r"MAC address: (?!00:00:00:00:00:00)[0-9A-F:]{17}", r"Device name: net_mlx5raw0",
                        r"Driver name: net_mlx5raw", r"Firmware-version: \d+\.\d+\.\d+",
                        r"Link status: up", r"Link speed: \d+ Gbps", r"Link duplex: full-duplex",
                        r"MTU: 1500", r"Promiscuous mode: enabled", r"Hash key size in bytes: 40",
                        r"Redirection table size: 128", r"Current number of RX queues: 2",
                        r"Current number of TX queues: 2", r"ipv4-udp"):
            self.assertRegex(info, pattern)
        self.assertIn("rx_good_packets", program.xstats(0))
        program.say("show port summary all", "Number of available ports: 1")
        program.say("show config fwd", "io packet forwarding - ports=1 - cores=2 - streams=2",
                    "Logical Core 1 (socket 0) forwards packets on 1 streams:",
                    "RX P=0/Q=1 (socket 0) -> TX P=0/Q=1 (socket 0) peer=02:00:00:00:00:00")
        program.quit()
        for line in ("Stopping port 0...", "Shutting down port 0...", "Bye..."):
            self.assertIn(line, program.log)

    def test_the_end_of_the_input_ends_it(self):
        result = self.run_to_end("-i", input=b"start\n")
        self.assertEqual(result.status, 0, result.text)
        self.assertIn("Telling cores to stop...", result.output)
        self.assertIn("Bye...", result.output)


class CommandFile(programs.TestpmdTest):
    def write(self, text):
        with open(self.path("commands"), "w", encoding="ascii") as file:
            file.write(text)
        return "--cmdline-file=" + self.path("commands")

    def test_commands_of_a_file_come_before_the_prompt(self):
        result = self.run_to_end("-i", self.write("# first\n\nset fwd mac\nset burst 8\nstart\n"))
        self.assertEqual(result.status, 0, result.text)
        self.assertIn("mac packet forwarding packets/burst=8", result.output)
        self.assertIn("Read CLI commands from", result.output)

    def test_a_file_may_start_without_a_prompt(self):
        result = self.run_to_end(self.write("set fwd rxonly\nstart\n"))
        self.assertEqual(result.status, 0, result.text)
        self.assertIn("Press enter to exit", result.output)

    def test_a_file_that_quits_is_the_whole_program(self):
        result = self.run_to_end("-i", self.write("start\nstop\nquit\nset burst 4\n"), input=b"set burst 5\n")
        self.assertEqual(result.status, 0, result.text)
        self.assertNotIn("Number of packets", result.output)

    def test_errors_name_their_line_and_do_not_stop_it(self):
        option = self.write("set fwd macro\nfrob\nset burst 8\nshow port stats 5\nquit")
        result = self.run_to_end("-i", option)
        self.assertEqual(result.status, 1, result.text)
        name = self.path("commands")
        for line in (f"{name}:1: 'macro' does not fit after 'set fwd'", f"{name}:1: Bad arguments",
                     f"{name}:2: Command not found: frob", f"{name}:4: Invalid port 5",
                     f"3 of 5 lines of {name} failed"):
            self.assertIn(line, result.errors)
        self.assertIn("Number of packets per burst set to 8", result.output)


class Signals(programs.TestpmdTest):
    def test_a_signal_ends_it_in_order(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            program = self.start("--forward-mode=tagecho", "--tag-ip=10.0.0.1")
            program.say("start")
            program.process.send_signal(number)
            status = program.finish()
            self.assertEqual(status, -number, program.log)
            self.assertIn(f"Signal {int(number)} received, preparing to exit...", program.log)
            self.assertIn("Telling cores to stop...", program.log)
            self.assertIn("Bye...", program.log)

    def test_a_signal_ends_it_without_a_prompt(self):
        program = programs.prompt.Prompt(self.command("--forward-mode=rxonly"), "Press enter to exit",
                                         programs.PATIENCE)
        self.addCleanup(program.process.stdout.close)
        self.addCleanup(program.process.stdin.close)
        self.addCleanup(program.kill)
        program.process.send_signal(signal.SIGINT)
        self.assertEqual(program.finish(), -signal.SIGINT, program.log)
        self.assertIn("Bye...", program.log)


class Plain(programs.TestpmdTest):
    """Forwarding without messages."""

    def forward(self, *arguments, queues=1):
        """Frames of a capture file out of one program, through another to a capture file."""
        frames = mixed(200)
        source, _ = self.pcap(1, frames, queues)
        sink, out = self.pcap(1, queues=queues)
        common = [f"--rxq={queues}", f"--txq={queues}", "--rss-udp", "--no-flush-rx", "--rxd=2048"]
        receiver = self.start(*common, *arguments, vdevs=(programs.CARD, sink))
        receiver.say("start")
        sender = self.start(*common, vdevs=(programs.CARD, source))
        sender.say("start")
        receiver.wait(f"show port stats {FILES}", lambda text: f"TX-packets: {len(frames)} " in text,
                      "not all frames arrive")
        text = receiver.stop()
        sender.stop()
        for program in (receiver, sender):
            program.check_mbufs()
            program.quit()
        return frames, read_all(out), text

    def test_io_forwards_bit_for_bit(self):
        frames, out, text = self.forward(queues=2)
        self.assertEqual(sorted(out), sorted(frames))
        self.assertRegex(text, r"CPU cycles/packet=\d+\.\d\d \(total cycles=\d+ / total io packets=200\)")
        self.assertIn("Forward Stats for RX Port= 0/Queue= 1 -> TX Port= 1/Queue= 1", text)

    def test_one_lcore_may_have_all_queues(self):
        frames, out, _ = self.forward("--nb-cores=1", queues=2)
        self.assertEqual(sorted(out), sorted(frames))

    def test_mac_sets_both_addresses(self):
        frames, out, _ = self.forward("--forward-mode=mac", "--eth-peer=1,02:00:00:00:00:99")
        self.assertEqual([frame[:6] for frame in out], [bytes.fromhex("020000000099")] * len(frames))
        self.assertEqual([frame[12:] for frame in out], [frame[12:] for frame in frames])

    def test_txonly_and_rxonly(self):
        receiver = self.start("--forward-mode=rxonly", "--rxq=2", "--txq=2", "--rss-udp")
        receiver.say("start")
        sender = self.start("--forward-mode=txonly", "--txonly-multi-flow", "--txpkts=100")
        sender.say("start", "packet len=100 - nb packet segments=1")
        receiver.wait("show port stats 0",
                      lambda text: int(re.search(r"RX-packets: (\d+)", text).group(1)) > 5000,
                      "too few packets arrive")
        self.assertRegex(sender.stop(), r"total txonly packets=\d+")
        sent = sender.stats(0)
        self.assertEqual(sent["TX-bytes"], 100 * sent["TX-packets"])
        self.assertEqual(receiver.stats(0)["RX-errors"], 0)
        xstats = receiver.xstats(0)
        self.assertGreater(min(xstats["rx_q0_packets"], xstats["rx_q1_packets"]), 0)
        self.assertRegex(receiver.stop(), r"total rxonly packets=\d+")
        receiver.say("clear port stats all", "NIC statistics for port 0 cleared")
        self.assertEqual(receiver.stats(0)["RX-packets"], 0)
        for program in (receiver, sender):
            program.check_mbufs()
            program.quit()

    def test_tx_first_sends_bursts(self):
        receiver = self.start("--forward-mode=rxonly")
        receiver.say("start")
        sender = self.start("--forward-mode=rxonly", "--burst=16")
        sender.say("start tx_first 3")
        receiver.wait("show port stats 0", lambda text: "RX-packets: 48 " in text, "no three bursts")
        self.assertEqual(sender.stats(0)["TX-packets"], 48)
        sender.stop()
        sender.say("start tx_first")
        receiver.wait("show port stats 0", lambda text: "RX-packets: 64 " in text, "no burst")
        sender.quit()
        receiver.quit()


if __name__ == "__main__":
    programs.main()
