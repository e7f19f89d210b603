#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles and runs every example of the documentation. doc/api/README.md says how to write one.

usage: examples_test.py SOURCE_ROOT BUILD_ROOT [TEXT]   only examples whose name contains TEXT
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

SOURCE, BUILD = map(os.path.abspath, sys.argv[1:3])
CHOICE = sys.argv[3] if len(sys.argv) > 3 else ""
PATIENCE = 300  # seconds, for a program that hangs
EAL = ["--no-huge", "-m", "256", "--no-shconf", "--no-pci", "--no-telemetry", "--log-level=*:warning"]
PROGRAM = EAL + ["--vdev", "net_ring0"]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)
MAIN = re.compile(r"^int\s+main\s*\(", re.M)
FUNCTION = re.compile(r"^(?:static\s+)?int\s+(\w+)\s*\(\s*tw_worker\s*\*\s*\w+,\s*tw_ep\s*\*\s*\w+,"
                      r"\s*tw_cq\s*\*\s*\w+,\s*tw_addr\s+\w+\s*\)\s*\{", re.M)
SANITIZE = shlex.split(os.environ.get("EXAMPLES_SANITIZE", ""))


class Failed(Exception):
    pass


def run(command, what, **options):
    """Its output; Failed when it does not end well."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, errors="replace", **options)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{what} does not end within {PATIENCE} s:\n{(error.stdout or b'').decode(errors='replace')}")
    if done.returncode != 0:
        raise Failed(f"{what} ends with status {done.returncode}:\n{done.stdout}")
    return done.stdout


def pages():
    for pattern in ("README.md", "doc/*.md", "doc/api/*.md"):
        yield from sorted(glob.glob(os.path.join(SOURCE, pattern)))


def blocks(path):
    """(name, language, line, text) of each fenced block."""
    page = os.path.relpath(path, SOURCE)
    with open(path) as file:
        text = file.read()
    for number, match in enumerate(FENCE.finditer(text), 1):
        line = text.count("\n", 0, match.start()) + 2
        yield f"{page} block {number} (line {line})", match.group(1), line, match.group(2)


class Compiler:
    def __init__(self, folder):
        self.folder = folder
        package = subprocess.run(["pkg-config", "--cflags", "--libs", "libdpdk"], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout.split()
        # Its headers do not hold under our warnings.
        package = ["-isystem" + flag[2:] if flag.startswith("-I") else flag for flag in package]
        self.flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-g1", *SANITIZE,
                      f"-I{SOURCE}/lib/tagwire/include"]
        self.package = ["-isystem/usr/include/dpdk", *package, f"-L{BUILD}/lib/tagwire/shared", "-ltagwire",
                        f"-Wl,-rpath,{BUILD}/lib/tagwire/shared"]
        self.harness = self.path("harness.o")
        run(["cc", *self.flags, *self.package[:-3], "-c", f"{SOURCE}/test/docs/harness.c", "-o", self.harness],
            "compiling test/docs/harness.c")

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, language, line, page, text):
        """Path of the program, and the arguments that it is run with."""
        source = self.path("example." + ("c" if language == "c" else "cc"))
        wanted, arguments = [], PROGRAM
        found = FUNCTION.findall(text)
        if not MAIN.search(text):
            if len(found) != 1:
                raise Failed("it has no main(), and not exactly one function "
                             "int NAME(tw_worker*, tw_ep*, tw_cq*, tw_addr): see doc/api/README.md")
            wanted, arguments = [self.harness], EAL
            linkage = "" if language == "c" else 'extern "C" '
            text += (f"\n{linkage}int tw_run_example(tw_worker* worker, tw_ep* ep, tw_cq* cq, tw_addr peer);\n"
                     f"int tw_run_example(tw_worker* worker, tw_ep* ep, tw_cq* cq, tw_addr peer) {{\n"
                     f"    return {found[0]}(worker, ep, cq, peer);\n}}\n")
        with open(source, "w") as file:
            file.write(f'#line {line} "{page}"\n{text}')
        program = self.path("example")
        compiler = ["cc", "-std=gnu11"] if language == "c" else ["c++", "-std=c++20"]
        run([*compiler, *self.flags, source, *wanted, "-o", program, *self.package], "compiling it")
        return [program, *arguments]


def run_example(compiler, name, language, line, text):
    program = compiler.program(language, line, name.split()[0], text)
    return run(program, "it", cwd=compiler.folder)


def run_script(compiler, blocks_of_page):
    """The commands of the README, one block after the other in one shell, in a folder that looks like the
    repository after ./run build. The switch's name is the machine's: it gets to be this run's."""
    folder = tempfile.mkdtemp(dir=compiler.folder)
    for entry in os.listdir(SOURCE):
        if not entry.startswith("build"):
            os.symlink(os.path.join(SOURCE, entry), os.path.join(folder, entry))
    os.symlink(BUILD, os.path.join(folder, "build"))
    text = "".join(f"echo '# {name}'\n{block}" for name, block in blocks_of_page)
    text = text.replace("switch:lab", f"switch:lab{os.getpid()}")
    # A job in the background must not outlive a failure.
    return run(["bash", "-euxo", "pipefail", "-c", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + text],
               "it", cwd=folder)


def attempt(name, call):
    begun = time.monotonic()
    try:
        call()
    except Failed as error:
        print(f"FAILED: {name}: {error}", flush=True)
        return 1
    print(f"ok: {name}, {time.monotonic() - begun:.1f} s", flush=True)
    return 0


def main():
    failures, count, without = 0, 0, []
    with tempfile.TemporaryDirectory(prefix="tagwire-examples-") as folder:
        compiler = Compiler(folder)
        for path in pages():
            page = os.path.relpath(path, SOURCE)
            found = list(blocks(path))
            examples = [block for block in found if block[1] in ("c", "cpp")]
            for name, language, line, text in examples:
                if CHOICE in name:
                    count += 1
                    failures += attempt(name, lambda: run_example(compiler, name, language, line, text))
            commands = [(name, text) for name, language, _, text in found if language == "sh"]
            if page == "README.md" and CHOICE in "README.md commands":
                count += len(commands)
                failures += attempt("README.md commands", lambda: run_script(compiler, commands))
            if not examples and page.startswith("doc/api/"):
                without.append(page)
    if without:
        failures += len(without)
        print(f"FAILED: pages without an example: {', '.join(without)}")
    print(f"{count} examples, {failures} failures")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
