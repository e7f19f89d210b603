#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What calls of functions cost in callgrind dumps, with everything that they call.

usage: callgrind_calls.py NAMES DUMP...: NAMES is a list of parts of function names, joined by
commas. For each dump a line: its description, and for each name the instructions.
"""
import re
import sys


def read_dump(path, wanted):
    """(description, [instructions of the calls to functions with each wanted name])"""
    names, costs = {}, [0] * len(wanted)
    description, called, is_call = "", None, False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("desc: Trigger: Client Request: "):
                description = line.split(": ", 3)[-1].strip()
            match = re.match(r"c?fn=\((\d+)\)(?: (.*))?$", line)
            if match:
                if match[2]:
                    names[match[1]] = match[2]
                if line.startswith("c"):
                    called = names[match[1]]
            elif line.startswith("calls="):
                is_call = True  # the next line is the cost of the call
            elif is_call and re.match(r"[+\-*\d]", line):
                is_call = False
                for i, name in enumerate(wanted):
                    if name in called:
                        costs[i] += int(line.split()[1])
    return description, costs


def main():
    wanted = sys.argv[1].split(",")
    for path in sys.argv[2:]:
        description, costs = read_dump(path, wanted)
        if description:
            print(description, *costs)


if __name__ == "__main__":
    main()
