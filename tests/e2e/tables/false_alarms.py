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

ROWS = {}  # name -> (title, bounds, excused, strike)


def row(title, *, failed=0, excused=False, changes=None):
    """`excused`: fresh connections that began while the fault lasted may fail. `changes`: the bound, if there is one."""
    bounds = {LOST: 0, FAILED: failed} | ({} if changes is None else {CHANGES: changes})

    def register(strike):
        ROWS[strike.__name__.replace("_", "-")] = (title, bounds, excused, strike)
        return strike
    return register


@row("every check answers after 3 s")
def slow_answers(rack, target):
    with faults.slow_answers(rack.servers, 3):
        time.sleep(26)


@row("every `/readyz` red for 8 s at once")
def all_red(rack, target):
    with faults.etcd_failed(rack.servers, requests_fail=False):
        time.sleep(8)


@row("red one after the other, 0.7 s apart, for 5 s")
def staggered_red(rack, target):
    with contextlib.ExitStack() as stack:
        for server in rack.servers:
            stack.enter_context(faults.etcd_failed([server], requests_fail=False))
            time.sleep(0.7)
        time.sleep(5 - 0.7 * len(rack.servers))
        for server in rack.servers:
            server.tell()
            time.sleep(0.7)


@row("checks answer 401 (anonymous-auth=false)")
def unauthorized(rack, target):
    with faults.unauthorized(rack.servers):
        time.sleep(26)


@row("the node's own link down for 1 s", failed=3)
def own_link_1s(rack, target):
    own_links_down(rack, 1)


@row("the node's own link down for 4 s", excused=True)
def own_link_4s(rack, target):
    own_links_down(rack, 4)


@row("one server's link down for 0.5 s")
def server_link(rack, target):
    with faults.unplugged(target.host):
        time.sleep(0.5)


@row("one server stops accepting for 20 s, serves on")
def port_closed(rack, target):
    with faults.port_closed(target):
        time.sleep(20)


@row("one server says `[-]shutdown failed` for 20 s, serves on")
def shutting_down(rack, target):
    with faults.shutting_down([target]):
        time.sleep(20)


@row("one server paused for 2 s")
def paused(rack, target):
    with faults.frozen(target):
        time.sleep(2)


@row("one check in ten fails (nor may a state change)", changes=0)
def one_in_ten(rack, target):
    with faults.failing_checks(rack.servers, 0.1):
        time.sleep(26)


def own_links_down(rack, seconds):
    with contextlib.ExitStack() as stack:
        for worker in rack.workers.values():
            stack.enter_context(faults.unplugged(worker))
        time.sleep(seconds)


def proxies(kubelane):
    return {"tuned": lambda rack, worker: TunedHAProxy(rack, worker, "tuned"),
            "kubelane": lambda rack, worker: Kubelane(rack, kubelane, "kubelane", worker)}


def measure(name, seen):
    excused = ROWS[name][2]
    failed = seen.load.failed_fresh(seen.struck)
    if excused:
        failed -= seen.load.failed_fresh(seen.struck, seen.undone)
    return {LOST: seen.load.ended(seen.struck), FAILED: failed, CHANGES: seen.transitions}


def table(names, runs, lab):
    made = Table("Nothing is lost: what looks as if", MEASURES, COLUMNS,
                 [Row(name, ROWS[name][0], ROWS[name][1]) for name in names])
    jobs = [Job(name, list(COLUMNS), ROWS[name][3], number, lasts=SECONDS) for number in range(runs) for name in names]
    with racks(min(RACKS, len(jobs)), "alarms", lab.folder, lab.logs, proxies(lab.kubelane), LOAD) as all_racks:
        run_jobs(jobs, all_racks, measure, made, lab.check_time)
    return made
