#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Breaks the runtime on purpose, one way at a time, and looks which test notices.

    mutations.py check            every text of the list is found once in the tree
    mutations.py build DIR        a copy of the tree with all mutants, built in DIR
    mutations.py run DIR [N...]   runs all mutants, or those numbers; a Markdown row for each
    mutations.py whole DIR N...   the same with whole test programs in place of the filters

The list is test/mutations/runtime.txt. One build holds all mutants: each is a condition
that TW_MUTANT=number turns on, so a run costs no compilation. A mutant that is printed
as SURVIVED needs a test, or is none because nothing that can be seen changes.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "test/mutations/runtime.txt"
PATIENCE = 300  # seconds for one test program; a mutant that makes it hang is noticed too

HEADER = """#pragma once
#include <cstdlib>
#include <type_traits>
inline int tw_chosen_mutant() {
    static const int number = [] {
        const char* text = std::getenv("TW_MUTANT");
        return text != nullptr ? std::atoi(text) : 0;
    }();
    return number;
}
// The mutant that this run has; 0: none.
constexpr int tw_mutant() {
    return std::is_constant_evaluated() ? 0 : tw_chosen_mutant();
}
"""


class Mutant:
    def __init__(self, number, lines):
        self.number = number
        self.row, self.what = lines[0].split(": ", 1)
        fields = [line.strip().split(" ", 1) for line in lines[1:]]
        (_, self.file), (_, self.old), (_, self.new), (_, by) = fields
        *self.programs, self.filter = by.split()

    def find(self, text):
        """Where the text is, however it is broken into lines."""
        pattern = r"\s+".join(re.escape(word) for word in self.old.split())
        found = list(re.finditer(pattern, text))
        if len(found) != 1:
            sys.exit(f"{LIST.name}: mutant {self.number} ({self.what}): {len(found)} places in {self.file}")
        return found[0].span()


def read_list():
    blocks = [block.splitlines() for block in LIST.read_text().split("\n\n")]
    blocks = [[line for line in block if line and not line.startswith("#")] for block in blocks]
    return [Mutant(number, block) for number, block in enumerate(filter(None, blocks), 1)]


def mutated(path, mutants):
    text = path.read_text()
    places = sorted(((*mutant.find(text), mutant) for mutant in mutants), key=lambda place: place[:2])
    parts, at = [], 0
    for start, end, mutant in places:
        if start < at:
            sys.exit(f"{LIST.name}: mutant {mutant.number} overlaps another one")
        parts += [text[at:start], mutant.new.replace("$M", f"(tw_mutant() == {mutant.number})")]
        at = end
    text = "".join(parts) + text[at:]
    include = '#include "mutant.h"\n'
    return text.replace("#pragma once\n", "#pragma once\n" + include, 1) if path.suffix == ".h" else include + text


def mutated_files(mutants):
    for file in sorted({mutant.file for mutant in mutants}):
        yield file, mutated(ROOT / file, [mutant for mutant in mutants if mutant.file == file])


def target(program):
    if program.startswith("transport_"):
        return f"test/transport/{program}_test"
    return {"rma": "test/rma/rma_test"}.get(program, f"test/tagwire/tagwire_{program}_test")


def build(directory, mutants):
    copy = directory  # the build is inside, as in the tree: ccache knows what did not change
    if copy.exists() and any(copy.iterdir()) and not (copy / "mutant.h").exists():
        sys.exit(f"{copy} has other files: name a folder that is new or was made by this script")
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for file in files.splitlines():
        (copy / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, copy / file)
    for file, text in mutated_files(mutants):
        (copy / file).write_text(text)
    (copy / "mutant.h").write_text(HEADER)
    targets = sorted({target(program) for mutant in mutants for program in mutant.programs})
    script = '. scripts/setup.sh && fetch_driver_headers && configure "$1" && shift && ninja -k 0 -C "$@"'
    subprocess.run(["bash", "-ec", script, "bash", directory / "build", directory / "build", *targets],
                   cwd=copy, check=True)


def run(directory, mutant, whole):
    """The name of the test that notices, or None."""
    ran_any = False
    for program in mutant.programs:
        command = [directory / "build" / target(program), "--gtest_fail_fast"]
        command += [] if whole else ["--gtest_filter=" + mutant.filter]
        environment = dict(os.environ, TW_MUTANT=str(mutant.number))
        try:
            done = subprocess.run(command, env=environment, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", text=True)
            output, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            output, status = (late.stdout or b"").decode(errors="replace"), None
        ran = re.findall(r"\[ RUN      \] ([\w./]+)", output)
        ran_any = ran_any or bool(ran)
        if status == 0:
            continue
        failed = re.search(r"\[  FAILED  \] ([\w./]+)", output)
        if failed:
            return failed[1]
        if not ran:
            sys.exit(f"{command}: {output}")
        return ran[-1] + (" (does not end)" if status is None else " (crashes)")
    if not ran_any:
        sys.exit(f"mutant {mutant.number}: no test is {mutant.filter}")
    return None


def main():
    mutants = read_list()
    match sys.argv[1:]:
        case ["check"]:
            print(f"{len(mutants)} mutants in {len(list(mutated_files(mutants)))} files")
        case ["build", directory]:
            build(pathlib.Path(directory).resolve(), mutants)
        case ["run" | "whole" as how, directory, *numbers]:
            wanted = set(map(int, numbers)) or {mutant.number for mutant in mutants}
            survivors = 0
            for mutant in mutants:
                if mutant.number in wanted:
                    name = run(pathlib.Path(directory).resolve(), mutant, how == "whole")
                    survivors += name is None
                    caught = f"`{name}`" if name else "SURVIVED"
                    print(f"| {mutant.number} | {mutant.row} | {mutant.what} | {caught} |", flush=True)
            return 1 if survivors else 0
        case _:
            sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
