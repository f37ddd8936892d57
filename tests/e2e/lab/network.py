"""Hosts as network namespaces, on switches.

A switch is a bridge in a namespace of its own, so that a pulled cable (the switch's end of a host's wire goes
down) is silent for everybody else, as in a rack. Switches are islands: each may have the same addresses.
"""

import ctypes
import os
import signal
import socket
import subprocess
from contextlib import contextmanager

PREFIX = "kl-lab-"  # of every namespace; what bears it belongs to the laboratory
CLONE_NEWNET = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


def sh(*argv, **options):
    """Runs a command and returns what it prints; what it says on standard error is part of the failure."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextmanager
def inside(namespace):
    """Sockets that this thread makes meanwhile belong to the namespace."""
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{namespace}") as away:
        if libc.setns(away.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
        try:
            yield
        finally:
            libc.setns(home.fileno(), CLONE_NEWNET)


class Switch:
    def __init__(self, name):
        self.name = name
        self.namespace = PREFIX + name
        sh("ip", "netns", "add", self.namespace)
        sh("ip", "-n", self.namespace, "link", "add", "bridge", "type", "bridge")
        sh("ip", "-n", self.namespace, "link", "set", "bridge", "up")


class Host:
    def __init__(self, switch, name, address):
        self.switch = switch
        self.name = name  # and that of its wire, on the switch
        self.address = address
        self.namespace = f"{switch.namespace}-{name}"
        sh("ip", "netns", "add", self.namespace)
        sh("ip", "-n", switch.namespace, "link", "add", name, "type", "veth",
           "peer", "name", "eth0", "netns", self.namespace)
        # One segment per packet, as on a wire: otherwise a lost packet is 64 KiB at once.
        sh("ip", "-n", switch.namespace, "link", "set", name, "master", "bridge", "gso_max_segs", "1", "up")
        sh("ip", "-n", self.namespace, "link", "set", "eth0", "gso_max_segs", "1", "up")
        sh("ip", "-n", self.namespace, "link", "set", "lo", "up")
        sh("ip", "-n", self.namespace, "address", "add", f"{address}/24", "dev", "eth0")
        sh("ip", "-n", self.namespace, "route", "add", "default", "dev", "eth0")  # kubelets look for it

    def command(self, *argv):
        return ["ip", "netns", "exec", self.namespace, *map(str, argv)]

    def connect(self, address, port, timeout):
        with inside(self.namespace):
            return socket.create_connection((address, port), timeout)


class Network:
    """All switches and hosts; removed at the end, and what an aborted run left is removed at the start."""

    def __enter__(self):
        remove_all()
        return self

    def __exit__(self, *_):
        remove_all()


def remove_all():
    """Ends what runs in the laboratory's namespaces, and removes them."""
    for line in sh("ip", "netns", "list").splitlines():
        namespace = line.split()[0]
        if not namespace.startswith(PREFIX):
            continue
        for pid in sh("ip", "netns", "pids", namespace).split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended meanwhile
        sh("ip", "netns", "delete", namespace)
