#!/usr/bin/python3
"""The role's give-back, with a stand-in for systemctl: which manifest is there in the end, and whether kubelane is."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "deploy/ansible/roles/kubelane/files/give-back"
# A network of its own, where root may have one: no proxy of this machine is taken for the one that is waited for.
ALONE = ["unshare", "--net"] if os.geteuid() == 0 else []
SYSTEMCTL = """#!/bin/sh
case "$*" in
  *ActiveState*) echo $STATE ;;
  *StatusText*) echo $STATUS ;;
  *) echo "$1" >>$CALLS ;;
esac
"""


class GiveBack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kl-give-back-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.saved = self.folder / "saved.yml"
        self.manifest = self.folder / "nginx-proxy.yml"
        self.calls = self.folder / "calls"
        stub = self.folder / "systemctl"
        stub.write_text(SYSTEMCTL)
        stub.chmod(0o755)

    def give_back(self, state, status="", proxy="nginx"):
        """Its exit status, and whether kubelane was stopped."""
        self.calls.write_text("")
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "STATE": state, "STATUS": status,
                       "CALLS": str(self.calls)}
        done = subprocess.run([*ALONE, "/bin/sh", str(SCRIPT), proxy, self.saved, self.manifest, "1"],
                              env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, self.calls.read_text().split() == ["stop", "disable"]

    def test_puts_the_saved_manifest_back(self):
        for state, status in ("inactive", ""), ("active", "waiting for 127.0.0.1:6443"):
            self.manifest.unlink(missing_ok=True)
            self.saved.write_text("saved")
            self.assertEqual(self.give_back(state, status), (0, True))
            self.assertEqual(self.manifest.read_text(), "saved")
            self.assertFalse(self.saved.exists())

    def test_keeps_a_newer_manifest_and_what_was_saved(self):
        self.saved.write_text("saved")
        self.manifest.write_text("newer")
        for proxy in "nginx", "haproxy":
            self.assertEqual(self.give_back("inactive", proxy=proxy), (0, True))
            self.assertEqual(self.manifest.read_text(), "newer")
            self.assertEqual(self.saved.read_text(), "saved")

    def test_does_not_fail_if_nothing_was_saved(self):
        self.assertEqual(self.give_back("inactive"), (0, True))
        self.assertFalse(self.manifest.exists())
        self.manifest.write_text("newer")
        self.assertEqual(self.give_back("active", "waiting for 127.0.0.1:6443"), (0, True))
        self.assertEqual(self.manifest.read_text(), "newer")

    def test_takes_its_own_manifest_away_if_the_kubelet_is_dead(self):
        self.saved.write_text("saved")
        self.assertEqual(self.give_back("active", "3 of 3 ready"), (1, False))
        self.assertFalse(self.manifest.exists())
        self.assertEqual(self.saved.read_text(), "saved")

    def test_leaves_a_newer_manifest_if_the_kubelet_is_dead(self):
        self.saved.write_text("saved")
        self.manifest.write_text("newer")
        self.assertEqual(self.give_back("active", "3 of 3 ready"), (1, False))
        self.assertEqual(self.manifest.read_text(), "newer")
        self.assertEqual(self.saved.read_text(), "saved")


if __name__ == "__main__":
    unittest.main()
