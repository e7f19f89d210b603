# SPDX-License-Identifier: BSD-3-Clause
"""A testpmd at its prompt, DPDK's or ours: commands, counters, mbufs, the end. And capture files."""
import os
import re
import select
import struct
import subprocess
import time

DEADLINE = 240  # seconds for anything that a loaded machine may be slow at


class Failed(Exception):
    pass


def check(condition, message):
    if not condition:
        raise Failed(message)


class Prompt:
    def __init__(self, command, prompt="testpmd> ", deadline=DEADLINE):
        self.deadline = deadline
        self.log = ""
        # In a sanitized build: what testpmd itself leaves at exit is not ours.
        options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=0"]))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, bufsize=0,
                                        env={**os.environ, "ASAN_OPTIONS": options})
        try:
            self.read_until(prompt)
        except BaseException:
            self.kill()
            raise

    def read_until(self, mark):
        """What comes up to this pattern, and with it."""
        text = ""
        end = time.monotonic() + self.deadline
        while not re.search(mark, text, re.S):
            left = end - time.monotonic()
            check(left > 0, f"no {mark!r} in time; output:\n{self.log[-4000:]}")
            if not select.select([self.process.stdout], [], [], left)[0]:
                continue
            chunk = os.read(self.process.stdout.fileno(), 65536).decode(errors="replace")
            check(chunk, f"testpmd ended; output:\n{self.log[-4000:]}")
            text += chunk
            self.log += chunk
        return text

    def command(self, line, unknown=False):
        """Its output. A line that the prompt is not expected to know is told as unknown."""
        # The prompt's echo of a command may come before the output of the one before, and
        # output of forwarding in the midst of it; the answer to an unknown word marks the end.
        try:
            self.process.stdin.write(f"{line}\nend-of-output\n".encode())
        except BrokenPipeError:
            rest = self.process.stdout.read().decode(errors="replace")
            raise Failed(f"testpmd ended, {self.process.wait()}:\n{(self.log + rest)[-4000:]}") from None
        answer = "Command not found"
        return self.read_until(f"{answer}.*{answer}" if unknown else answer)

    def wait(self, line, condition, message, pause=0.05):
        end = time.monotonic() + self.deadline
        while True:
            text = self.command(line)
            if condition(text):
                return text
            check(time.monotonic() < end, f"{message}; last output:\n{text}")
            time.sleep(pause)

    def stats(self, port):
        text = self.command(f"show port stats {port}")
        return {key: int(value) for key, value in
                re.findall(r"((?:RX|TX)-(?:packets|missed|bytes|errors|nombuf)):\s+(\d+)", text)}

    def xstats(self, port):
        text = self.command(f"show port xstats {port}")
        return {key: int(value) for key, value in re.findall(r"^(\w+): (\d+)\s*$", text, re.M)}

    def mbufs(self, pool="mb_pool_0"):
        """(all, those that are in the pool)"""
        text = self.command(f"dump_mempool {pool}")
        size = int(re.search(r"size=(\d+)", text).group(1))
        common = int(re.search(r"common_pool_count=(\d+)", text).group(1))
        cached = int(re.search(r"total_cache_count=(\d+)", text).group(1))
        return size, common + cached

    def check_mbufs(self, pool="mb_pool_0"):
        """After `stop`: every mbuf comes back when the ports are stopped."""
        self.command("port stop all")
        size, free = self.mbufs(pool)
        check(free == size, f"{size - free} of {size} mbufs are missing:\n{self.log[-4000:]}")

    def finish(self):
        """What comes until the end; the exit status."""
        self.log += self.process.stdout.read().decode(errors="replace")
        return self.process.wait(timeout=self.deadline)

    def quit(self, status=0):
        self.process.stdin.write(b"quit\n")
        self.process.stdin.close()
        code = self.finish()
        check(code == status, f"testpmd exits {code}; output:\n{self.log[-4000:]}")
        check("client error" not in self.log, f"softcx reports client errors:\n{self.log[-4000:]}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


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
