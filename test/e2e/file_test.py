#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files between two processes, both ways."""
import hashlib
import os
import random
import stat

import peers


def tree(folder):
    """{relative name: (contents, mode)} of every file below a folder."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = (file.read(), stat.S_IMODE(os.stat(path).st_mode))
    return found


class Files(peers.PeersTest):
    def write(self, name, contents, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(contents)
        os.chmod(self.path(name), mode)

    def write_tree(self, folder, seed):
        source = random.Random(seed)
        self.write(f"{folder}/empty", b"")
        self.write(f"{folder}/one byte", b"x")
        self.write(f"{folder}/sub/deeper/frame", source.randbytes(1472))
        self.write(f"{folder}/sub/program", source.randbytes(70001), 0o755)
        self.write(f"{folder}/große Datei", source.randbytes(3 << 20))
        os.symlink("one byte", self.path(folder, "link"))

    def test_both_ways_names_modes_and_contents_are_kept(self):
        self.write_tree("there", 1)
        self.write_tree("back", 2)
        inbox, outbox = self.make_folder("inbox"), self.make_folder("outbox")
        server = self.start_server("--dir", inbox, "--share", self.path("back"))
        document = self.run_client("file", self.path("there"), "--fetch", "--dir", outbox, "--max-message", "64K")
        result = self.assert_ended_right(server)

        self.assertEqual(tree(self.path("inbox", "there")), tree(self.path("there")))
        self.assertEqual(tree(self.path("outbox", "back")), tree(self.path("back")))
        for row in document["results"]:
            self.assertIn(row["sha256"], result.output)
        digests = {hashlib.sha256(contents).hexdigest() for contents, _ in tree(self.path("there")).values()}
        sent = {row["sha256"] for row in document["results"] if row["direction"] == "sent"}
        self.assertEqual(sent, digests)

    def test_an_older_file_is_replaced(self):
        self.write("new/name", b"new contents")
        self.write("inbox/name", b"old contents, longer than the new ones")
        server = self.start_server("--dir", self.path("inbox"))
        self.run_client("file", self.path("new/name"))
        self.assert_ended_right(server)
        self.assertEqual(tree(self.path("inbox")), {"name": (b"new contents", 0o644)})

    def test_a_server_without_files_says_so(self):
        server = self.start_server()
        client = self.start_client("file", "--fetch").finish()
        self.assertEqual(client.status, 1, client.text)
        self.assertIn("shares no files", client.errors)
        self.assertEqual(server.finish().status, 1)

    def test_a_folder_that_goes_while_the_server_runs_is_said_on_both_sides(self):
        self.write("source", b"contents")
        server = self.start_server("--dir", self.path(self.make_folder("missing")))
        os.rmdir(self.path("missing"))
        client = self.start_client("file", self.path("source")).finish()
        self.assertEqual(client.status, 1, client.text)
        self.assertIn("missing", client.errors)
        self.assertIn("missing", server.finish().errors)

    def test_a_link_in_the_inbox_leads_nowhere(self):
        self.write("folder/file", b"contents")
        os.makedirs(self.path("outside"))
        os.symlink("../outside", self.path(self.make_folder("inbox"), "folder"))
        server = self.start_server("--dir", self.path("inbox"))
        client = self.start_client("file", self.path("folder")).finish()
        self.assertEqual(client.status, 1, client.text)
        self.assertEqual(server.finish().status, 1)
        self.assertEqual(os.listdir(self.path("outside")), [])


if __name__ == "__main__":
    peers.main()
