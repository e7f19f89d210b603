#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of functions themselves, without what they call, for each of their calls.

usage: callgrind_own.py DUMP NAME...: NAME is a part of a function's name. For each a line: the
name, its calls, its own instructions per call (what is inlined into it counts).
"""
import re
import sys


def read_dump(path):
    """{function: [calls, own instructions]}"""
    names, found = {}, {}
    function, called, is_call = None, None, False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line)
            if match:
                if match[3]:
                    names[match[2]] = match[3]
                if match[1]:
                    called = names[match[2]]
                else:
                    function = names[match[2]]
            elif line.startswith("calls="):
                found.setdefault(called, [0, 0])[0] += int(line[6:].split()[0])
                is_call = True  # the next line is the cost of the call
            elif re.match(r"[+\-*\d]", line):
                if not is_call and function is not None:
                    found.setdefault(function, [0, 0])[1] += int(line.split()[1])
                is_call = False
    return found


def main():
    found = read_dump(sys.argv[1])
    for name in sys.argv[2:]:
        matching = [value for function, value in found.items() if name in function]
        calls = sum(value[0] for value in matching)
        own = sum(value[1] for value in matching)
        print(f"{name} {calls} {own / calls if calls else 0:.1f}")


if __name__ == "__main__":
    main()
