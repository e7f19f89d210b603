#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of a callgrind dump by the object (library, program) that they belong to.

usage: callgrind_objects.py DUMP...: the description of each dump ("rx 64 32768 1024" of
driver_instructions), then object and instructions, largest first.
"""
import collections
import re
import sys


def read_dump(path):
    """(description, {object: instructions}); a called function counts for its own object."""
    names, costs = {}, collections.Counter()
    current = description = None
    skip_next = False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("desc: Trigger: Client Request: "):
                description = line.split(": ", 3)[-1].strip()
            match = re.match(r"c?ob=\((\d+)\)(?: (.*))?$", line)
            if match:
                if match[2]:
                    names[match[1]] = match[2]
                if not line.startswith("c"):
                    current = names[match[1]]
            elif line.startswith("calls="):
                skip_next = True  # the next line is the cost of the call, which the callee has
            elif re.match(r"[+\-*\d]", line):
                if not skip_next:
                    costs[current] += int(line.split()[1])
                skip_next = False
    return description, costs


def main():
    for path in sys.argv[1:]:
        description, costs = read_dump(path)
        print(description)
        for name, cost in costs.most_common():
            print(f"    {name} {cost}")


if __name__ == "__main__":
    main()
