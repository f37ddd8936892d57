"""Three stand-ins for API servers and a kubelane before them, on loopback addresses of their own."""

import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

from lab.certificates import Authority, DAY, serving_names
from lab.process import Process, wait_until

SERVER = pathlib.Path(__file__).resolve().parent.parent / "lab/https_server.py"
CONNECTIONS = 6  # that clients hold


class Here:
    """This host, for lab.process."""

    @staticmethod
    def command(*argv):
        return [str(each) for each in argv]


CANDIDATES = iter(range(21000 + os.getpid() % 5000, 32000))  # below those the kernel gives to clients


def free_port():
    """One that nobody listens on, each time another."""
    for port in CANDIDATES:
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


class Stand:
    def __init__(self, kubelane, folder):
        self.kubelane_binary, self.folder = kubelane, folder
        net = f"127.{os.getpid() % 200 + 20}.{os.getpid() // 200 % 250}"
        self.addresses = {f"cp{i}": f"{net}.{10 + i}" for i in (1, 2, 3)}
        self.metrics_address, self.stranger = f"{net}.2", f"{net}.3"
        self.port, self.admin, self.metrics_port = free_port(), free_port(), 9180
        self.servers, self.clients, self.kubelane = {}, [], None

    def __enter__(self):
        try:
            self.authority = Authority(self.folder, "ca")
            self.pairs = {name: self.authority.issue(name, f"/CN={name}", serving_names({name: address}),
                                                     valid=(10 if name == "cp3" else 30) * DAY)
                          for name, address in self.addresses.items()}
            for name in self.addresses:
                self.start(name)
            self.run_kubelane()
            self.stopping = threading.Event()
            self.clients = [threading.Thread(target=self.be_a_client, daemon=True) for _ in range(CONNECTIONS)]
            for client in self.clients:
                client.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if hasattr(self, "stopping"):
            self.stopping.set()
        for each in [*self.servers.values(), *([self.kubelane] if self.kubelane else [])]:
            each.signal(signal.SIGCONT)
            each.kill()

    @property
    def target(self):
        return f"{self.metrics_address}:{self.metrics_port}"

    def start(self, name):
        certificate, key = self.pairs[name]
        self.servers[name] = Process(
            Here, [sys.executable, SERVER, "--address", self.addresses[name], "--certificate", certificate,
                   "--key", key], self.folder / f"{name}.log", stdin=subprocess.PIPE)

    def order(self, name, orders):
        stdin = self.servers[name].popen.stdin
        stdin.write((json.dumps(orders) + "\n").encode())
        stdin.flush()

    def freeze(self, name):
        self.servers[name].signal(signal.SIGSTOP)

    def thaw(self, name):
        self.servers[name].signal(signal.SIGCONT)

    def kill(self, name):
        self.servers[name].kill()

    def run_kubelane(self):
        config = self.folder / "config.yaml"
        config.write_text(json.dumps({
            "version": 1, "listen": [f"127.0.0.1:{self.port}"], "admin": {"listen": f"127.0.0.1:{self.admin}"},
            "metrics": {"listen": [f"{self.metrics_address}:{self.metrics_port}"],
                        "allow": ["127.0.0.1/32"]},  # where clients of this host come from
            "upstreams": [{"name": name, "address": address} for name, address in self.addresses.items()],
            "health": {"tls": {"ca_file": str(self.authority.certificate)}},
        }))
        self.kubelane = Process(Here, [self.kubelane_binary, "run", "--config", config], self.folder / "kubelane.log")
        wait_until(self.all_ready, "three API servers are ready", 30)

    def all_ready(self):
        try:
            return self.scrape().count('kubelane_upstream_state{state="ready",upstream="cp') == 3 and all(
                f'kubelane_upstream_state{{state="ready",upstream="{name}"}} 1' in self.scrape()
                for name in self.addresses)
        except OSError:
            return False

    def scrape(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=10)
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()

    def scrape_from(self, source):
        """What the metrics listener answers to that address; None if it closes."""
        connection = http.client.HTTPConnection(self.metrics_address, self.metrics_port, timeout=10,
                                                source_address=(source, 0))
        try:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
        except (ConnectionError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def be_a_client(self):
        """Holds a connection and says something on it now and then; connects again when it ends."""
        context = ssl._create_unverified_context()
        while not self.stopping.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5) as raw, \
                        context.wrap_socket(raw) as connection:
                    while not self.stopping.is_set():
                        connection.sendall(b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n")
                        if not connection.recv(4096):
                            break
                        time.sleep(0.3)
            except OSError:
                time.sleep(0.3)
