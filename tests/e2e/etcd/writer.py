"""A client that writes all the time and counts what it has to wait for."""

import base64
import http.client
import json
import socket
import ssl
import threading
import time

from lab.network import inside

PAUSE, PATIENCE = 0.005, 0.4  # seconds between writes; for one answer


class Writer:
    """Writes one key after the other; goes to the next member when one refuses, as etcd's own client does."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.written = self.refused = self.turn = 0
        self.longest, self.last = 0.0, None
        self.tls = ssl.create_default_context(cafile=cluster.authority.certificate)
        self.tls.load_cert_chain(cluster.certificate, cluster.key)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.connection = None

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def run(self):
        while not self.stop.is_set():
            try:
                self.put(self.written)
            except (OSError, http.client.HTTPException):
                self.refused += 1
                self.connection = None
                self.turn += 1
                continue
            now = time.monotonic()
            if self.last is not None:
                self.longest = max(self.longest, now - self.last)
            self.written, self.last = self.written + 1, now
            self.stop.wait(PAUSE)

    def put(self, number):
        if self.connection is None:
            self.connect()
        body = {"key": encode(f"writer/{number}"), "value": encode("x")}
        self.connection.request("POST", "/v3/kv/put", json.dumps(body))
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise OSError(f"{answer.status}: {text}")

    def connect(self):
        members = list(self.cluster.members)
        address = members[self.turn % len(members)].address
        with inside(self.cluster.operator.namespace):
            raw = socket.create_connection((address, 2379), PATIENCE)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = http.client.HTTPSConnection(address, 2379)
        self.connection.sock = self.tls.wrap_socket(raw, server_hostname=address)

    def lost(self):
        """Keys that were acknowledged and are not there."""
        done = self.cluster.etcdctl("get", "writer/", "--prefix", "--keys-only")
        there = set(done.stdout.split())
        return [number for number in range(self.written) if f"writer/{number}" not in there]


def encode(text):
    return base64.b64encode(text.encode()).decode()
