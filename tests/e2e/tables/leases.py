"""Real kubelets on real kube-apiservers, one of which is lost: the longest gap between two renewals of a node's lease.

They renew every ten seconds; after forty the node is NotReady. Two kubelanes run side by side, each with its own
kubelets, so that a fault is two runs of kubelane. The proxies are started anew for each fault, the kubelets stay.
"""

import contextlib
import random
import signal
import time
import traceback

from lab import faults
from lab.kubelets import Kubelets, LeaseWatcher
from lab.network import Host
from lab.peers import Nginx, TunedHAProxy
from lab.progress import tell
from lab.proxy import Kubelane

from .table import Row, Table

KUBELETS = 8  # of each proxy
NOT_READY = 40
COLUMNS = {"nginx": "nginx, as kubespray sets it", "tuned": "HAProxy, tuned by hand", "kubelane": "kubelane, defaults"}
WORKERS = {"nginx": "nginx", "tuned": "tuned", "kubelane": "kubelane", "kubelane2": "kubelane"}  # name -> column
LONG_RUNS = 2  # in which a fault lasts until nginx' kubelets are through, too
GAP, LOST = MEASURES = "longest gap between two renewals", f"nodes of {KUBELETS} lost"

ROWS = {}  # name -> (title, bounds, seconds, seconds in a long run, fault)


def row(title, gap, seconds, long):
    def register(fault):
        ROWS[fault.__name__.replace("_", "-")] = (title, {GAP: float(gap), LOST: 0}, seconds, long, fault)
        return fault
    return register


@row("host vanishes (link down)", 12, 16, 50)
def vanished(target):
    return faults.unplugged(target.host)


@row("kube-apiserver frozen (SIGSTOP)", 14, 18, 50)
def frozen(target):
    return faults.frozen(target)


@row("its etcd member killed (`[-]etcd failed`)", 17, 22, 90)
def etcd_killed(target):
    return faults.etcd_killed(target)


@row("kube-apiserver killed", 11, 14, 14)
def killed(target):
    return faults.killed(target)


@row("kube-apiserver gets SIGTERM", 11, 14, 14)
def terminated(target):
    return faults.terminated(target)


def table(names, runs, lab):
    made = Table("Real kubelets and kube-apiservers, one is lost: leases", MEASURES, COLUMNS,
                 [Row(name, ROWS[name][0], ROWS[name][1]) for name in names])
    workers = {name: Host(lab.cluster.switch, name, f"10.77.0.{31 + i}") for i, name in enumerate(WORKERS)}
    with contextlib.ExitStack() as stack:
        kubelets = {name: stack.enter_context(Kubelets(lab.cluster, worker, KUBELETS))
                    for name, worker in workers.items()}
        for name in names:
            for number in range(-(-runs // 2)):  # each is two runs of kubelane
                try:
                    lab.check_time()
                    tell(f"leases/{name}: run {number + 1} of {-(-runs // 2)}")
                    run(lab, name, number, workers, kubelets, made)
                except Exception as error:
                    (lab.logs / f"leases-{name}-{number}-traceback.log").write_text(traceback.format_exc())
                    made.problem(name, f"run {number}: {type(error).__name__}: {error}")
    return made


def run(lab, name, number, workers, kubelets, made):
    _, _, seconds, long, fault = ROWS[name]
    lab.cluster.wait_ready(60)
    target = lab.cluster.etcd_follower(number % 3)
    bystander = next(server for server in lab.cluster.servers if server is not target)
    with contextlib.ExitStack() as stack:
        proxies = [stack.enter_context(proxy(lab, worker)) for worker in workers.values()]
        watcher = stack.enter_context(LeaseWatcher(bystander))
        watcher.wait_for_all(kubelets.values(), time.monotonic(), 90)
        time.sleep(random.uniform(0, 5))  # so that faults fall between renewals anywhere
        struck = time.monotonic()
        in_long_form = number < LONG_RUNS
        with fault(target):
            time.sleep(long if in_long_form else seconds)
            judged = list(WORKERS) if in_long_form or long == seconds else [w for w in WORKERS if w != "nginx"]
            gaps = {worker: watcher.longest_gaps(kubelets[worker], struck) for worker in judged}
        for each in proxies:
            each.process.signal(signal.SIGTERM)  # they let connections leave: all at the same time
    for worker, of_nodes in gaps.items():
        made.add(name, WORKERS[worker], {GAP: max(of_nodes), LOST: sum(gap > NOT_READY for gap in of_nodes)})


def proxy(lab, worker):
    if worker.name == "nginx":
        return Nginx(lab.cluster, worker, "leases")
    if worker.name == "tuned":
        return TunedHAProxy(lab.cluster, worker, "leases")
    return Kubelane(lab.cluster, lab.kubelane, "leases", worker)
