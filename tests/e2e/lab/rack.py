"""Three small HTTPS servers and, for each proxy, a worker of its own, on one switch: a fault hits all proxies at once.

Its servers can be told what to say, and cost little, so that what is measured is the proxies.
"""

import json
import pathlib
import subprocess
import time

from .certificates import Authority, serving_names
from .load_client import LoadClient
from .network import Host, Switch
from .process import Process, wait_until

SERVERS = {"cp1": "10.77.0.11", "cp2": "10.77.0.12", "cp3": "10.77.0.13"}
PROGRAM = pathlib.Path(__file__).with_name("https_server.py")


class Server:
    def __init__(self, rack, name, address):
        self.rack = rack
        self.name = name
        self.address = address
        self.host = Host(rack.switch, name, address)
        self.authority = rack.authority
        self.certificate, self.key = self.serving_certificate(rack.authority)
        self.start_api()

    def start_api(self, certificate=None, key=None):
        self.api = Process(self.host, [PROGRAM, "--address", self.address,
                                       "--certificate", certificate or self.certificate, "--key", key or self.key],
                           self.rack.logs / f"{self.rack.name}-{self.name}.log", stdin=subprocess.PIPE)

    def tell(self, **orders):
        """What it answers from now on (see https_server.py); without orders it is as it was at the start."""
        self.api.popen.stdin.write(json.dumps(orders).encode() + b"\n")
        self.api.popen.stdin.flush()

    def serving_certificate(self, authority, **options):
        return authority.issue(f"{self.name}-{time.monotonic_ns()}", "/CN=kube-apiserver", serving_names(SERVERS),
                               key_type="ec", **options)  # cheap to sign with, unlike RSA: the load is all fresh

    def accepts(self):
        try:
            self.host.connect(self.address, 6443, 1).close()
            return True
        except OSError:
            return False


class Rack:
    """`proxies` are names -> functions that make a proxy from (rack, worker); `load` says how each is asked."""

    def __init__(self, name, folder, logs, proxies, load):
        self.name, self.logs, self.load_options = name, logs, load
        self.folder = folder / name
        self.folder.mkdir()
        self.switch = Switch(name)
        self.authority = Authority(self.folder, "ca")
        self.workers = {proxy: Host(self.switch, proxy, f"10.77.0.{21 + i}") for i, proxy in enumerate(proxies)}
        self.proxies = proxies
        self.servers = []  # one by one, so that what was made is known if one fails
        for server, address in SERVERS.items():
            self.servers.append(Server(self, server, address))
        self.wait_ready(20)

    def wait_ready(self, limit):
        for server in self.servers:
            wait_until(server.accepts, f"{self.name}: {server.name} accepts", limit)

    def proxy(self, name):
        return self.proxies[name](self, self.workers[name])

    def load(self, name):
        return LoadClient(self.workers[name], self.authority.certificate, self.logs / f"{self.name}-load.log",
                          **self.load_options)

    def stop(self):
        for server in self.servers:
            server.api.kill()
