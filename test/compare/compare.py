#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own net_mlx5 and net_mlx5raw on the same software card, side by side: every
scenario runs with both, and what was observed (frames that came, counters, answers) is
compared. A difference must be listed with its reason in differences.py.

With TAGWIRE_TEST_SLOW in the environment (./run test --slow) or --paths each other way of
receiving and sending of net_mlx5raw is compared, too.

usage: compare.py BUILD_DIR [--only net_mlx5|net_mlx5raw] [--paths] [SCENARIO...]
"""
import argparse
import os
import sys
import tempfile
import time

import scenarios_basic
import scenarios_control
import scenarios_offload
from differences import ABSENT, reason_of
from rig import Failed, Ours, Stock, Testpmd, enter_namespace

SCENARIOS = {**scenarios_basic.SCENARIOS, **scenarios_offload.SCENARIOS,
             **scenarios_control.SCENARIOS}

# Arguments that choose other ways of receiving and sending, and what shows these.
# An entry that begins with -- is an argument of EAL.
PATHS = ("--force-max-simd-bitwidth=512", "rx_vec_en=0", "rx_vec_en=0,rxq_cqe_comp_en=0", "rxq_cqe_comp_en=0,tx_vec_en=0",
         "txq_mpw_en=0", "txq_inline_mpw=200", "txq_mpw_en=0,txq_inline_max=300",
         "txq_mpw_en=0,txq_inline_min=18", "mprq_en=1", "mprq_en=1,rxq_cqe_comp_en=0")
PATH_SCENARIOS = ("io, 1 queue", "io, 4 queues", "9,000-byte frames", "stats", "missed frames",
                  "packet descriptions", "sent checksums", "TSO", "VLAN strip", "VLAN insert",
                  "flow rules", "RSS table under traffic")
# A striding queue takes no frame beyond the largest stride of the card.
UNFIT = {"mprq_en=1": "9,000-byte frames"}


def observe(build, driver, name, more_devargs):
    """{observation: value} of one driver, and the failure or None. `more_devargs`: an entry of
    PATHS, or what the user asks for."""
    function, options = SCENARIOS[name]
    if more_devargs.startswith("--"):
        options = {**options, "eal": [more_devargs]}
    elif more_devargs:
        devargs = dict(options.get("devargs", {}))
        devargs[driver.name] = f"{devargs.get(driver.name, '')},{more_devargs}"
        options = {**options, "devargs": devargs}
    seen = {}
    with tempfile.TemporaryDirectory(prefix="tagwire-compare-") as folder:
        pmd = None
        try:
            pmd = Testpmd(build, driver, folder, **options)
            function(pmd, seen.__setitem__)
            pmd.check_mbufs()
            pmd.quit()
        except Failed as error:
            return seen, f"{driver.name}: {error}"
        finally:
            if pmd is not None:
                pmd.kill()
    return seen, None


def short(value):
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return f"{len(value)} frames"
    text = str(value)
    return text if len(text) <= 300 else text[:300] + "..."


def first_difference(stock, ours):
    """Of two lists of frames."""
    for index, (a, b) in enumerate(zip(stock, ours)):
        if a != b:
            return f"frame {index}: {a[:80].hex()} / {b[:80].hex()} ({len(a)} / {len(b)} bytes)"
    return ""


def compare(name, stock, ours):
    """(how many agree, lines about listed differences, lines about others)."""
    agree, listed, unlisted, alone = 0, {}, [], {}
    for key in dict.fromkeys([*stock, *ours]):
        a, b = stock.get(key, ABSENT), ours.get(key, ABSENT)
        if a == b:
            agree += 1
            continue
        line = f"{key}: net_mlx5 {short(a)} / net_mlx5raw {short(b)}"
        reason = reason_of(name, key, a, b)
        if reason is not None and ABSENT in (a, b):
            who = Ours.name if a == ABSENT else Stock.name
            alone.setdefault((reason, f"only {who}"), []).append(key)
            listed.setdefault(reason, [])
        elif reason is None:
            unlisted.append(line)
            if isinstance(a, list) and isinstance(b, list) and a and isinstance(a[0], bytes):
                unlisted.append("    " + first_difference(a, b))
        else:
            listed.setdefault(reason, []).append(line)
    for (reason, who), keys in alone.items():
        listed[reason].append(f"{who}: {', '.join(keys)}")
    return agree, listed, unlisted


def run(build, name, stock_devargs, our_devargs, known=None):
    """(the drivers agree but for what is listed, observations that agree, that differ as
    listed). `known`: what net_mlx5 showed before, kept for the next time."""
    started = time.monotonic()
    known = {} if known is None else known
    if name not in known:
        known[name] = observe(build, Stock, name, stock_devargs)
    stock, stock_failure = known[name]
    ours, our_failure = observe(build, Ours, name, our_devargs)
    agree, listed, unlisted = compare(name, stock, ours)
    failures = [text for text in (stock_failure, our_failure) if text]
    good = not failures and not unlisted
    path = f" ({our_devargs})" if our_devargs else ""
    print(f"{'ok    ' if good else 'FAILED'}  {name}{path}: {agree} observations agree, "
          f"{sum(map(len, listed.values()))} listed differences "
          f"({time.monotonic() - started:.1f} s)")
    for reason, lines in listed.items():
        print(f"    reason: {reason}")
        for line in lines:
            print(f"        {line}")
    for line in unlisted:
        print(f"    NOT LISTED: {line}")
    for failure in failures:
        print(f"    {failure}")
    sys.stdout.flush()
    return good, agree, sum(map(len, listed.values()))


def show_one(build, driver, name, devargs):
    seen, failure = observe(build, driver, name, devargs)
    print(f"{'FAILED' if failure else 'ok    '}  {name} with {driver.name}")
    for key, value in seen.items():
        print(f"    {key}: {short(value)}")
    if failure:
        print(f"    {failure}")
    return failure is None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", choices=[Stock.name, Ours.name],
                        help="observations of one driver, not compared")
    parser.add_argument("--stock-devargs", default="", metavar="NAME=VALUE,...",
                        help="more device arguments for net_mlx5")
    parser.add_argument("--our-devargs", default="", metavar="NAME=VALUE,...",
                        help="more device arguments for net_mlx5raw")
    parser.add_argument("--paths", action="store_true",
                        help="also each other way of receiving and sending of net_mlx5raw")
    parser.add_argument("scenario", nargs="*", help="; ".join(SCENARIOS))
    arguments = parser.parse_intermixed_args()
    build = os.path.abspath(arguments.build)
    unknown = [name for name in arguments.scenario if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {unknown[0]}: {'; '.join(SCENARIOS)}")
    names = arguments.scenario or list(SCENARIOS)
    enter_namespace()
    if arguments.only:
        driver, devargs = ((Stock, arguments.stock_devargs) if arguments.only == Stock.name else
                           (Ours, arguments.our_devargs))
        return 0 if all([show_one(build, driver, name, devargs) for name in names]) else 1
    known = {}
    results = [run(build, name, arguments.stock_devargs, arguments.our_devargs, known)
               for name in names]
    if arguments.paths or (os.environ.get("TAGWIRE_TEST_SLOW") and not arguments.scenario):
        results += [run(build, name, arguments.stock_devargs, path, known)
                    for path in PATHS for name in names if name in PATH_SCENARIOS
                    and UNFIT.get(path.split(",")[0]) != name]
    bad = sum(not good for good, _, _ in results)
    print(f"{len(results)} scenarios, {bad} failed: {sum(agree for _, agree, _ in results)} "
          f"observations agree, {sum(count for _, _, count in results)} differ for listed reasons")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
