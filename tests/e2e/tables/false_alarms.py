"""Nothing is wrong with the data path, but something looks as if: held connections lost although their server serves.

HAProxy as kubespray sets it and nginx lose none here, because they see nothing: they are not measured.
"""

import contextlib
import time

from lab import faults
from lab.peers import TunedHAProxy
from lab.proxy import Kubelane

from .rig import Job, racks, run_jobs
from .table import Row, Table

LOAD = {"held": 36, "every": 0.25, "fresh_every": 0.1}
COLUMNS = {"tuned": "HAProxy, tuned by hand", "kubelane": "kubelane, defaults"}
SECONDS = 31  # from the beginning of the fault on
LOST, FAILED = MEASURES = "held connections lost", "fresh connections failed"
CHANGES = "changes of state"  # not shown: HAProxy says nothing of it
RACKS = 4  # at once

ROWS = {}  # name -> (title, bounds, seconds, excused, fault)


def row(title, seconds, *, failed=0, excused=False, changes=None):
    """`excused`: fresh connections that began while the fault lasted may fail. `changes`: the bound, if there is one."""
    bounds = {LOST: 0, FAILED: failed} | ({} if changes is None else {CHANGES: changes})

    def register(fault):
        ROWS[fault.__name__.replace("_", "-")] = (title, bounds, seconds, excused, fault)
        return fault
    return register


@row("every check answers after 3 s", 26)
def slow_answers(rack, target):
    return faults.slow_answers(rack.servers, 3)


@row("every `/readyz` red for 8 s at once", 8)
def all_red(rack, target):
    return faults.etcd_failed(rack.servers, requests_fail=False)


@row("red one after the other, 0.7 s apart, for 5 s", 0)
@contextlib.contextmanager
def staggered_red(rack, target):
    yield  # nothing is in effect all the time: everything happens on leaving
    red = [faults.etcd_failed([server], requests_fail=False) for server in rack.servers]
    for fault in red:
        fault.__enter__()
        time.sleep(0.7)
    time.sleep(5 - 0.7 * len(red))
    for fault in red:
        fault.__exit__(None, None, None)
        time.sleep(0.7)


@row("checks answer 401 (anonymous-auth=false)", 26)
def unauthorized(rack, target):
    return faults.unauthorized(rack.servers)


@row("the node's own link down for 1 s", 1, failed=3)
def own_link_1s(rack, target):
    return own_links_down(rack)


@row("the node's own link down for 4 s", 4, excused=True)
def own_link_4s(rack, target):
    return own_links_down(rack)


@contextlib.contextmanager
def own_links_down(rack):
    with contextlib.ExitStack() as stack:
        for worker in rack.workers.values():
            stack.enter_context(faults.unplugged(worker))
        yield


@row("one server's link down for 0.5 s", 0.5)
def server_link(rack, target):
    return faults.unplugged(target.host)


@row("one server stops accepting for 20 s, serves on", 20)
def port_closed(rack, target):
    return faults.port_closed(target)


@row("one server says `[-]shutdown failed` for 20 s, serves on", 20)
def shutting_down(rack, target):
    return faults.shutting_down([target])


@row("one server paused for 2 s", 2)
def paused(rack, target):
    return faults.frozen(target)


@row("one check in ten fails (nor may a state change)", 26, changes=0)
def one_in_ten(rack, target):
    return faults.failing_checks(rack.servers, 10)


def proxies(kubelane):
    return {"tuned": lambda rack, worker: TunedHAProxy(rack, worker, "tuned"),
            "kubelane": lambda rack, worker: Kubelane(rack, kubelane, "kubelane", worker)}


def measure(name, seen):
    excused = ROWS[name][3]
    return {LOST: seen.load.ended(seen.struck), FAILED: seen.load.failed_fresh(seen.undone if excused else seen.struck),
            CHANGES: seen.transitions}


def table(names, runs, lab):
    made = Table("Nothing is lost: what looks as if", MEASURES, COLUMNS,
                 [Row(name, ROWS[name][0], ROWS[name][1]) for name in names])
    jobs = [Job(name, list(COLUMNS), ROWS[name][4], ROWS[name][2], number, lasts=SECONDS)
            for number in range(runs) for name in names]
    with racks(min(RACKS, len(jobs)), "alarms", lab.folder, lab.logs, proxies(lab.kubelane), LOAD) as all_racks:
        run_jobs(jobs, all_racks, measure, made, lab.check_time)
    return made
