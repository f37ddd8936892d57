"""A server is lost: what a client sees that asks every 20 ms on six held connections, and every 50 ms on a fresh one."""

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
SILENCE, FAILED, SLOWEST = MEASURES = "longest silence on a held connection", "fresh connections failed", "slowest fresh"

ROWS = {}  # name -> (Row's arguments, seconds, is there a long form, strike)


def row(title, seconds, *, silence, failed, slowest=None, long=False):
    bounds = {SILENCE: silence, FAILED: failed} | ({SLOWEST: slowest} if slowest else {})

    def register(strike):
        ROWS[strike.__name__.replace("_", "-")] = (title, bounds, seconds, long, strike)
        return strike
    return register


@row("killed", 4, silence=0.15, failed=0, slowest=0.4)
def killed(rack, target, seconds):
    with faults.killed(target):
        time.sleep(seconds)


@row("frozen", 8, silence=3.6, failed=0, slowest=0.9, long=True)
def frozen(rack, target, seconds):
    with faults.frozen(target):
        time.sleep(seconds)


@row("vanished", 8, silence=1.7, failed=0, slowest=0.9, long=True)
def vanished(rack, target, seconds):
    with faults.unplugged(target.host):
        time.sleep(seconds)


@row("`/readyz` 500, `[-]etcd failed`, requests fail", 12, silence=6.5, failed=12)
def etcd_failed(rack, target, seconds):
    with faults.etcd_failed([target]):
        time.sleep(seconds)


@row("rolling: each in turn not ready for 3 s, killed, back after 2 s", 6, silence=3.3, failed=25, slowest=0.9)
def rolling(rack, target, seconds):
    for server in rack.servers:
        with faults.etcd_failed([server]):
            time.sleep(3)
            with faults.killed(server):
                time.sleep(2)
        time.sleep(seconds)


def proxies(kubelane):
    return {"nginx": lambda rack, worker: Nginx(rack, worker, "nginx"),
            "haproxy": lambda rack, worker: HAProxy(rack, worker, "haproxy"),
            "tuned": lambda rack, worker: TunedHAProxy(rack, worker, "tuned"),
            "kubelane": lambda rack, worker: Kubelane(rack, kubelane, "kubelane", worker)}


def jobs(names, runs):
    made = []
    for name in names:
        _, _, seconds, long, strike = ROWS[name]
        for number in range(runs):
            in_long_form = long and number < LONG_RUNS
            columns = list(COLUMNS) if in_long_form or not long else ["tuned", "kubelane"]
            made.append(Job(name, columns, strike_for(strike, LONG if in_long_form else seconds), number))
    return made


def strike_for(strike, seconds):
    return lambda rack, target: strike(rack, target, seconds)


def measure(name, seen):
    return {SILENCE: seen.load.longest_silence(seen.struck), FAILED: seen.load.failed_fresh(seen.struck),
            SLOWEST: seen.load.slowest_fresh(seen.struck)}


def table(names, runs, lab):
    rows = [Row(name, ROWS[name][0], ROWS[name][1]) for name in names]
    made = Table("A server is lost: what clients see", MEASURES, COLUMNS, rows)
    with racks(1, "clients", lab.folder, lab.logs, proxies(lab.kubelane), LOAD) as all_racks:
        run_jobs(jobs(names, runs), all_racks, measure, made, lab.check_time)
    return made
