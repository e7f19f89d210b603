#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of UCX, as Debian has them, on Tagwire's libucp.so.0: two processes on a switch of their own.

usage: stock_test.py BUILD_DIR [FILTER]
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

build = pathlib.Path(sys.argv[1]).resolve()
only = sys.argv[2] if len(sys.argv) > 2 else ""
runner = str(build / "lib/ucp/tagwire-ucx-run")
examples = pathlib.Path("/usr/share/doc/libucx-dev/examples")
failures = []
counts = {"passed": 0, "skipped": 0}
port = 20000 + os.getpid() % 20000
# A peer that was killed is found out about sooner than by default.
SHORT_TIMES = {"UCX_KEEPALIVE_INTERVAL": "1s", "TAGWIRE_PEER_TIMEOUT_MS": "5000"}


class Failed(Exception):
    pass


def start(arguments, wire, output, **more):
    # Small pools: most of the time of a test is that of two processes that start.
    environment = dict(os.environ, TAGWIRE_WIRE=wire, TAGWIRE_UNEXPECTED_MB="32", **more)
    return subprocess.Popen([runner, *arguments], env=environment, stdout=output, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL, start_new_session=True)


def listening(number):
    wanted = f":{number:04X} "
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as lines:
            for line in lines:
                fields = line.split()
                if len(fields) > 3 and fields[3] == "0A" and wanted in fields[1] + " ":
                    return True
    return False


def stop(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def pair(name, server, client, server_ends=True, want_server="", want_client="", limit=120):
    """Runs both; both must exit with 0, and have said what they must say."""
    global port
    if only not in name:
        return
    port += 1
    server = [str(port) if a == "PORT" else a for a in server]
    client = [str(port) if a == "PORT" else a for a in client]
    wire = f"switch:ucp-stock-{os.getpid()}"
    with tempfile.TemporaryFile() as out_server, tempfile.TemporaryFile() as out_client:
        first = start(server, wire, out_server)
        second = None
        try:
            deadline = time.monotonic() + limit
            while not listening(port):
                if first.poll() is not None or time.monotonic() > deadline:
                    raise Failed("the server does not listen")
                time.sleep(0.05)
            second = start(client, wire, out_client)
            status = second.wait(limit)
            if status != 0:
                raise Failed(f"the client's exit status is {status}")
            if server_ends:
                status = first.wait(limit)
                if status != 0:
                    raise Failed(f"the server's exit status is {status}")
            else:
                time.sleep(0.2)
                stop(first)
            for output, want in ((out_server, want_server), (out_client, want_client)):
                output.seek(0)
                if want.encode() not in output.read():
                    raise Failed(f"not found: {want}")
            counts["passed"] += 1
            print(f"ok: {name}", flush=True)
        except (Failed, subprocess.TimeoutExpired) as error:
            failures.append(name)
            print(f"FAILED: {name}: {error}")
            for process, output in ((first, out_server), (second, out_client)):
                if process is not None:
                    stop(process)
                    output.seek(0)
                    print("    | " + output.read().decode(errors="replace")[-3000:].replace("\n", "\n    | "))
        finally:
            stop(first)
            if second is not None:
                stop(second)


def survivor(name, server, client, killed, limit=120):
    """One of the two kills itself; the other must be told, and end."""
    global port
    if only not in name:
        return
    port += 1
    wire = f"switch:ucp-stock-{os.getpid()}"
    with tempfile.TemporaryFile() as out_server, tempfile.TemporaryFile() as out_client:
        first = start([*server, "-p", str(port)], wire, out_server, **SHORT_TIMES)
        second = None
        try:
            deadline = time.monotonic() + limit
            while not listening(port):
                if first.poll() is not None or time.monotonic() > deadline:
                    raise Failed("the server does not listen")
                time.sleep(0.05)
            second = start([*client, "-p", str(port)], wire, out_client, **SHORT_TIMES)
            dies, lives, output = (first, second, out_client) if killed == "server" else (second, first, out_server)
            if dies.wait(limit) != -signal.SIGKILL:
                raise Failed(f"the {killed} did not kill itself")
            lives.wait(limit)
            output.seek(0)
            if b"failure handler called" not in output.read():
                raise Failed("nobody told the survivor")
            counts["passed"] += 1
            print(f"ok: {name}", flush=True)
        except (Failed, subprocess.TimeoutExpired) as error:
            failures.append(name)
            print(f"FAILED: {name}: {error}")
            for output in (out_server, out_client):
                output.seek(0)
                print("    | " + output.read().decode(errors="replace")[-2000:].replace("\n", "\n    | "))
        finally:
            for process in (first, second):
                if process is not None:
                    stop(process)


def main():
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for name in ("ucp_hello_world", "ucp_client_server"):
            source = examples / f"{name}.c"
            if not source.exists():
                print(f"skipped: {name}: no {source}")
                counts["skipped"] += 1
                continue
            programs[name] = f"{folder}/{name}"
            subprocess.run(["cc", "-O1", f"-I{examples}", "-o", programs[name], str(source), "-lucp", "-lucs"],
                           check=True)
        if "ucp_hello_world" in programs:
            hello = programs["ucp_hello_world"]
            for mode in ([], ["-b"], ["-w"], ["-f"], ["-s", "100000"]):
                pair(f"ucp_hello_world {' '.join(mode)}", ["stdbuf", "-oL", hello, *mode, "-p", "PORT"],
                     [hello, *mode, "-n", "127.0.0.1", "-p", "PORT"], want_client="UCP TEST SUCCESS")
            for mode, killed in (("recv", "client"), ("send", "server"), ("keepalive", "client")):
                survivor(f"ucp_hello_world -e {mode}", ["stdbuf", "-oL", hello, "-e", mode],
                         ["stdbuf", "-oL", hello, "-e", mode, "-n", "127.0.0.1"], killed)
        if "ucp_client_server" in programs:
            example = programs["ucp_client_server"]
            for mode in ("stream", "tag", "am"):
                for size in ([], ["-s", "100000"]):
                    arguments = ["-c", mode, "-p", "PORT", *size]
                    pair(f"ucp_client_server {mode} {' '.join(size)}", ["stdbuf", "-oL", example, *arguments],
                         [example, *arguments, "-a", "127.0.0.1"], server_ends=False,
                         want_server="UCP TEST SUCCESS")
        if shutil.which("ucx_perftest"):
            tests = ("tag_lat", "tag_sync_lat", "tag_bw", "tag_sync_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "ucp_add",
                     "ucp_fadd", "ucp_swap", "ucp_cswap", "stream_bw", "stream_lat", "ucp_am_lat", "ucp_am_bw")
            for test in tests:
                for size in (("8", "100000") if "lat" in test or "bw" in test else ("8",)):
                    arguments = ["-t", test, "-s", size, "-n", "100", "-w", "10", "-p", "PORT"]
                    pair(f"ucx_perftest {test} {size}", ["ucx_perftest", *arguments],
                         ["ucx_perftest", "127.0.0.1", *arguments], want_client="Final:")
        else:
            print("skipped: ucx_perftest is not installed (ucx-utils)")
            counts["skipped"] += 1
        if shutil.which("io_demo"):
            for api in ([], ["-A"]):
                arguments = ["-p", "PORT", "-d", "512:65536", "-q", *api]
                pair(f"io_demo {' '.join(api)}", ["io_demo", *arguments],
                     ["io_demo", *arguments, "-i", "100", "-o", "read,write", "127.0.0.1"], server_ends=False)
    print(f"{counts['passed']} passed, {len(failures)} failed, {counts['skipped']} skipped")
    sys.exit(1 if failures else 0)


main()
