#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Processes that are killed, come back, flood and are flooded, on one software wire."""
import errno
import glob
import json
import os
import signal
import subprocess
import time
import unittest

import peers

TAGWIRE_ACTOR = os.environ.get("TAGWIRE_ACTOR", "tagwire-actor")
A, B, C = "10.86.0.1", "10.86.0.2", "10.86.0.3"
TIMEOUT = 1.5  # seconds of silence until a peer is dead
ETIMEDOUT, ECONNRESET = str(errno.ETIMEDOUT), str(errno.ECONNRESET)


def huge_files():
    return sorted(glob.glob("/dev/hugepages/*"))


class Actor:
    """A process with one worker and one endpoint, told by lines what to do."""

    def __init__(self, test, ip, timeout=TIMEOUT, options=()):
        self.errors = open(test.path(f"{ip}-{time.monotonic_ns()}.err"), "w+")
        # Each address keeps its MAC, as a machine that restarts does.
        mac = "02:54:58:00:00:%02x" % int(ip.rpartition(".")[2])
        command = [peers.SOFTCX_RUN, "--wire", test.wire, "--mac", mac, *options, TAGWIRE_ACTOR, *peers.MEMORY,
                   "--", ip, str(int(timeout * 1000))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        test.addCleanup(self.end)
        self.expect("ready")

    def expect(self, wanted):
        answer = self.process.stdout.readline().strip()
        if answer != wanted:
            raise AssertionError(f"'{answer}' instead of '{wanted}': {self.error_text()}")

    def error_text(self):
        self.errors.flush()
        with open(self.errors.name) as file:
            return file.read()

    def tell(self, *words):
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        if words[0] != "report":
            self.expect("ok")

    def report(self):
        self.tell("report")
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the actor ended: " + self.error_text())
        return json.loads(line)

    def until(self, condition, what):
        end = time.monotonic() + peers.PATIENCE
        while not condition(report := self.report()):
            if time.monotonic() > end:
                raise AssertionError(f"waited for {what}: {report}")
            time.sleep(0.01)
        return report

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        """In order; its exit status."""
        self.process.stdin.close()
        return self.process.wait(timeout=peers.PATIENCE)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            file.close()


def done(summary):
    return sum(summary["results"].values())


class LivesTest(peers.PeersTest):
    def actor(self, *arguments, **options):
        return Actor(self, *arguments, **options)

    def assert_once(self, report):
        for kind in ("sends", "receives", "remote"):
            self.assertEqual(report[kind]["twice"], 0, report)
            self.assertEqual(report[kind]["wrong"], 0, report)

    def talk(self, first, second, ip_of_second, tag):
        """A message arrives, whole."""
        before = second.report()["receives"]["results"].get("0", 0)
        second.tell("recv", "any", tag, 3000, 1)
        first.tell("send", ip_of_second, tag, 3000, 1)
        report = second.until(lambda seen: seen["receives"]["results"].get("0", 0) == before + 1, "a message")
        self.assert_once(report)


class KilledPeer(LivesTest):
    REMOTE = 120

    def use_memory(self, a):
        """REMOTE puts, gets and atomics, short and long."""
        a.tell("write", B, 8, 30)
        a.tell("write", B, 300000, 5)
        a.tell("read", B, 8, 30)
        a.tell("read", B, 300000, 5)
        a.tell("add", B, 50)

    def outstanding(self):
        """A with operations of each kind outstanding towards B, which stands still."""
        a, b = self.actor(A), self.actor(B)
        self.talk(a, b, B, 1)
        # B's message of 64 MiB is matched, and will not end.
        a.tell("recv", B, 10, 64 << 20, 1)
        b.tell("send", A, 10, 64 << 20, 1)
        a.until(lambda seen: seen["stats"]["matched_posted"] == 1, "a match")
        b.freeze()
        a.tell("send", B, 100, 8, 200)          # small ones
        a.tell("send", B, 400, 300000, 5)       # announced ones
        self.use_memory(a)
        a.tell("recv", B, 500, 100, 20)         # directed receives that nothing matched
        report = a.report()
        self.assertEqual(report["stats"]["receives_outstanding"], 21, report)
        return a, b, report

    def test_every_outstanding_operation_ends_once_within_the_timeout(self):
        a, b, before = self.outstanding()
        killed = time.monotonic()
        b.kill()
        report = a.until(lambda seen: done(seen["sends"]) == seen["sends"]["posted"] and
                         done(seen["receives"]) == 1 and done(seen["remote"]) == self.REMOTE,
                         "the end of every operation")
        passed = time.monotonic() - killed
        print(f"{report['sends']['posted'] - done(before['sends'])} sends, a receive and "
              f"{self.REMOTE} accesses of memory ended {passed:.2f} s after the kill, of {TIMEOUT} s", flush=True)
        self.assertEqual(report["sends"]["results"], {"0": 1, ETIMEDOUT: 205}, report)
        self.assertEqual(report["receives"]["results"], {ETIMEDOUT: 1}, report)
        self.assertEqual(report["remote"]["results"], {ETIMEDOUT: self.REMOTE}, report)
        self.assert_once(report)
        # Silence began before the kill; a busy machine may see it late.
        self.assertLess(passed, 10 * TIMEOUT)
        # What no message had matched stays posted, for whoever comes at this address.
        self.assertEqual(report["stats"]["receives_outstanding"], 20)
        b = self.actor(B)
        b.tell("send", A, 500, 100, 20)
        report = a.until(lambda seen: done(seen["receives"]) == 21, "the receives that stayed")
        self.assertEqual(report["receives"]["results"], {"0": 20, ETIMEDOUT: 1}, report)
        self.assert_once(report)
        self.talk(a, b, B, 2)

    def test_a_peer_that_comes_back_before_the_timeout_is_noticed_and_talks_at_once(self):
        a, b = self.actor(A, 60), self.actor(B, 60)
        self.talk(a, b, B, 1)
        a.tell("add", B, 5)
        a.until(lambda seen: done(seen["remote"]) == 5, "5 additions")
        self.assertEqual(b.report()["sum"], 5)
        b.freeze()
        a.tell("send", B, 100, 8, 200)
        a.tell("send", B, 400, 300000, 5)
        self.use_memory(a)
        a.report()
        b.kill()
        came_back = time.monotonic()
        b = self.actor(B, 60)
        self.talk(b, a, A, 2)
        report = a.until(lambda seen: done(seen["sends"]) == 206 and done(seen["remote"]) == self.REMOTE + 5,
                         "the end of every operation")
        print(f"all ended {time.monotonic() - came_back:.2f} s after the restart, of a timeout of 60 s", flush=True)
        self.assertEqual(report["sends"]["results"], {"0": 1, ECONNRESET: 205}, report)
        self.assertEqual(report["remote"]["results"], {"0": 5, ECONNRESET: self.REMOTE}, report)
        self.assert_once(report)
        self.talk(a, b, B, 3)
        after = b.report()
        self.assertEqual(after["receives"]["results"], {"0": 1})
        self.assertEqual(after["sum"], 0, "an atomic of the former life was executed in this one")
        a.tell("add", B, 7)
        a.until(lambda seen: seen["remote"]["results"]["0"] == 12, "additions in the new life")
        self.assertEqual(b.report()["sum"], 7)

    def test_frames_of_a_former_life_are_counted_and_refused(self):
        a, b = self.actor(A), self.actor(B)
        a.tell("record", 40)
        a.tell("recv", B, 100, 4000, 60)
        b.tell("send", A, 100, 4000, 60)
        a.until(lambda seen: done(seen["receives"]) == 60 and seen["recorded"] == 40, "60 messages")
        b.kill()
        b = self.actor(B)
        self.talk(b, a, A, 1)
        before = a.report()
        # Receives that the old messages would match.
        a.tell("recv", B, 100, 4000, 60)
        a.tell("replay")
        after = a.until(lambda seen: seen["replayed"] and
                        seen["stats"]["drop_stale_tag"] >= before["stats"]["drop_stale_tag"] + 40, "40 refusals")
        self.assertEqual(after["stats"]["drop_stale_tag"] - before["stats"]["drop_stale_tag"], 40)
        self.assertEqual(after["stats"]["rx_messages"], before["stats"]["rx_messages"])
        self.assertEqual(done(after["receives"]), done(before["receives"]))
        self.assertEqual(after["stats"]["peers_up"], before["stats"]["peers_up"])
        self.talk(b, a, A, 2)
        self.talk(a, b, B, 3)
        print("40 frames of the former life: drop_stale_tag 40, no message, the session went on", flush=True)

    def test_frames_for_a_former_life_are_counted_and_refused(self):
        # What A sends takes its time, and finds B's next life.
        a, b = self.actor(A, 60, ["--faults", "delay=1500ms"]), self.actor(B, 60)
        a.tell("send", B, 1, 8, 1)
        b.tell("recv", A, 1, 8, 1)
        a.until(lambda seen: done(seen["sends"]) == 1, "a first message")
        a.tell("send", B, 100, 8, 50)
        a.report()
        b.kill()
        b = self.actor(B, 60)
        report = b.until(lambda seen: seen["stats"]["drop_no_session"] + seen["stats"]["drop_stale_tag"] > 0,
                         "frames for the former life")
        self.assertEqual(report["stats"]["rx_messages"], 0)
        report = a.until(lambda seen: done(seen["sends"]) == 51, "the end of every send")
        self.assertEqual(report["sends"]["results"], {"0": 1, ECONNRESET: 50}, report)
        self.assert_once(report)

    def test_nothing_is_left_of_killed_processes(self):
        files = huge_files()
        a, b = self.actor(A), self.actor(B)
        self.talk(a, b, B, 1)
        pids = [a.process.pid, b.process.pid]
        b.kill()
        a.kill()
        # The next that opens a switch sweeps up.
        c = self.actor(C)
        self.assertEqual(c.leave(), 0)
        name = "softcx-" + self.wire.partition(":")[2]
        left = [entry for entry in os.listdir("/dev/shm")
                if entry == name or any(str(pid) in entry.split("-") for pid in pids)]
        self.assertEqual(left, [])
        self.assertEqual(huge_files(), files)


class Floods(LivesTest):
    SIZES = ((8, 1500), (1400, 1500), (20000, 300), (100000, 60))

    def flood(self, actor, ip):
        tag = 1000
        for size, count in self.SIZES:
            actor.tell("send", ip, tag, size, count)
            tag += count

    def receive(self, actor, ip):
        tag = 1000
        for size, count in self.SIZES:
            actor.tell("recv", ip, tag, size, count)
            tag += count

    COUNT = sum(count for _, count in SIZES)

    def test_a_peer_that_is_never_received_from_stays_under_the_budget(self):
        a, b, c = self.actor(A, 30), self.actor(B, 30), self.actor(C, 30)
        self.flood(c, A)
        c.until(lambda seen: seen["stats"]["credit_stalls"] > 0, "a sender that is held back")
        for tag in range(1, 20):
            self.talk(b, a, A, tag)
            self.talk(a, b, B, tag)
        report = a.report()
        self.assertLessEqual(report["stats"]["held_units_peak"], (1 << 20) // 1500)
        self.assertEqual(report["stats"]["drop_over_budget"], 0)
        self.assertGreater(c.report()["stats"]["sends_outstanding"], 1000)
        print(f"at most {report['stats']['held_units_peak']} packets held, of {(1 << 20) // 1500}; another peer's "
              "38 messages passed", flush=True)
        # Nothing was lost: all arrives when it is wanted.
        self.receive(a, C)
        report = a.until(lambda seen: seen["receives"]["results"].get("0", 0) == self.COUNT + 19, "the flood")
        self.assert_once(report)

    def test_two_peers_that_flood_each_other_do_not_deadlock(self):
        a, b = self.actor(A, 30), self.actor(B, 30)
        self.flood(a, B)
        self.flood(b, A)
        for actor in (a, b):
            actor.until(lambda seen: seen["stats"]["credit_stalls"] > 0, "a sender that is held back")
        self.receive(a, B)
        self.receive(b, A)
        for actor in (a, b):
            report = actor.until(lambda seen: done(seen["receives"]) == self.COUNT and
                                 done(seen["sends"]) == self.COUNT, "both floods")
            self.assertEqual(report["receives"]["results"], {"0": self.COUNT})
            self.assertEqual(report["sends"]["results"], {"0": self.COUNT})
            self.assert_once(report)
            self.assertLessEqual(report["stats"]["held_units_peak"], (1 << 20) // 1500)


if __name__ == "__main__":
    peers.main()
