"""The load: wrk, and an open-loop client for where a stall must show."""

import os
import re
import subprocess
from dataclasses import dataclass

from .process import set_niceness

UNITS = {"us": 1, "ms": 1e3, "s": 1e6, "m": 6e7}
SIZES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}


@dataclass
class Seen:
    """What a client got: requests and GiB, each in all and a second; times in microseconds."""
    requests: int
    gib: float
    seconds: float
    p50: float
    p99: float


def wrk(port, path, connections, seconds, cores, close=False):
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "30s",
               f"http://127.0.0.1:{port}/{path}"]
    if close:
        command += ["-H", "Connection: close"]
    return started_wrk(command, cores)()


def started_wrk(command, cores):
    """Starts it; the result waits for its end and reads what it says."""
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def finish():
        text, _ = running.communicate()
        failed = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", text)
        if running.returncode != 0 or "Non-2xx" in text or (failed and any(int(count) for count in failed.groups())):
            raise RuntimeError(f"{' '.join(command)}: {text}")
        done = re.search(r"(\d+) requests in ([\d.]+)(\w+), ([\d.]+)([KMG]?B) read", text)
        latency = {percent: float(value) * UNITS[unit] for percent, value, unit in
                   re.findall(r"^\s+(\d+)%\s+([\d.]+)(us|ms|s|m)$", text, re.M)}
        return Seen(int(done[1]), float(done[4]) * SIZES[done[5]] / 2**30, float(done[2]) * UNITS[done[3]] / 1e6,
                    latency.get("50", 0.0), latency.get("99", 0.0))

    return finish


def paced(build, port, rate, connections, seconds, cores, niceness):
    """Requests by schedule, each timed from when it was due. p50 and p99 in microseconds."""
    def prepare():
        os.sched_setaffinity(0, cores)
        set_niceness(0, niceness)

    done = subprocess.run([f"{build}/bench/paced", str(port), str(rate), str(connections), str(seconds)],
                          capture_output=True, text=True, check=True, preexec_fn=prepare)
    requests, p50, p99, worst = (float(word) for word in done.stdout.split())
    return {"requests": requests, "p50": p50, "p99": p99, "worst": worst}
