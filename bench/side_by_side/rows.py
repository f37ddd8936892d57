"""The rows that move bytes: bulk, rr, rr1, crr, mixed; what a request costs in system calls; the start."""

import re
import signal
import subprocess
import time
import urllib.request

from . import load
from .process import Process
from .proxies import ORDER, PORTS, metric
from .table import Figure

EVERYBODY = ("direct", *ORDER)


class Work:
    """One kind of load, and what of it goes into the table."""

    def __init__(self, name, path, connections, unit, together, close=False):
        self.name, self.path, self.connections, self.unit = name, path, connections, unit
        self.together, self.close = together, close  # client, server and proxy on one core

    def run(self, stage, name, cores, seconds):
        """CPU seconds of the proxy for each unit, and what the client saw."""
        proxy_core, other = cores
        place = proxy_core if self.together else other
        stage.server.pin(place)
        for each, running in stage.running.items():
            running.pin(proxy_core if each == name else other)
        proxy = stage.running.get(name)
        before = proxy.cpu_seconds() if proxy else 0
        seen = load.wrk(PORTS[name], self.path, self.connections, seconds, place, self.close)
        used = proxy.cpu_seconds() - before if proxy else 0
        return used / (seen.gib if self.unit == "GiB" else seen.requests), seen


WORKS = {
    "bulk": Work("bulk", "large", 4, "GiB", together=False),
    "rr": Work("rr", "small", 16, "request", together=True),
    "rr1": Work("rr1", "small", 1, "request", together=True),
    "crr": Work("crr", "small", 16, "request", together=True, close=True),
}


def figures_of(work):
    """By what they are made of."""
    def line(label, **more):
        return Figure(work, label, **more)

    return {
        "bulk": {"cpu": line("CPU s per GiB", digits=2, ratio=0.6),
                 "rate": line("GiB/s", digits=2, better="higher", ratio=1.15)},
        "rr": {"cpu": line("CPU us per request", ratio=0.95), "p50": line("p50 us"),
               "p99": line("p99 us", ratio=1.0), "rate": line("requests/s", digits=0, better="higher")},
        "rr1": {"cpu": line("CPU us per request", ratio=0.9), "p50": line("p50 us"),
                "added": line("p50 us added to direct", ratio=0.9), "p99": line("p99 us"),
                "rate": line("requests/s", digits=0, better="higher")},
        "crr": {"cpu": line("CPU us per connection", ratio=1.0),
                "rate": line("connections/s", digits=0, better="higher", ratio=1.0),
                "p50": line("p50 us"), "p99": line("p99 us")},
    }[work]


def throughput(stage, work, cores, options, tell):
    kind, figures = WORKS[work], figures_of(work)
    for number in range(options.rounds):
        direct = 0
        for name in EVERYBODY:
            tell(f"{work}: round {number + 1} of {options.rounds}, {name}")
            cost, seen = kind.run(stage, name, cores, options.seconds)
            direct = seen.p50 if name == "direct" else direct
            values = {"cpu": cost * (1 if kind.unit == "GiB" else 1e6), "p50": seen.p50, "p99": seen.p99,
                      "added": seen.p50 - direct,
                      "rate": (seen.gib if kind.unit == "GiB" else seen.requests) / seen.seconds}
            for key, figure in figures.items():
                if name != "direct" or key not in ("cpu", "added"):
                    figure.add(name, values[key])
    return list(figures.values())


def traced_calls(stage, name, meanwhile):
    """System calls of all of a proxy's threads, and what `meanwhile` returned."""
    path = f"{stage.directory}/strace"
    pids = [word for pid in stage.running[name].processes() for word in ("-p", str(pid))]
    tracer = subprocess.Popen(["strace", "-f", "-c", "-o", path, *pids], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    result = meanwhile()
    tracer.send_signal(signal.SIGINT)
    tracer.wait(10)
    total = re.search(r"^100\.00\s+[\d.]+\s+\d+\s+(\d+).*total$", open(path).read(), re.M)
    return int(total[1]) if total else 0, result


def system_calls(stage, work, cores, tell):
    """By strace, which slows the proxies down alike; without what they do when nobody asks."""
    kind = WORKS[work]
    figure = Figure(work, f"system calls per {'connection' if kind.close else 'request'}", digits=2,
                    ratio=1.0 if work == "rr" else None)
    for name in ORDER:
        tell(f"{work}: system calls of {name}")
        idle, _ = traced_calls(stage, name, lambda: time.sleep(1))
        calls, (_, seen) = traced_calls(stage, name, lambda: kind.run(stage, name, cores, 1))
        figure.add(name, (calls - idle) / seen.requests)
    return [figure]


PACED_RATE = 1000
PACED_CONNECTIONS = 16
AHEAD_OF_BULK = -10  # niceness of the server: the proxies are measured, not who waits for whom beside them
AHEAD_OF_ALL = -20  # of who times the requests


def mixed(stage, cores, options, tell):
    """Bulk on two connections; requests by schedule beside it. The proxy is alone on a core."""
    proxy_core, other = cores
    p99 = Figure("mixed", "rr p99 us beside bulk", ratio=0.8)
    p50 = Figure("mixed", "rr p50 us beside bulk")
    bulk = Figure("mixed", "bulk GiB/s meanwhile", digits=2, better="higher")
    late = Figure("mixed", "kubelane's loop, and so a probe, late by ms", digits=0, absolute=20)
    stage.server.pin(other)
    stage.server.hurry(AHEAD_OF_BULK)
    stage.stop("kubelane")
    stage.start("kubelane")  # its worst lateness reaches back a minute
    time.sleep(1)
    for number in range(options.rounds):
        for name in EVERYBODY:
            tell(f"mixed: round {number + 1} of {options.rounds}, {name}")
            for each, running in stage.running.items():
                running.pin(proxy_core if each == name else other)
            command = ["wrk", "-t1", "-c2", f"-d{options.seconds}s", "--latency", "--timeout", "30s",
                       f"http://127.0.0.1:{PORTS[name]}/large"]
            finish = load.started_wrk(command, other)
            seen = load.paced(stage.build, PORTS[name], PACED_RATE, PACED_CONNECTIONS, options.seconds, other,
                              AHEAD_OF_ALL)
            carried = finish()
            p99.add(name, seen["p99"])
            p50.add(name, seen["p50"])
            bulk.add(name, carried.gib / carried.seconds)
            if name == "kubelane":
                late.add(name, metric("kubelane_loop_lag_seconds") * 1000)
    stage.server.hurry(0)
    return [p99, p50, bulk, late]


def start(stage, cores, options, tell):
    """From exec to the first connection, and to the first answer through it."""
    connected = Figure("start", "ms from exec to the first connection", absolute=30)
    answered = Figure("start", "ms from exec to the first answer")
    for number in range(options.rounds):
        for name in ORDER:
            tell(f"start: round {number + 1} of {options.rounds}, {name}")
            stage.stop(name)
            proxy = Process(name, stage.command(name), stage.log, cores=cores[0])
            stage.running[name] = proxy
            connected.add(name, proxy.wait_for_port(PORTS[name]) * 1000)
            while not is_answered(PORTS[name]):
                time.sleep(0.001)
            answered.add(name, (time.monotonic() - proxy.started) * 1000)
    return [connected, answered]


def is_answered(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/small", timeout=2) as answer:
            return len(answer.read()) == 1024
    except OSError:
        return False

