"""load.py as a process on a worker, and what it saw."""

import json
import pathlib
import subprocess

from .process import Process

PROGRAM = pathlib.Path(__file__).with_name("load.py")
FINISHING = 20  # seconds it is given to print


class LoadClient:
    """Runs while the `with` block runs."""

    def __init__(self, worker, ca, log, *, held, every, fresh_every):
        self.command = [PROGRAM, "--ca", ca, "--held", held, "--every", every, "--fresh-every", fresh_every]
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

    def longest_silence(self, struck, until=float("inf")):
        """On a held connection, of those that lasted into the time from `struck` to `until`."""
        return max((end - max(begin, struck) for begin, end in self.silences if end > struck and begin < until),
                   default=0.0)

    def ended(self, struck, until=float("inf")):
        """How many held connections ended."""
        return sum(struck <= when < until for when, _ in self.ends)

    def _fresh(self, struck, until):
        return [(due, ended, error) for due, ended, error in self.fresh if ended >= struck and due < until]

    def failed_fresh(self, struck, until=float("inf")):
        return sum(bool(error) for _, _, error in self._fresh(struck, until))

    def slowest_fresh(self, struck, until=float("inf")):
        return max((ended - max(due, struck) for due, ended, _ in self._fresh(struck, until)), default=0.0)
