#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""./run doctor: what it says here, and on a machine that has nothing."""
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# What every Debian has, and no more: no compiler, no pkg-config, no Meson.
BARE = "bash sh awk basename cat cut df dirname grep head id ls nproc readlink sed sort tail tr uname".split()


def doctor(environment):
    return subprocess.run(["bash", os.path.join(ROOT, "run"), "doctor"], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=250)


class Doctor(unittest.TestCase):
    def test_here_everything_essential_is_found(self):
        result = doctor(os.environ)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("Everything essential is here", result.stdout)

    def test_on_a_bare_machine_each_miss_has_its_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in BARE:
                os.symlink(shutil.which(name), os.path.join(folder, name))
            result = doctor({"PATH": folder, "HOME": folder})
        self.assertEqual(result.returncode, 1, result.stdout)
        missing = [line for line in result.stdout.splitlines() if line.startswith("missing")]
        for package in ("g++", "meson", "ninja-build", "pkg-config", "python3", "libdpdk-dev", "libssl-dev"):
            self.assertTrue(any(line.endswith(" " + package) for line in missing), (package, result.stdout))
        for line in missing:
            self.assertIn("->", line)
        self.assertNotIn("command not found", result.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
