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
SHUTDOWN_FAILED = (500, "[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n")
ETCD_FAILED = (500, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n")

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
    tell_all(rack, 26, delay=3)


@row("every `/readyz` red for 8 s at once")
def all_red(rack, target):
    tell_all(rack, 8, ready=ETCD_FAILED)


@row("red one after the other, 0.7 s apart, for 5 s")
def staggered_red(rack, target):
    begin = time.monotonic()
    for i, server in enumerate(rack.servers):
        sleep_until(begin + 0.7 * i)
        server.tell(ready=ETCD_FAILED)
    for i, server in enumerate(rack.servers):
        sleep_until(begin + 0.7 * i + 5)
        server.tell()


@row("checks answer 401 (anonymous-auth=false)")
def unauthorized(rack, target):
    tell_all(rack, 26, ready=(401, "Unauthorized"))


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
    target.tell(ready=SHUTDOWN_FAILED)
    time.sleep(20)


@row("one server paused for 2 s")
def paused(rack, target):
    with faults.frozen(target):
        time.sleep(2)


@row("one check in ten fails (nor may a state change)", changes=0)
def one_in_ten(rack, target):
    tell_all(rack, 26, failing=0.1)


def tell_all(rack, seconds, **orders):
    for server in rack.servers:
        server.tell(**orders)
    time.sleep(seconds)
    for server in rack.servers:
        server.tell()


def own_links_down(rack, seconds):
    with contextlib.ExitStack() as stack:
        for worker in rack.workers.values():
            stack.enter_context(faults.unplugged(worker))
        time.sleep(seconds)


def sleep_until(when):
    time.sleep(max(0, when - time.monotonic()))


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
