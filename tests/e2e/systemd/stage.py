"""What every scenario works with: a container with kubelane's package installed, and load on it."""

import json
import statistics
import subprocess
import time
from dataclasses import dataclass, field

from lab.container import wait_until
from load import CONNECTIONS, PORT, SERVER_PORT, Load

CONFIG = "/etc/kubelane/config.yaml"
BINARY = "/usr/bin/kubelane"
PREVIOUS = "/usr/lib/kubelane/kubelane.previous"
GOOD = f"""version: 1
listen: [127.0.0.1:{PORT}]
upstreams:
  - {{name: cp1, address: "127.0.0.2:{SERVER_PORT}"}}
  - {{name: cp2, address: "127.0.0.3:{SERVER_PORT}"}}
health: {{mode: tcp}}
"""
QUIET = 50  # milliseconds that systemd takes to build kubelane's sandbox and run nothing in it, on an idle machine


@dataclass
class Result:
    """What a scenario saw: one dictionary of the load client for each event."""
    name: str
    events: list = field(default_factory=list)
    problems: list = field(default_factory=list)
    note: str = ""
    empty_service_ms: float = 0  # what starting a service that does nothing took meanwhile

    def total(self, key):
        return sum(e[key] for e in self.events)

    def stalls(self):
        return [e["stall_ms"] for e in self.events] or [0.0]

    def median_stall(self):
        return statistics.median(self.stalls())

    def expect(self, claim, problem):
        if not claim:
            self.problems.append(problem)

    def expect_kept(self, young_may_end=False):
        """Nothing lost, nothing wrong, nobody refused. A kill ends connections that were too young to be kept."""
        for key in ("lost", "wrong", "refused", "fresh_stuck", *(() if young_may_end else ("fresh_ended",))):
            self.expect(not self.total(key), f"{key}: {self.total(key)}")

    def expect_stalls(self, median, longest):
        """Judged on a machine that has the time: where even an empty service starts slowly, others work there too."""
        self.note += f"; an empty service: {self.empty_service_ms:.0f} ms"
        if self.empty_service_ms > QUIET:
            self.note += ", so stalls are not judged"
            return
        self.expect(self.median_stall() <= median, f"median stall {self.median_stall():.0f} ms, not {median}")
        self.expect(max(self.stalls()) <= longest, f"longest stall {max(self.stalls()):.0f} ms, not {longest}")


class Lab:
    def __init__(self, container, packages, traffic, unsteady, logs):
        self.container, self.packages, self.logs = container, packages, logs
        self.traffic, self.unsteady = traffic, unsteady

    def load(self, answers=0):
        return Load(self.container, self.traffic, answers)

    def install(self, version):
        """Installs packages[version] as an operator does; returns what was printed."""
        package = self.packages[version]
        target = self.container.path(f"/root/{package.name}")
        if not target.exists():
            target.write_bytes(package.read_bytes())
        return self.container.run("dpkg", "--install", f"/root/{package.name}")

    def begin_anew(self, config=GOOD):
        """The older package, freshly installed and serving; nothing of the scenario before."""
        inside = self.container
        inside.try_run("dpkg", "--purge", "kubelane")
        inside.run("rm", "-rf", "/usr/lib/kubelane", "/var/lib/kubelane", "/run/kubelane", "/etc/kubelane")
        inside.run("mkdir", "/etc/kubelane")
        inside.write(CONFIG, config)
        self.install(0)
        self.wait_active()

    def wait_active(self, limit=10):
        wait_until(lambda: self.container.property("ActiveState") == "active", "kubelane.service: active", limit)

    def main_binary(self):
        return self.container.output("readlink", f"/proc/{self.container.property('MainPID')}/exe")

    def metric(self, name):
        """The sum of a metric over its labels."""
        done = subprocess.run(self.container.in_network("curl", "-sS", "-m", "3", "http://127.0.0.1:8081/metrics"),
                              stdout=subprocess.PIPE, text=True, check=True)
        lines = (line.rpartition(" ") for line in done.stdout.splitlines() if not line.startswith("#"))
        return sum(float(value) for series, _, value in lines if series.split("{")[0] == name)

    def settle(self, load, connections=CONNECTIONS):
        """Waits until every connection is kept: twenty a second, when they are a second old."""
        wait_until(lambda: self.metric("kubelane_stored_connections") >= connections, "connections: kept", 15)
        load.mark("settled")

    def repeat(self, result, load, count, act, settle=1.5, connections=CONNECTIONS):
        """Does `act` so many times; what happens in `settle` seconds from then on belongs to it."""
        self.settle(load, connections)
        for i in range(count):
            quiet = load.mark(f"event-{i}")
            if i == 0:
                result.note = f"before: {quiet['stall_ms']:.0f} ms"
            act(i)
            time.sleep(settle)
            self.wait_active()
            result.events.append(load.mark("between"))
            time.sleep(0.3)
        result.empty_service_ms = self.time_empty_service()

    def time_empty_service(self):
        """How long systemd takes now, in milliseconds, for a service with kubelane's sandbox and nothing in it."""
        unit = self.container.path("/lib/systemd/system/kubelane.service").read_text()
        sandbox = unit[unit.index("\nUser="):unit.index("[Install]")]
        self.container.write("/run/systemd/system/empty.service",
                             f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n{sandbox}")
        self.container.systemctl("daemon-reload")
        times = []
        for _ in range(7):
            self.container.systemctl("start", "empty")
            begin, end = (int(self.container.property(f"{name}TimestampMonotonic", "empty.service"))
                          for name in ("InactiveExit", "ActiveEnter"))
            times.append((end - begin) / 1000)
            self.container.systemctl("stop", "empty")
        return statistics.median(times)

    def finish(self, result, load):
        _, problems = load.finish()
        result.problems += problems

    def save(self, name, result):
        """What is needed to understand a failure."""
        text = self.container.try_run("journalctl", "--no-pager", "-o", "short-monotonic").stdout
        (self.logs / f"{name}-journal.log").write_text(text)
        (self.logs / f"{name}-events.json").write_text("\n".join(map(json.dumps, result.events)))
