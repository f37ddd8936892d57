"""A server is lost: what a client sees that asks all the time, on held and on fresh connections."""

import contextlib
import time

from lab import faults
from lab.peers import HAProxy, Nginx, TunedHAProxy
from lab.proxy import Kubelane

from .rig import Job, racks, run_jobs
from .table import Row, Table

LOAD = {"held": 6, "every": 0.02, "fresh_every": 0.05}
COLUMNS = {"nginx": "nginx, as kubespray sets it", "haproxy": "HAProxy, as kubespray sets it",
           "tuned": "HAProxy, tuned by hand", "kubelane": "kubelane, defaults"}
LONG_RUNS = 2  # of faults that the peers need their clients' own limit to get over
LONG = 47
SILENCE, FAILED, SLOWEST = MEASURES = ("longest silence on a held connection", "fresh connections failed",
                                       "slowest fresh connection")

ROWS = {}  # name -> (title, bounds, seconds, is there a long form, fault)


def row(title, seconds, *, silence, failed, slowest=None, long=False):
    bounds = {SILENCE: silence, FAILED: failed} | ({SLOWEST: slowest} if slowest else {})

    def register(fault):
        ROWS[fault.__name__.replace("_", "-")] = (title, bounds, seconds, long, fault)
        return fault
    return register


@row("killed", 4, silence=0.15, failed=0, slowest=0.4)
def killed(rack, target):
    return faults.killed(target)


@row("frozen", 8, silence=3.6, failed=0, slowest=0.9, long=True)
def frozen(rack, target):
    return faults.frozen(target)


@row("vanished", 8, silence=1.7, failed=0, slowest=0.9, long=True)
def vanished(rack, target):
    return faults.unplugged(target.host)


@row("`/readyz` 500, `[-]etcd failed`, requests fail", 12, silence=6.5, failed=12)
def etcd_failed(rack, target):
    return faults.etcd_failed([target])


@row("rolling: each in turn not ready for 3 s, killed, back after 2 s", 0, silence=3.3, failed=25, slowest=0.9)
@contextlib.contextmanager
def rolling(rack, target):
    yield  # nothing is in effect all the time: everything happens on leaving
    for server in rack.servers:
        with faults.etcd_failed([server]):
            time.sleep(3)
            with faults.killed(server):
                time.sleep(2)
        time.sleep(6)


def proxies(kubelane):
    return {"nginx": lambda rack, worker: Nginx(rack, worker, "nginx"),
            "haproxy": lambda rack, worker: HAProxy(rack, worker, "haproxy"),
            "tuned": lambda rack, worker: TunedHAProxy(rack, worker, "tuned"),
            "kubelane": lambda rack, worker: Kubelane(rack, kubelane, "kubelane", worker)}


def jobs(names, runs):
    made = []
    for name in names:
        _, _, seconds, long, fault = ROWS[name]
        for number in range(runs):
            in_long_form = long and number < LONG_RUNS
            columns = list(COLUMNS) if in_long_form or not long else ["tuned", "kubelane"]
            made.append(Job(name, columns, fault, LONG if in_long_form else seconds, number))
    return made


def measure(name, seen):
    return {SILENCE: seen.load.longest_silence(seen.struck), FAILED: seen.load.failed_fresh(seen.in_effect),
            SLOWEST: seen.load.slowest_fresh(seen.in_effect)}


def table(names, runs, lab):
    rows = [Row(name, ROWS[name][0], ROWS[name][1]) for name in names]
    made = Table("A server is lost: what clients see", MEASURES, COLUMNS, rows)
    with racks(1, "clients", lab.folder, lab.logs, proxies(lab.kubelane), LOAD) as all_racks:
        run_jobs(jobs(names, runs), all_racks, measure, made, lab.check_time)
    return made
