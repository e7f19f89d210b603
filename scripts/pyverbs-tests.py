#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs rdma-core's Python tests, unmodified, on softcx, and compares what they skip.

Each module gets a process of its own. One that dies is started again behind the test that it
died in. Called by pyverbs-tests.sh, which finds the sources.
"""
import argparse
import fnmatch
import importlib
import os
import signal
import subprocess
import sys
import unittest

# The modules that concern an Ethernet port with raw packet queues.
MODULES = [
    'test_device', 'test_pd', 'test_mr', 'test_cq', 'test_cqex', 'test_flow', 'test_rss_traffic',
    'test_mlx5_cq', 'test_parent_domain', 'test_mlx5_uar', 'test_qp', 'test_mlx5_timestamp',
]
SECONDS_PER_MODULE = 120


class Recorder(unittest.TestResult):
    """One line per event on a pipe, at once: the process may not live to the end."""

    def __init__(self, pipe):
        super().__init__()
        self.pipe = pipe

    def tell(self, *fields):
        line = '\t'.join(str(field).replace('\n', ' ').replace('\t', ' ') for field in fields)
        os.write(self.pipe, (line + '\n').encode())

    def startTest(self, test):
        super().startTest(test)
        self.tell('start', test.id())

    def addSuccess(self, test):
        self.tell('passed', test.id(), '')

    def addSkip(self, test, reason):
        self.tell('skipped', test.id(), reason)

    def addError(self, test, error):
        self.tell('failed', test.id(), repr(error[1]))

    def addFailure(self, test, error):
        self.tell('failed', test.id(), repr(error[1]))

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.tell('failed', test.id(), f'{subtest}: {error[1]!r}')


def every_test(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from every_test(entry)
        else:
            yield entry


def run_module(source, module, pipe, done):
    """The child: as tests/run_tests.py prepares it, but with our recorder."""
    importlib.import_module('pyverbs')  # the installed one: the source tree has a folder of that name
    sys.path[:0] = [os.path.join(source, 'tests'), source]
    sys.argv[1:] = []
    from args_parser import parser
    parser.parse_args()
    importlib.import_module('tests')
    loaded = unittest.defaultTestLoader.loadTestsFromName('tests.' + module)
    suite = unittest.TestSuite(test for test in every_test(loaded) if test.id() not in done)
    suite.run(Recorder(pipe))


def results_of(arguments, module):
    """{test id: (outcome, reason)} of a module, however often its process dies."""
    results = {}
    while True:
        reader, writer = os.pipe()
        child = subprocess.Popen(
            [arguments.softcx_run, sys.executable, __file__, '--child', module, '--pipe',
             str(writer), '--source', arguments.source, '--done', ','.join(results)],
            pass_fds=[writer], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.close(writer)
        try:
            _, errors = child.communicate(timeout=SECONDS_PER_MODULE)
        except subprocess.TimeoutExpired:
            child.kill()
            _, errors = child.communicate()
        last = None
        with os.fdopen(reader) as lines:
            for line in lines:
                outcome, test, *reason = line.rstrip('\n').split('\t')
                last = test
                if outcome != 'start':
                    results[test] = (outcome, reason[0])
                elif test not in results:
                    results[test] = ('failed', 'no result')
        if child.returncode == 0:
            return results
        died = (signal.Signals(-child.returncode).name if child.returncode < 0
                else f'exit status {child.returncode}')
        if last is None:
            results['tests.' + module] = ('failed', died + ': ' + errors.decode()[-400:])
            return results
        results[last] = (results[last][0] + ', died', f'{results[last][1]} ({died})')


def read_expected(path):
    """[(pattern, outcome, feature)]: lines of PATTERN | OUTCOME | FEATURE."""
    expected = []
    with open(path, encoding='utf-8') as lines:
        for line in lines:
            if line.strip() and not line.startswith('#'):
                expected.append(tuple(field.strip() for field in line.split('|')))
    return expected


def judge(test, outcome, expected):
    """(is it as it should be, the feature that a skip needs)"""
    if outcome == 'passed':
        return True, ''
    for pattern, wanted, feature in expected:
        if fnmatch.fnmatchcase(test, pattern):
            return outcome in wanted.split(' or '), feature
    return False, ''


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--softcx-run', help='the softcx-run of the build')
    parser.add_argument('--source', required=True, help="rdma-core's source tree")
    parser.add_argument('--expected', help='the skips that are in order')
    parser.add_argument('--child', help=argparse.SUPPRESS)
    parser.add_argument('--pipe', type=int, help=argparse.SUPPRESS)
    parser.add_argument('--done', default='', help=argparse.SUPPRESS)
    parser.add_argument('modules', nargs='*', help='of these only')
    arguments = parser.parse_args()
    if arguments.child:
        run_module(arguments.source, arguments.child, arguments.pipe, arguments.done.split(','))
        return 0

    expected = read_expected(arguments.expected)
    counts = {'passed': 0, 'skipped': 0}
    bad = []
    for module in arguments.modules or MODULES:
        for test, (outcome, reason) in results_of(arguments, module).items():
            name = test.removeprefix('tests.')
            good, feature = judge(name, outcome, expected)
            counts[outcome.split(',')[0]] = counts.get(outcome.split(',')[0], 0) + 1
            if not good:
                bad.append(name)
            note = f'needs {feature}' if feature and good else reason
            print(f'{"" if good else "UNEXPECTED "}{outcome:14} {name}{"  " + note if note else ""}',
                  flush=True)
    print(', '.join(f'{count} {outcome}' for outcome, count in counts.items()))
    if bad:
        print(f'{len(bad)} not as expected: {" ".join(bad)}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
