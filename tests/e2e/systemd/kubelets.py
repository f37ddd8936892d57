"""Real kubelets and a real kubectl, whose kubelane is upgraded, restarted and killed under them."""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import secrets
import ssl
import subprocess
import sys
import tempfile
import time

from container import wait_until

HERE = pathlib.Path(__file__).resolve().parent
ADDRESS = "10.77.0.11"  # of the API server: one of the container's own
KUBELETS = 8
CONFIG = f"""version: 1
listen: [127.0.0.1:6443]
upstreams: [{{name: cp1, address: "{ADDRESS}:6443"}}]
health: {{tls: {{verify: none}}}}
"""


def laboratory():
    """The package beside this one, whose name is taken here."""
    if "laboratory" not in sys.modules:
        spec = importlib.util.spec_from_file_location("laboratory", HERE.parent / "lab/__init__.py",
                                                      submodule_search_locations=[str(HERE.parent / "lab")])
        sys.modules["laboratory"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["laboratory"])
    names = ("certificates", "kubelets", "process")
    return [importlib.import_module(f"laboratory.{name}") for name in names]


class ControlPlane:
    """One etcd and one kube-apiserver in the container's network, outside of its systemd; a host for `Process`."""

    name = "node"

    def __init__(self, container, folder, logs):
        self.container, self.folder, self.logs = container, folder, logs
        self.certificates, self.kubelets, self.process = laboratory()
        script = subprocess.run([HERE.parent / "build-kubernetes"], stdout=subprocess.PIPE, text=True, check=True)
        self.programs = pathlib.Path(script.stdout.splitlines()[-1])
        self.token = secrets.token_hex(16)
        self.running = []

    def command(self, *argv):
        # Each with mounts of its own: a kubelet wants a /tmp for itself.
        return self.container.in_network("unshare", "--mount", "--propagation", "private", *argv)

    def __enter__(self):
        subprocess.run(self.container.in_network("ip", "address", "replace", f"{ADDRESS}/32", "dev", "lo"), check=True)
        authority = self.certificates.Authority(self.folder, "ca")
        certificate, key = authority.issue("api", "/CN=kube-apiserver", self.certificates.serving_names({"cp1": ADDRESS}))
        (self.folder / "tokens.csv").write_text(f'{self.token},admin,1,"system:masters"\n')
        self.certificates.key_pair(self.folder, "accounts")
        self.write_kubeconfig(authority.certificate)
        self.tls = ssl.create_default_context(cafile=authority.certificate)
        self.start("etcd", "--data-dir", self.folder / "etcd", "--log-level", "warn")
        self.start("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--advertise-address={ADDRESS}",
                   f"--bind-address={ADDRESS}", "--secure-port=6443", f"--tls-cert-file={certificate}",
                   f"--tls-private-key-file={key}", f"--client-ca-file={authority.certificate}",
                   f"--token-auth-file={self.folder / 'tokens.csv'}", "--api-audiences=api",
                   "--service-account-issuer=https://kubernetes.default.svc",
                   f"--service-account-key-file={self.folder / 'accounts.pub'}",
                   f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
                   "--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.96.0.0/16",
                   f"--cert-dir={self.folder / 'certificates'}")
        return self

    def __exit__(self, *_):
        for program in reversed(self.running):
            program.stop(3)

    def start(self, program, *argv):
        self.running.append(self.process.Process(self, [self.programs / program, *argv],
                                                 self.logs / f"kubelets-{program}.log"))

    def write_kubeconfig(self, authority):
        (self.folder / "127.0.0.1.kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": {"server": "https://127.0.0.1:6443",
                                                     "certificate-authority": str(authority)}}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
        }))

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
        control_plane = stack.enter_context(ControlPlane(lab.container, folder, lab.logs))
        lab.begin_anew(CONFIG)
        wait_until(lambda: control_plane.kubectl("get", "--raw", "/readyz").returncode == 0, "the API: ready", 60)
        stack.enter_context(control_plane.kubelets.Kubelets(control_plane, control_plane, KUBELETS))
        wait_until(lambda: control_plane.nodes_ready() == KUBELETS, "nodes: ready", 60)
        watch = subprocess.Popen(control_plane.kubectl_command("get", "namespaces", "--watch", "--no-headers"),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        stack.callback(watch.wait)
        stack.callback(watch.kill)
        os.set_blocking(watch.stdout.fileno(), False)
        time.sleep(8)  # what a kubelet and a kubectl dial at first, and close again, is over
        before = control_plane.connections()
        expect_no_reconnect(lab, result, control_plane, before)
        seen = "".join(iter(lambda: watch.stdout.readline() or "", ""))
        result.expect(watch.poll() is None, "the watch has ended")
        result.expect(all(f"during-{what}" in seen for what in ("upgrade", "restart", "kill")),
                      f"the watch missed something: {seen!r}")


def expect_no_reconnect(lab, result, control_plane, before):
    acts = {"upgrade": lambda: lab.install(1), "restart": lambda: lab.container.systemctl("restart", "kubelane"),
            "kill": lambda: lab.container.signal_main("KILL")}
    kept = lab.metric("kubelane_stored_connections")
    result.expect(kept >= KUBELETS + 1, f"only {kept:.0f} connections are kept")
    for what, act in acts.items():
        act()
        lab.wait_active()
        made = control_plane.kubectl("create", "namespace", f"during-{what}")
        result.expect(made.returncode == 0, f"{what}: {made.stderr.strip()}")
        time.sleep(11)  # each kubelet renews its lease
    after = control_plane.connections()
    # The one that is lost is the one that kubelane's own probes were on.
    result.expect(len(before - after) <= 1, f"{len(before - after)} of {len(before)} connections were lost")
    result.expect(len(after) <= len(before), f"{len(after)} connections now, {len(before)} before: a client reconnected")
    result.expect(control_plane.nodes_ready() == KUBELETS, f"only {control_plane.nodes_ready()} nodes are ready")
    result.note = f"{len(before)} connections at the kube-apiserver before, {len(after & before)} of them after"
