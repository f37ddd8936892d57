"""What connections cost that do nothing: memory of the proxy, of the kernel, of the manager; CPU."""

import os
import pathlib
import select
import socket
import subprocess
import sys
import time

from .process import MemoryGroup, Process
from .proxies import ORDER, PORTS, SERVER_PORT, metric
from .rows import WORKS
from .table import Figure

HERE = pathlib.Path(__file__).resolve().parent
IDLE_CONNECTIONS = 4000
FIRST_KEPT = 20
KEPT_CONNECTIONS = 480  # with those, nearly what fits
HOLDER_PORT = 18106
REQUEST = b"GET /small HTTP/1.1\r\nHost: bench\r\n\r\n"


def hold(port, count):
    """Connections that have had one answer, and are silent from then on."""
    held = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port), timeout=20)
        one.sendall(REQUEST)
        text = b""
        while b"\r\n\r\n" not in text or len(text) < text.index(b"\r\n\r\n") + 4 + 1024:
            text += one.recv(4096)
        held.append(one)
    return held


def slab_kib():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Slab:"):
            return float(line.split()[1])
    raise KeyError("Slab")


class Meter:
    """Kernel memory that one process makes the kernel use: its group's, or the growth of all slabs."""

    def __init__(self, name):
        self.group = MemoryGroup.create(name)

    def kib(self):
        return self.group.kernel_kib() if self.group else slab_kib()

    def what(self):
        return "of its memory cgroup" if self.group else "growth of all slabs (no memory cgroup here)"


def sockets_own(stage):
    """KiB for the two sockets that any proxy needs for a connection, and how it was measured."""
    meter = Meter("holder")
    command = [sys.executable, str(HERE / "holder.py"), str(HOLDER_PORT), str(SERVER_PORT)]
    holder = Process("holder", command, stage.log, group=meter.group)
    try:
        holder.wait_for_port(HOLDER_PORT)
        time.sleep(0.5)
        before = meter.kib()
        held = hold(HOLDER_PORT, IDLE_CONNECTIONS)
        time.sleep(1)
        each = (meter.kib() - before) / IDLE_CONNECTIONS
        close_all(held)
        return each, meter.what()
    finally:
        holder.stop()


def close_all(held):
    for one in held:
        one.close()


def idle(stage, cores, options, tell):
    user = Figure("idle", "KiB of user memory per connection", digits=2, absolute=2.5)
    kernel = Figure("idle", "KiB of kernel memory beside the sockets", digits=2, absolute=6)
    base = Figure("idle", "MiB of PSS, nobody connected yet", digits=2, absolute=6)
    after = Figure("idle", "MiB of PSS more, all gone again", digits=2, absolute=2)
    cpu = Figure("idle", "% CPU, 4,000 idle connections", digits=3, absolute=0.3)
    for name in list(stage.running):
        stage.stop(name)
    stage.server.pin(cores[1])
    for number in range(options.idle_rounds):
        tell(f"idle: round {number + 1} of {options.idle_rounds}, the sockets' own")
        own, how = sockets_own(stage)
        for name in ORDER:
            tell(f"idle: round {number + 1} of {options.idle_rounds}, {name}")
            meter = Meter(name)
            proxy = stage.start(name, group=meter.group, cores=cores[0])
            time.sleep(2)
            before, kernel_before = proxy.pss_kib(), meter.kib()
            held = hold(PORTS[name], IDLE_CONNECTIONS)
            time.sleep(3)
            user.add(name, (proxy.pss_kib() - before) / IDLE_CONNECTIONS)
            kernel.add(name, (meter.kib() - kernel_before) / IDLE_CONNECTIONS - own)
            used, began = proxy.cpu_seconds(), time.monotonic()
            time.sleep(options.idle_seconds)
            cpu.add(name, (proxy.cpu_seconds() - used) / (time.monotonic() - began) * 100)
            close_all(held)
            time.sleep(3)
            base.add(name, before / 1024)
            after.add(name, (proxy.pss_kib() - before) / 1024)
            stage.stop(name)
    stage.notes.append(f"idle: kernel memory {how}; the two sockets' own, measured without a proxy: {own:.2f} KiB")
    for name in ORDER:
        stage.start(name)
    return [user, kernel, base, after, cpu]


class Store:
    """The stand-in, as a process that is measured too."""

    def __init__(self, stage):
        self.path = f"{stage.directory}/notify"
        self.meter = Meter("store")
        self.process = subprocess.Popen([sys.executable, str(HERE / "store.py"), self.path], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=self.meter.group.join if self.meter.group else None)
        while not os.path.exists(self.path):
            time.sleep(0.01)

    def environment(self):
        return {**os.environ, "NOTIFY_SOCKET": self.path, "FDSTORE": "2048"}

    def counts(self):
        """Datagrams about descriptors, and descriptors held."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], 10)[0]:
            raise RuntimeError("the store does not answer")
        return [int(word) for word in self.process.stdout.readline().split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        if self.meter.group:
            self.meter.group.remove()


def hold_until_kept(count, beside=0):
    """Holds so many connections, and waits until all are in the store."""
    held = hold(PORTS["kubelane"], count)
    end = time.monotonic() + 60
    while metric("kubelane_stored_connections") < count + beside:
        if time.monotonic() > end:
            raise RuntimeError("they are not stored")
        time.sleep(0.5)
    return held


def kept(stage, cores, options, tell):
    """kubelane with a descriptor store: what kept connections cost, and that short ones cost nothing."""
    tell("kept: the sockets' own")
    own, _ = sockets_own(stage)
    stage.stop("kubelane")
    store, meter = Store(stage), Meter("kubelane")
    kubelane = stage.start("kubelane", group=meter.group, environment=store.environment())
    time.sleep(2)
    lines = [Figure("kept", "KiB of user memory per kept connection", digits=2, absolute=2),
             *(Figure("kept", label, digits=digits) for label, digits in (
                 ("KiB of kernel memory beside the sockets", 2), ("KiB of kernel memory in the manager", 2),
                 ("descriptors in the manager per connection", 2),
                 ("CPU us per short connection, with a store", 1)))]
    lines.append(Figure("kept", "store messages per short connection", digits=5, absolute=0))
    try:
        tell(f"kept: {KEPT_CONNECTIONS} connections are being stored")
        # The first ones bring the code of the data path into memory, which all share.
        held = hold_until_kept(FIRST_KEPT)
        before = kubelane.pss_kib(), meter.kib(), store.meter.kib(), store.counts()[1]
        held += hold_until_kept(KEPT_CONNECTIONS, beside=FIRST_KEPT)
        after = kubelane.pss_kib(), meter.kib(), store.meter.kib(), store.counts()[1]
        each = [(now - then) / KEPT_CONNECTIONS for now, then in zip(after, before)]
        each[1] -= own
        close_all(held)
        time.sleep(1)
        tell("kept: short connections")
        messages = store.counts()[0]
        cost, seen = WORKS["crr"].run(stage, "kubelane", cores, options.seconds)
        each += [cost * 1e6, (store.counts()[0] - messages) / seen.requests]
        for figure, value in zip(lines, each):
            figure.add("kubelane", value)
    finally:
        stage.stop("kubelane")
        store.close()
        stage.start("kubelane")
    return lines
