#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perftest, as Debian ships it, in two processes over the shared-memory switch: every case of
perftest_cases.py, or with TAGWIRE_TEST_SLOW=1 the slow ones too.

usage: perftest_test.py [--all] [--list] [--mode MODE] SOFTCX-RUN [PATTERN]
"""
import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from perftest_cases import BURST, CASES, IMPOSSIBLE, LAT, RATE

SECONDS_PER_CASE = 20
SERVER_MAC, CLIENT_MAC = '02:00:00:00:10:01', '02:00:00:00:10:02'
# The receive ring holds every frame: raw Ethernet has no flow control, and perftest waits for
# frames that were dropped.
DEPTH = {'raw_ethernet_bw': '-r 4096', BURST: '-r 4096'}


def options_of(case):
    options = case.both.split()
    if '-s' not in options and case.program != RATE:
        options += ['-s', str(case.size)]
    if '-n' not in options and '-D' not in options:
        options += ['-n', '1000']
    return options + DEPTH.get(case.program, '').split()


class Side:
    def __init__(self, run, case, switch, role, folder):
        own, other = (SERVER_MAC, CLIENT_MAC) if role == 'server' else (CLIENT_MAC, SERVER_MAC)
        wire = ['--wire', 'loopback'] if case.program == RATE else ['--wire', f'switch:{switch}']
        command = [*run, *wire, '--mac', own, 'stdbuf', '-oL', case.program, '--' + role, '-d',
                   'mlx5_0', '--source_mac', own]
        command += ['--dest_mac', other]
        command += options_of(case) + (case.server if role == 'server' else case.client).split()
        self.path = os.path.join(folder, role)
        with open(self.path, 'w', encoding='utf-8') as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def output(self):
        with open(self.path, encoding='utf-8', errors='replace') as text:
            return text.read()

    def wait_for(self, pattern, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            if re.search(pattern, self.output()):
                return
            time.sleep(0.02)

    def end(self, seconds):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
            return 'no end'


def numbers_of(case, text):
    """The report line of this size or count, as numbers; None without one."""
    first = str(case.count) if case.program == RATE else str(case.size)
    for line in reversed(text.splitlines()):
        fields = line.replace(',', ' ').split()
        if len(fields) >= 4 and fields[0] == first:
            try:
                return [float(field) for field in fields]
            except ValueError:
                continue
    return None


def complaint(case, role, status, text):
    if status != 0:
        return f'the {role} ended with {status}'
    if re.search(r'Couldn|Failed|Unable|client error', text):
        return f'the {role} reports a failure'
    if role == 'client' and case.expect and not re.search(case.expect, text):
        return f'the {role} says nothing of {case.expect}'
    if role == 'server' and case.program in (BURST,):
        return None  # it answers and has nothing to report
    numbers = numbers_of(case, text)
    if numbers is None:
        return f'no report in the output of the {role}'
    if case.count is not None and case.program != RATE and int(numbers[1]) != case.count:
        return f'the {role} reports {numbers[1]:.0f} iterations instead of {case.count}'
    measured = numbers[-2:] if case.program != LAT else numbers[2:6]
    if not all(0 < number < 1e12 for number in measured):
        return f'the {role} reports {measured}'
    return None


def run_case(run, case, number):
    with tempfile.TemporaryDirectory() as folder:
        switch = f'perftest-{os.getpid()}-{number}'
        # The side that receives must have its receives posted before the other one sends.
        roles = ['server'] if case.program == RATE else ['server', 'client']
        if '--reversed' in case.both:
            roles.reverse()
        sides = {roles[0]: Side(run, case, switch, roles[0], folder)}
        if case.program != RATE:
            sides[roles[0]].wait_for('#bytes', 10)
            time.sleep(0.1)
            sides[roles[1]] = Side(run, case, switch, roles[1], folder)
        faults = []
        for role in reversed(sides):
            status = sides[role].end(SECONDS_PER_CASE)
            fault = complaint(case, role, status, sides[role].output())
            if fault:
                faults.append(fault)
        if faults:
            for role, side in sides.items():
                print(f'-- {role}: {" ".join(side.process.args)}')
                print(side.output())
        return faults


def main():
    parser = argparse.ArgumentParser(description='perftest on softcx')
    parser.add_argument('--all', action='store_true', help='the slow cases too')
    parser.add_argument('--list', action='store_true', help='the cases, and what is not tested')
    parser.add_argument('--mode', default='auto', help='of softcx-run')
    parser.add_argument('run', help='softcx-run')
    parser.add_argument('pattern', nargs='?', default='*', help='of the names of cases')
    arguments = parser.parse_args()
    slow = arguments.all or os.environ.get('TAGWIRE_TEST_SLOW') == '1'
    cases = [case for case in CASES if fnmatch.fnmatchcase(case.name, arguments.pattern) and
             (slow or not case.slow or arguments.pattern != '*')]
    if arguments.list:
        for case in cases:
            print(f'{case.name:45} {case.program} {case.both} {case.server} {case.client}')
        for option, reason in IMPOSSIBLE.items():
            print(f'{option:45} not tested: {reason}')
        return 0
    if shutil.which(LAT) is None:
        print('perftest is not installed')
        return 77
    # What a stock program leaks is its own (this matters to a sanitized build).
    os.environ['ASAN_OPTIONS'] = 'detect_leaks=0:' + os.environ.get('ASAN_OPTIONS', '')
    run = [arguments.run, '--mode', arguments.mode]
    failed = []
    for number, case in enumerate(cases):
        start = time.monotonic()
        faults = run_case(run, case, number)
        print(f'{"FAILED" if faults else "ok":6} {time.monotonic() - start:5.1f} s  {case.name}'
              f'{": " + "; ".join(faults) if faults else ""}', flush=True)
        if faults:
            failed.append(case.name)
    print(f'{len(cases)} cases, {len(failed)} failed' + (': ' + ', '.join(failed) if failed else ''))
    return 1 if failed or not cases else 0


if __name__ == '__main__':
    sys.exit(main())
