"""Runs the rows of a table on racks: all proxies of a rack under one fault, several racks at once."""

import collections
import contextlib
import threading
import time
import traceback
from dataclasses import dataclass

from lab.progress import tell
from lab.proxy import Kubelane
from lab.rack import Rack

SETTLE = 3  # seconds of traffic before the fault


@dataclass
class Job:
    row: str
    columns: list
    fault: object   # (rack, server that is hit) -> a context manager
    seconds: float  # that it lasts
    number: int     # of this run: runs take turns in which server is hit
    after: float = 2  # seconds of traffic after the fault, at least
    lasts: float = 0  # seconds of traffic from its beginning on, at least


@dataclass
class Seen:
    """What one run showed of one proxy; times are CLOCK_MONOTONIC."""
    load: object
    struck: float     # the fault was about to begin
    in_effect: float  # what begins from now on cannot have been in the lost server's hands
    undone: float
    transitions: int  # kubelane's changes of state since the fault


def run_jobs(jobs, racks, measure, table, check_time):
    """`measure(row, Seen)` makes a cell's measures; a run that could not be made is a problem of its row."""
    remaining = collections.deque(jobs)

    def work(rack):
        while remaining:
            job = remaining.popleft()
            try:
                check_time()
                tell(f"{job.row}: run {job.number + 1} ({', '.join(job.columns)}), {len(remaining)} more to begin")
                for column, seen in run(job, rack).items():
                    table.add(job.row, column, measure(job.row, seen))
            except Exception as error:
                (rack.logs / f"{job.row}-{job.number}-traceback.log").write_text(traceback.format_exc())
                table.problem(job.row, f"run {job.number}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(rack,), daemon=True) for rack in racks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(job, rack):
    rack.wait_ready(20)
    with contextlib.ExitStack() as stack:
        proxies = {column: stack.enter_context(rack.proxy(column)) for column in job.columns}
        loads = {column: stack.enter_context(rack.load(column)) for column in job.columns}
        time.sleep(SETTLE)
        before = transitions(proxies)
        struck = time.monotonic()
        with job.fault(rack, rack.servers[job.number % len(rack.servers)]):
            in_effect = time.monotonic()
            time.sleep(job.seconds)
        undone = time.monotonic()
        time.sleep(max(job.after, struck + job.lasts - undone))
        changes = transitions(proxies) - before
    return {column: Seen(load.seen, struck, in_effect, undone, changes) for column, load in loads.items()}


def transitions(proxies):
    return int(sum(proxy.metric("kubelane_upstream_transitions_total")
                   for proxy in proxies.values() if isinstance(proxy, Kubelane)))


@contextlib.contextmanager
def racks(count, name, folder, logs, proxies, load_options):
    with contextlib.ExitStack() as stack:
        made = []
        for i in range(count):
            made.append(Rack(f"{name}{i + 1}", folder, logs, proxies, load_options))
            stack.callback(made[-1].stop)
        yield made
