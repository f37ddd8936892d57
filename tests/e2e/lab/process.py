"""A program on a host, ended by its pid."""

import os
import signal
import subprocess
import time


def wait_until(claim, what, limit, every=0.1):
    """Looks every so many seconds until `claim()` is true; raises after `limit`, naming what did not come true."""
    deadline = time.monotonic() + limit
    while not claim():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {limit} s")
        time.sleep(every)


class Process:
    def __init__(self, host, argv, log, env=None, stdin=subprocess.DEVNULL, stdout=None):
        with open(log, "ab") as out:
            # A session of its own: Ctrl-C ends the laboratory in order, not every program at once.
            self.popen = subprocess.Popen(host.command(*argv), stdin=stdin, stdout=stdout or out, stderr=out,
                                          start_new_session=True, env={**os.environ, **(env or {})})

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def signal(self, number):
        if self.running():
            self.popen.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.popen.wait(10)

    def stop(self, limit=10):
        """Asks, then insists. Returns the exit status."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            return self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.popen.returncode
