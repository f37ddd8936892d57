"""What a node's programs do with the API, all the time, through whatever listens on 127.0.0.1:6443.

Reads, writes and long answers are one kubectl each, so each is a fresh connection. Watches and held connections
stay, and come back when they are ended, as client-go's do; what matters there is for how long nothing came.
What the watches are to see is made beside the proxy, on a server without a fault.
"""

import collections
import hashlib
import http.client
import json
import subprocess
import threading
import time
from dataclasses import dataclass, field

LISTENER = ("127.0.0.1", 6443)
CLIENT_LIMIT = 45  # seconds after which client-go gives a silent connection up
LONG = ["get", "--raw", "/api/v1/namespaces/long/configmaps"]  # raw, as kubectl logs passes bytes on
LONG_MAPS, LONG_BYTES = 16, 512 * 1024  # 8 MiB in one answer
KEPT = 200  # objects live for a minute, so that a watch that comes back still sees them


@dataclass
class Command:
    kind: str  # read, write, long
    began: float
    ended: float
    error: str  # empty if it succeeded


@dataclass
class Held:
    """One connection that asks all the time."""
    silence: float = 0
    silent_since: float = 0
    ends: list = field(default_factory=list)  # (when, how) a connection on which a request was answered ended


class Traffic:
    """Runs all of it while the `with` block runs; then its lists say what happened."""

    def __init__(self, cluster, bystander, watches=6, held=6):
        self.cluster = cluster
        self.bystander = bystander  # a server that has no fault
        self.commands = []
        self.created = {}  # name of an object -> when its creation was confirmed
        self.seen = [{} for _ in range(watches)]  # name -> when this watch saw it
        self.held = [Held() for _ in range(held)]
        self.running = {}  # watch -> its kubectl
        self.stopped = threading.Event()  # nothing new
        self.halted = threading.Event()  # watches and held connections end, too
        self.active = [daemon(loop) for loop in (self._read, self._write, self._long, self._make)]
        self.watchers = [daemon(self._watch, i) for i in range(watches)]
        self.holders = [daemon(self._hold, h) for h in self.held]

    def __enter__(self):
        for thread in self.active + self.watchers + self.holders:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.active:
            thread.join()
        time.sleep(1)  # the watches hear of the last object
        self.ended = time.monotonic()
        self.halted.set()
        for i, thread in enumerate(self.watchers):
            while thread.is_alive():
                if i in self.running:
                    self.running[i].kill()
                thread.join(0.1)
        for thread in self.holders:
            thread.join()
        for namespace in ("traffic", "watched"):
            self.cluster.kubectl("delete", "configmaps", "--all", "-n", namespace, address=self.bystander.address)

    def _kubectl(self, kind, *arguments, accept=lambda output: ""):
        began = time.monotonic()
        try:
            done = self.cluster.kubectl(*arguments, limit=CLIENT_LIMIT)
            error = accept(done.stdout)
            if done.returncode:
                error = done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"
        except subprocess.TimeoutExpired:
            error = f"no answer in {CLIENT_LIMIT} s"
        self.commands.append(Command(kind, began, time.monotonic(), error))
        return not error

    def _read(self):
        while not self.stopped.wait(0.2):
            self._kubectl("read", "get", "configmaps", "-n", "traffic", "-o", "name")

    def _write(self):
        while not self.stopped.wait(0.2):
            name = f"w-{time.monotonic_ns()}"
            if self._kubectl("write", "create", "configmap", name, "-n", "traffic"):
                self._kubectl("write", "delete", "configmap", name, "-n", "traffic", "--wait=false")

    def _make(self):
        path = "/api/v1/namespaces/watched/configmaps"
        names = collections.deque()
        while not self.stopped.wait(0.25):
            name = f"m-{time.monotonic_ns()}"
            try:
                if self.bystander.request("POST", path, {"metadata": {"name": name}}) == 201:
                    self.created[name] = time.monotonic()
                    names.append(name)
                if len(names) > KEPT:
                    self.bystander.request("DELETE", f"{path}/{names.popleft()}")
            except OSError:
                continue  # an election of etcd: the next one will do

    def _long(self):
        def accept(output):
            return "" if digest(output) == self.cluster.long_digest else f"{len(output)} wrong bytes"

        while not self.stopped.wait(0.5):
            self._kubectl("long", *LONG, accept=accept)

    def _watch(self, i):
        while not self.halted.is_set():
            popen = subprocess.Popen(
                self.cluster.kubectl_command("get", "configmaps", "-n", "watched", "--watch", "-o", "name"),
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
            self.running[i] = popen
            for line in popen.stdout:
                self.seen[i].setdefault(line.decode().strip().removeprefix("configmap/"), time.monotonic())
            popen.stdout.close()
            popen.wait()
            self.halted.wait(0.1)

    def _hold(self, held):
        held.silent_since = time.monotonic()
        connection = None
        while not self.halted.wait(0.1):
            fresh = connection is None
            try:
                connection = connection or self._connect()
                connection.request("GET", "/version")
                connection.getresponse().read()
            except (OSError, http.client.HTTPException) as error:
                if connection:
                    connection.close()
                connection = None
                if not fresh:
                    held.ends.append((time.monotonic(), type(error).__name__))
                continue
            now = time.monotonic()
            held.silence = max(held.silence, now - held.silent_since)
            held.silent_since = now
        held.silence = max(held.silence, time.monotonic() - held.silent_since)
        if connection:
            connection.close()

    def _connect(self):
        connection = http.client.HTTPSConnection(*LISTENER)
        connection.auto_open = 0  # an end must not go unnoticed
        raw = self.cluster.worker.connect(*LISTENER, CLIENT_LIMIT)
        try:
            connection.sock = self.cluster.tls.wrap_socket(raw, server_hostname=LISTENER[0])
        except OSError:
            raw.close()
            raise
        return connection

    # What happened.

    def longest_silence(self):
        return max((h.silence for h in self.held), default=0)

    def held_ends(self):
        return sorted(end for h in self.held for end in h.ends)

    def watch_lag(self):
        """The longest time from an object's creation until a watch saw it, or until the end if it never did."""
        return max((seen.get(name, self.ended) - created
                    for name, created in self.created.items() for seen in self.seen), default=0)


def daemon(loop, *arguments):
    """A thread that does not keep an aborted run from ending."""
    return threading.Thread(target=loop, args=arguments, daemon=True)


def fill(cluster):
    """Makes the namespaces and the objects of the long answer, and remembers what it must be: as a server gives it."""
    direct = cluster.servers[0].address
    for namespace in ("traffic", "watched", "long"):
        check(cluster.kubectl("create", "namespace", namespace, address=direct))
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"long-{i}"},
             "data": {"log": f"{i:08} a line of a log, as long as lines of logs are\n" * (LONG_BYTES // 56)}}
            for i in range(LONG_MAPS)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": maps}).encode()
    check(cluster.kubectl("create", "-n", "long", "-f", "-", address=direct, input=text))
    cluster.long_digest = digest(check(cluster.kubectl(*LONG, address=direct)))


def check(done):
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, done.args))}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def digest(output):
    """Of the items: the list itself carries the cluster's revision, which moves."""
    return hashlib.sha256(output[output.find(b'"items"'):]).hexdigest()
