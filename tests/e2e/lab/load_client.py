"""load.py as a process on a worker, and what it saw."""

import json
import pathlib
import subprocess

from .process import Process

PROGRAM = pathlib.Path(__file__).with_name("load.py")
FINISHING = 20  # seconds it is given to print


class LoadClient:
    """Runs while the `with` block runs."""

    def __init__(self, worker, ca, log, *, held, every, fresh_every, path="/api"):
        self.command = [PROGRAM, "--ca", ca, "--held", held, "--every", every, "--fresh-every", fresh_every,
                        "--path", path]
        self.worker, self.log = worker, log

    def __enter__(self):
        self.process = Process(self.worker, self.command, self.log, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, kind, *_):
        try:
            output, _ = self.process.popen.communicate(timeout=FINISHING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        if kind is None:
            self.seen = Seen(**json.loads(output))


class Seen:
    def __init__(self, silences, ends, fresh):
        self.silences, self.ends, self.fresh = silences, ends, fresh

    def longest_silence(self, since):
        """On a held connection, of those that lasted into the time from `since` on."""
        return max((end - begin for begin, end in self.silences if end > since), default=0.0)

    def ended(self, since):
        """How many held connections ended."""
        return sum(when >= since for when, _ in self.ends)

    def failed_fresh(self, since, until=float("inf")):
        """Of those that were due in that time."""
        return sum(bool(error) for due, _, error in self.fresh if since <= due < until)

    def slowest_fresh(self, since):
        return max((ended - due for due, ended, _ in self.fresh if due >= since), default=0.0)

    def longest_gap(self, since):
        """Between two fresh connections, one after the other, that were answered, if the second was after `since`."""
        answered = sorted(ended for _, ended, error in self.fresh if not error)
        return max((end - begin for begin, end in zip(answered, answered[1:]) if end > since), default=float("inf"))
