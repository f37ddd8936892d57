"""Hollow kubelets (kubemark: the kubelet's own code, without containers) and the leases they renew."""

import datetime
import json
import threading
import time

from .process import Process, wait_until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Kubelets:
    """Runs `count` of them on a worker, through its proxy, while the `with` block runs."""

    def __init__(self, cluster, worker, count):
        self.cluster, self.worker = cluster, worker
        self.names = [f"{worker.name}-{i}" for i in range(count)]

    def __enter__(self):
        self.processes = [Process(self.worker, self._command(i, name), self.cluster.logs / f"kubelet-{name}.log")
                          for i, name in enumerate(self.names)]
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()

    def _command(self, i, name):
        # They all make the same socket in /tmp; `ip netns exec` gave each a mount namespace for a /tmp of its own.
        return ["sh", "-c", 'mount -t tmpfs kubelet /tmp && exec "$@"', "sh",
                self.cluster.programs / "kubemark", "--morph=kubelet", f"--name={name}",
                f"--kubeconfig={self.cluster.folder / '127.0.0.1.kubeconfig'}",
                f"--kubelet-port={10250 + 2 * i}", f"--kubelet-read-only-port={10251 + 2 * i}"]


class LeaseWatcher:
    """When each lease was renewed, as a server tells that has no fault. Asks only while the `with` block runs."""

    def __init__(self, server):
        self.server = server
        self.renewals = {}  # node -> when its renewals came to be known

    def __enter__(self):
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join(1)  # it may wait for an event

    def wait_for_all(self, kubelets, since, limit):
        """Until each of the kubelets renewed its lease after `since`."""
        nodes = [node for some in kubelets for node in some.names]
        wait_until(lambda: all(self.renewals.get(node, [0])[-1] > since for node in nodes), "leases renewed", limit)

    def longest_gaps(self, kubelets, since):
        """Each node's longest time between two renewals, of those that lasted into the time from `since` on."""
        now = time.monotonic()
        return [max(end - begin for begin, end in zip(self.renewals[node], [*self.renewals[node][1:], now])
                    if end > since) for node in kubelets.names]

    def _watch(self):
        last = {}  # node -> the time in its lease, as a watch that begins tells the old ones again
        while not self.stopped.is_set():
            try:
                with self.server.open(f"{LEASES}?watch=true", limit=15) as answer:
                    while not self.stopped.is_set():
                        event = json.loads(answer.readline())
                        node, renewed = event["object"]["metadata"]["name"], event["object"]["spec"]["renewTime"]
                        if last.get(node) != renewed:
                            last[node] = renewed
                            self.renewals.setdefault(node, []).append(seen_at(event["type"], renewed))
            except (OSError, ValueError, KeyError):
                self.stopped.wait(0.2)


def seen_at(kind, renewed):
    """Now; but what a watch begins with (ADDED) is of the past, so that the lease's own time is taken."""
    age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(renewed)
    return time.monotonic() - (age.total_seconds() if kind == "ADDED" else 0)
