"""Real kubelets and a real kubectl, whose kubelane is upgraded, restarted and killed under them."""

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile
import time

from lab import certificates, control_plane
from lab.container import wait_until
from lab.kubelets import Kubelets
from lab.process import Process

HERE = pathlib.Path(__file__).resolve().parent
ADDRESS = "10.77.0.11"  # of the API server: one of the container's own
KUBELETS = 8
CONFIG = f"""version: 1
listen: [127.0.0.1:6443]
upstreams: [{{name: cp1, address: "{ADDRESS}:6443"}}]
health: {{tls: {{verify: none}}}}
"""


class ControlPlane:
    """One etcd and one kube-apiserver in the container's network, outside of its systemd; a host for `Process`."""

    name = "node"

    def __init__(self, container, folder, logs):
        self.container, self.folder, self.logs = container, folder, logs
        script = subprocess.run([HERE.parent / "build-kubernetes"], stdout=subprocess.PIPE, text=True, check=True)
        self.programs = pathlib.Path(script.stdout.splitlines()[-1])
        self.running = []

    def command(self, *argv):
        # Each with mounts of its own: a kubelet wants a /tmp for itself.
        return self.container.in_network("unshare", "--mount", "--propagation", "private", *argv)

    def __enter__(self):
        subprocess.run(self.container.in_network("ip", "address", "replace", f"{ADDRESS}/32", "dev", "lo"), check=True)
        authority = certificates.Authority(self.folder, "ca")
        certificate, key = authority.issue("api", "/CN=kube-apiserver", certificates.serving_names({"cp1": ADDRESS}))
        token = control_plane.admin_token(self.folder)
        certificates.key_pair(self.folder, "accounts")
        (self.folder / "127.0.0.1.kubeconfig").write_text(control_plane.kubeconfig("127.0.0.1", authority, token))
        self.start("etcd", "--data-dir", self.folder / "etcd", "--log-level", "warn")
        self.start("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ADDRESS}",
                   f"--bind-address={ADDRESS}", *control_plane.api_options(self.folder, authority, certificate, key),
                   f"--cert-dir={self.folder / 'certificates'}")
        return self

    def __exit__(self, *_):
        for program in reversed(self.running):
            program.stop(3)

    def start(self, program, *argv):
        self.running.append(Process(self, [self.programs / program, *argv], self.logs / f"kubelets-{program}.log"))

    def kubectl_command(self, *argv):
        return self.command(self.programs / "kubectl", "--kubeconfig", self.folder / "127.0.0.1.kubeconfig",
                            "--cache-dir", self.folder / "cache", *argv)

    def kubectl(self, *argv):
        return subprocess.run(self.kubectl_command(*argv), capture_output=True, text=True, timeout=30)

    def nodes_ready(self):
        listed = self.kubectl("get", "nodes", "--no-headers").stdout
        return len(re.findall(r"\sReady\s", listed))

    def connections(self):
        """The far ports of the connections that the kube-apiserver holds: kubelane's, probes and clients'."""
        listed = subprocess.run(self.container.in_network("ss", "-Htn", "state", "established", "src", ADDRESS, "sport",
                                                          "=", ":6443"), stdout=subprocess.PIPE, text=True, check=True)
        return {line.split()[-1] for line in listed.stdout.splitlines()}


def kubelets(lab, result):
    """Eight kubelets and a watch keep every connection over an upgrade, a restart and a kill -9."""
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kl-systemd-", dir="/dev/shm")))
        plane = stack.enter_context(ControlPlane(lab.container, folder, lab.logs))
        lab.begin_anew(CONFIG)
        wait_until(lambda: plane.kubectl("get", "--raw", "/readyz").returncode == 0, "the API: ready", 60)
        stack.enter_context(Kubelets(plane, plane, KUBELETS))
        wait_until(lambda: plane.nodes_ready() == KUBELETS, "nodes: ready", 60)
        watch = subprocess.Popen(plane.kubectl_command("get", "namespaces", "--watch", "--no-headers"),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        stack.callback(watch.wait)
        stack.callback(watch.kill)
        os.set_blocking(watch.stdout.fileno(), False)
        time.sleep(8)  # what a kubelet and a kubectl dial at first, and close again, is over
        before = plane.connections()
        expect_no_reconnect(lab, result, plane, before)
        seen = "".join(iter(lambda: watch.stdout.readline() or "", ""))
        result.expect(watch.poll() is None, "the watch has ended")
        result.expect(all(f"during-{what}" in seen for what in ("upgrade", "restart", "kill")),
                      f"the watch missed something: {seen!r}")


def expect_no_reconnect(lab, result, plane, before):
    acts = {"upgrade": lambda: lab.install(1), "restart": lambda: lab.container.systemctl("restart", "kubelane"),
            "kill": lambda: lab.container.signal_main("KILL")}
    kept = lab.metric("kubelane_stored_connections")
    result.expect(kept >= KUBELETS + 1, f"only {kept:.0f} connections are kept")
    for what, act in acts.items():
        act()
        lab.wait_active()
        made = plane.kubectl("create", "namespace", f"during-{what}")
        result.expect(made.returncode == 0, f"{what}: {made.stderr.strip()}")
        time.sleep(11)  # each kubelet renews its lease
    after = plane.connections()
    # The one that is lost is the one that kubelane's own probes were on.
    result.expect(len(before - after) <= 1, f"{len(before - after)} of {len(before)} connections were lost")
    result.expect(len(after) <= len(before), f"{len(after)} connections now, {len(before)} before: a client reconnected")
    result.expect(plane.nodes_ready() == KUBELETS, f"only {plane.nodes_ready()} nodes are ready")
    result.note = f"{len(before)} connections at the kube-apiserver before, {len(after & before)} of them after"
