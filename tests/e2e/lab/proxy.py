"""What is under test, on the worker: a program that serves 127.0.0.1:6443 and reports on 127.0.0.1:8081."""

import http.client
import json

from .network import sh
from .process import Process, wait_until

ADMIN = ("127.0.0.1", 8081)


class Kubelane:
    """Runs while the `with` block runs, on its defaults; its log starts anew each time."""

    def __init__(self, cluster, binary, name):
        self.cluster, self.binary = cluster, binary
        self.log = cluster.logs / f"{name}-kubelane.log"
        self.config = cluster.folder / "kubelane.yaml"
        lines = ["version: 1", "upstreams:"]
        lines += [f"  - {{name: {s.name}, address: {s.address}}}" for s in cluster.servers]
        lines += ["health:", f"  tls: {{ca_file: {cluster.authority.certificate}}}"]
        self.config.write_text("\n".join(lines) + "\n")

    def __enter__(self):
        self.process = Process(self.cluster.worker, [self.binary, "run", "--config", self.config], self.log)
        try:
            wait_until(self.all_ready, "kubelane: every upstream ready", 10)
        except TimeoutError:
            self.process.stop()
            raise
        return self

    def __exit__(self, *_):
        try:
            (self.log.parent / f"{self.log.stem}-status.json").write_bytes(self.get("/status"))
        except OSError:
            pass  # it is gone, which the exit status says
        self.exit_status = self.process.stop(15)

    def get(self, path):
        connection = http.client.HTTPConnection(*ADMIN, timeout=3)
        try:
            connection.sock = self.cluster.worker.connect(*ADMIN, 3)
            connection.request("GET", path)
            return connection.getresponse().read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def states(self):
        """The health of each upstream by name; empty while it does not answer."""
        try:
            return {u["name"]: u["state"] for u in json.loads(self.get("/status"))["upstreams"]}
        except (OSError, ValueError):
            return {}

    def all_ready(self):
        return list(self.states().values()) == ["ready"] * len(self.cluster.servers)

    def metric(self, name):
        """The sum of a metric over its labels."""
        total = 0
        for line in self.get("/metrics").decode().splitlines():
            series, _, value = line.rpartition(" ")
            if series.split("{")[0] == name:
                total += float(value)
        return total


def version(binary):
    return sh(str(binary), "--version").strip()
