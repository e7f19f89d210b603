#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Judges a run of UCX's gtest against the list of what is expected.

usage: ucx_gtest_result.py LOG CASES EXPECTED

CASES are all cases, one a line. A line of EXPECTED is "inside PATTERN what it looks at" (not run, counts as failed) or
"fails PATTERN why". A failure that is not listed, and a listed one that passes, fail the run.
"""
import collections
import fnmatch
import re
import sys


def main():
    log, names, expected = sys.argv[1:]
    rules = []
    with open(expected) as lines:
        for line in lines:
            fields = line.split(None, 2)
            if len(fields) == 3 and fields[0] in ("inside", "fails"):
                rules.append(fields)
    results = {}
    running = None
    skipped = False
    with open(log, errors="replace") as lines:
        for line in lines:
            if match := re.match(r"\[ RUN      \] (\S+)", line):
                running = match[1]
                skipped = False
            elif line.startswith("[     SKIP ]"):
                skipped = True  # it ends as OK
            elif match := re.match(r"\[(       OK |  FAILED  )\] ([^ ,]+),? .*ms\)", line):
                results[match[2]] = "failed" if "FAILED" in match[1] else "skipped" if skipped else "passed"
                running = None
    table = collections.defaultdict(collections.Counter)
    unexpected = []
    if running is not None:
        results[running] = "failed"
        unexpected.append(f"{running} ended the run")
    for case, result in results.items():
        table[case.split("/")[1].split(".")[0]][result] += 1
        listed = any(kind == "fails" and fnmatch.fnmatchcase(case, pattern) for kind, pattern, _ in rules)
        if result == "failed" and not listed:
            unexpected.append(f"{case} failed")
        elif result == "passed" and listed:
            unexpected.append(f"{case} passed, but is listed as failing")
    with open(names) as lines:
        cases = lines.read().split()
    inside = [case for case in cases
              if any(kind == "inside" and fnmatch.fnmatchcase(case, pattern) for kind, pattern, _ in rules)]
    missing = len(cases) - len(inside) - len(results)
    if missing > 0:
        unexpected.append(f"{missing} cases did not run")
    for name, counts in sorted(table.items()):
        print(f"  {name:42} {counts['passed']:4} passed {counts['failed']:4} failed {counts['skipped']:4} skipped")
    total = sum(table.values(), collections.Counter())
    failed = total["failed"] + len(inside)
    ran = total["passed"] + failed
    share = 100 * total["passed"] / ran if ran else 0
    print(f"{total['passed']} passed, {total['failed']} failed, {len(inside)} not run (they look inside), "
          f"{total['skipped']} skipped: {share:.1f} % of {ran} pass")
    for text in unexpected:
        print("unexpected: " + text)
    sys.exit(1 if unexpected or share < 95 else 0)


main()
