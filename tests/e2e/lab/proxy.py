"""What is under test, on a worker: a program that serves 127.0.0.1:6443."""

import http.client
import json

from .network import sh
from .process import Process, wait_until

LISTENER = ("127.0.0.1", 6443)
ADMIN = ("127.0.0.1", 8081)


class Proxy:
    """Runs while the `with` block runs; its log starts anew each time.

    `site` is a control plane or a rack: what has servers, an authority, a folder and logs.
    """
    settings = ""  # how it is configured, in a word or two
    ready_limit = 10

    def __init__(self, site, worker, name):
        self.site, self.worker = site, worker
        self.log = site.logs / f"{name}-{worker.switch.name}-{worker.name}.log"
        self.config = site.folder / f"{worker.name}.conf"

    def __enter__(self):
        self.config.write_text(self.configuration())
        self.process = Process(self.worker, self.command(), self.log)
        try:
            wait_until(self.serves, f"{self.worker.name} serves", self.ready_limit)
        except TimeoutError:
            self.process.stop()
            raise
        return self

    def __exit__(self, *_):
        self.exit_status = self.process.stop(15)

    def serves(self):
        try:
            self.worker.connect(*LISTENER, 1).close()
            return True
        except OSError:
            return False

    def server_lines(self, line):
        return "\n".join(line.format(name=s.name, address=s.address) for s in self.site.servers)


class Kubelane(Proxy):
    """On its defaults, but for what `options` add as lines of YAML."""
    settings = "defaults"

    def __init__(self, site, binary, name, worker=None, options=(), tls_options=""):
        super().__init__(site, worker or site.worker, name)
        self.binary, self.options, self.tls_options = binary, options, tls_options

    def configuration(self):
        return "\n".join(["version: 1", "upstreams:", self.server_lines("  - {{name: {name}, address: {address}}}"),
                          "health:", f"  tls: {{ca_file: {self.site.authority.certificate}{self.tls_options}}}",
                          *self.options, ""])

    def command(self):
        return [self.binary, "run", "--config", self.config]

    def serves(self):
        return self.all_ready()

    def __exit__(self, *_):
        try:
            (self.log.parent / f"{self.log.stem}-status.json").write_bytes(self.get("/status"))
        except OSError:
            pass  # it is gone, which the exit status says
        super().__exit__()

    def get(self, path):
        connection = http.client.HTTPConnection(*ADMIN, timeout=3)
        try:
            connection.sock = self.worker.connect(*ADMIN, 3)
            connection.request("GET", path)
            return connection.getresponse().read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def upstreams(self):
        """What it says of each upstream, by name; empty while it does not answer."""
        try:
            return {u["name"]: u for u in json.loads(self.get("/status"))["upstreams"]}
        except (OSError, ValueError):
            return {}

    def states(self):
        return {name: upstream["state"] for name, upstream in self.upstreams().items()}

    def all_ready(self):
        return list(self.states().values()) == ["ready"] * len(self.site.servers)

    def metric(self, name, label=""):
        """The sum of a metric over its labels, or over those series that have this `label="value"`."""
        total = 0
        for line in self.get("/metrics").decode().splitlines():
            series, _, value = line.rpartition(" ")
            if series.split("{")[0] == name and label in series:
                total += float(value)
        return total


def version(binary):
    return sh(str(binary), "--version").strip()
