"""What every scenario works with: a control plane, guests, an inventory, a stub of kubespray, and Ansible."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import pathlib
from dataclasses import dataclass, field

from guests import MANIFESTS, PROXIES, Guest, Keys
from lab.control_plane import ADDRESSES, kubeconfig
from lab.load_client import LoadClient
from lab.network import Host
from lab.process import wait_until

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
DEPLOY = SOURCE / "deploy/ansible"
WORKERS = {"w1": "10.77.0.31", "w2": "10.77.0.32", "w3": "10.77.0.33", "w4": "10.77.0.34"}
LONGEST_GAP = 1.0  # seconds without an answer while a port changes hands
REFERENCE = "without a proxy"
REFERENCE_GAP = 0.4  # seconds; where a client of an API server itself waits longer, others work on this machine too
LOAD = {"held": 4, "every": 0.1, "fresh_every": 0.05, "path": "/version"}
PLAY_LIMIT = 600   # seconds
ANSIBLE_CFG = """[defaults]
inventory = inventory/mycluster/inventory.ini
forks = 5
nocows = 1
stdout_callback = default
fact_caching = jsonfile
fact_caching_connection = {folder}/facts
fact_caching_timeout = 3600
gathering = smart
interpreter_python = /usr/bin/python3
[ssh_connection]
pipelining = True
ssh_args = -o ControlMaster=auto -o ControlPersist=20 -o IdentitiesOnly=yes -o IdentityFile={key} \
-o UserKnownHostsFile={known_hosts} -o StrictHostKeyChecking=yes
control_path_dir = {folder}/control
"""
# In the place of ansible-playbook: writes down with what it was called.
RECORDER = """#!/bin/sh
echo "$*" >>{calls}
exec /usr/bin/ansible-playbook "$@"
"""


@dataclass
class Result:
    """What a scenario saw."""
    name: str
    problems: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    gaps: dict = field(default_factory=dict)  # what -> seconds, the longest of all clients

    def expect(self, claim, problem):
        if not claim:
            self.problems.append(problem)

    def expect_gaps(self, what, loads):
        """No client was without an answer for longer than a port needs to change hands. Judged on a machine that has the
        time: not if even a client that goes to an API server itself had to wait."""
        reference = loads[REFERENCE].seen
        own = max(reference.longest_gap(0), reference.longest_silence(0))
        judged = own <= REFERENCE_GAP
        if not judged:
            self.notes.append(f"{what}: without a proxy {own:.2f} s, so not judged")
        for name, load in loads.items():
            seen = load.seen
            fresh, held = seen.longest_gap(0), seen.longest_silence(0)
            if name != REFERENCE:
                self.gaps[what] = max(self.gaps.get(what, 0), fresh, held)
            self.expect(max(fresh, held) <= LONGEST_GAP or not judged,
                        f"{what}: {name} was without an answer for {fresh:.2f} s (fresh), {held:.2f} s (held)")
            self.expect(len(seen.fresh) > 20, f"{what}: {name} asked only {len(seen.fresh)} times")


class Play:
    """A run of ansible-playbook that has ended."""

    def __init__(self, status, output):
        self.status, self.output = status, output
        self.hosts = {}
        for line in output.rpartition("PLAY RECAP")[2].splitlines():
            name, colon, counts = line.partition(":")
            if colon and "changed=" in counts:
                self.hosts[name.strip()] = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", counts)}

    def changed(self):
        return sum(counts["changed"] for counts in self.hosts.values())

    def failed(self):
        return [name for name, counts in self.hosts.items() if counts["failed"] or counts["unreachable"]]

    def tail(self):
        lines = [line for line in self.output.splitlines() if re.search(r"fatal|FAILED|msg|error", line, re.I)]
        return " | ".join(line.strip()[:600] for line in lines[:4]) or self.output[-600:]


class Lab:
    """The guests run for as long as the `with` block."""

    def __init__(self, cluster, root, package, kubelane, folder, logs):
        self.cluster, self.root, self.package, self.kubelane = cluster, root, package, kubelane
        self.folder, self.logs = folder, logs
        self.runs = 0
        self.checkout = folder / "kubespray"
        self.keys = Keys(folder)
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        try:
            hosts = [server.host for server in self.cluster.servers]
            hosts += [Host(self.cluster.switch, name, address) for name, address in WORKERS.items()]
            self.guests = {host.name: self.stack.enter_context(
                Guest(host, self.root, self.folder, self.keys, self.logs, HERE / "guest")) for host in hosts}
        except BaseException:
            self.stack.close()
            raise
        self.workers = {name: self.guests[name] for name in WORKERS}
        return self

    def __exit__(self, *_):
        self.stack.close()

    # The control host: a checkout of kubespray (a stub of it), with an inventory, and kubelane's role in a folder of it.

    def make_checkout(self):
        shutil.rmtree(self.checkout, ignore_errors=True)
        shutil.copytree(HERE / "kubespray", self.checkout)
        shutil.copytree(DEPLOY, self.checkout / "kubelane")
        (self.checkout / "ansible.cfg").write_text(ANSIBLE_CFG.format(
            folder=self.folder, key=self.keys.own, known_hosts=self.keys.known_hosts))
        recorder = self.checkout / "bin/ansible-playbook"
        recorder.parent.mkdir()
        recorder.write_text(RECORDER.format(calls=self.checkout / "calls"))
        recorder.chmod(0o755)
        for name, text in self.proxy_files().items():
            (self.checkout / name).write_text(text)
        (self.checkout / "ssl").mkdir()
        for name, text in self.joined_files().items():
            (self.checkout / name).write_text(text)
        shutil.rmtree(self.folder / "facts", ignore_errors=True)

    def proxy_files(self):
        files = {}
        for proxy, (manifest, _, kind, text) in PROXIES.items():
            files[manifest] = text
            files[f"{proxy}.cfg"] = kind(self.cluster).configuration()
        return files

    def joined_files(self):
        """What a node has once it has joined."""
        return {"ssl/ca.crt": self.cluster.authority.certificate.read_text(),
                "kubelet.conf": json.dumps({**json.loads(kubeconfig("localhost", self.cluster.authority, "none")),
                                            "users": [{"name": "admin", "user": {}}]})}

    def write_inventory(self, workers, control_planes=tuple(ADDRESSES), **variables):
        """As kubespray's sample has it; variables are those of all hosts."""
        folder = self.checkout / "inventory/mycluster"
        (folder / "group_vars/all").mkdir(parents=True, exist_ok=True)
        lines = ["[kube_control_plane]", *(f"{name} ansible_host={ADDRESSES[name]} ip={ADDRESSES[name]}"
                                           for name in control_planes),
                 "", "[etcd]", *ADDRESSES, "",
                 "[kube_node]", *(f"{name} ansible_host={WORKERS[name]} ip={WORKERS[name]}" for name in workers), "",
                 "[k8s_cluster:children]", "kube_control_plane", "kube_node", ""]
        missing = [name for name in ADDRESSES if name not in control_planes]
        lines[lines.index("[etcd]") + 1:lines.index("[etcd]") + 4] = [
            f"{name} ansible_host={ADDRESSES[name]} ip={ADDRESSES[name]}" if name in missing else name
            for name in ADDRESSES]
        (folder / "inventory.ini").write_text("\n".join(lines))
        settings = {"loadbalancer_apiserver_type": "kubelane", "kubelane_package": str(self.package),
                    "ansible_user": "root", **variables}
        (folder / "group_vars/all/all.yml").write_text("---\n" + "".join(
            f"{key}: {json.dumps(value)}\n" for key, value in settings.items()))

    def control_command(self, *argv):
        """A command line that runs on the control host, whose network is that of the laboratory's worker."""
        path = ":".join(map(str, (self.checkout / "bin", self.kubelane.parent, self.cluster.programs, "/usr/sbin",
                                  "/usr/bin", "/sbin", "/bin")))
        return self.cluster.worker.command("env", f"HOME={self.folder}", f"PATH={path}", "ANSIBLE_NOCOLOR=1",
                                           "LANG=C.UTF-8", *argv)

    def on_control_host(self, *argv, limit=PLAY_LIMIT):
        return subprocess.run(self.control_command(*argv), cwd=self.checkout, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit)

    def play(self, playbook, *arguments):
        done = self.on_control_host("ansible-playbook", playbook, *arguments)
        self.runs += 1
        (self.logs / f"play-{self.runs:03}.log").write_text(f"{playbook} {' '.join(arguments)}\n{done.stdout}")
        return Play(done.returncode, done.stdout)

    def install(self, *arguments):
        """The way from nginx to kubelane; raises if it is not gone to the end."""
        play = self.play("kubelane/kubelane.yml", "-e", "kubelane_serial=[4]", *arguments)
        if play.status:
            raise RuntimeError(f"kubelane.yml: {play.tail()}")
        return play

    # The guests.

    def begin_anew(self, workers, proxy="nginx", **variables):
        """Those workers have joined and run the proxy; the others are bare. The control host is as new."""
        for guest in self.guests.values():
            if guest.name in ADDRESSES:
                guest.try_run("rm", "-rf", "/etc/kubelane")
            else:
                guest.wipe()
        self.make_checkout()
        self.write_inventory(workers, **variables)
        for name in workers:
            self.run_proxy(self.guests[name], proxy)
        for name in workers:
            wait_until(lambda: self.guests[name].holder() == proxy, f"{name}: {proxy} on its port", 20)

    def run_proxy(self, guest, proxy):
        manifest, path, kind, text = PROXIES[proxy]
        guest.join(self.joined_files())
        guest.write(path, kind(self.cluster).configuration())
        guest.write(f"{MANIFESTS}/{manifest}", text)

    @contextlib.contextmanager
    def load(self, names):
        """A client on each of these workers, through 127.0.0.1:6443, and one on a control plane, where that is its API
        server; what each saw is in its `seen`."""
        hosts = {name: self.guests[name].host for name in names} | {REFERENCE: self.cluster.servers[0].host}
        loads = {name: LoadClient(host, self.cluster.authority.certificate,
                                  self.logs / f"load-{name.replace(' ', '-')}.log", **LOAD)
                 for name, host in hosts.items()}
        with contextlib.ExitStack() as stack:
            for load in loads.values():
                stack.enter_context(load)
            yield loads

    def expect_on(self, result, name, holder):
        found = self.guests[name].holder()
        result.expect(found == holder, f"{name}: port 6443 is held by {found or 'nobody'}, not {holder}")

    def save(self, name):
        for guest in self.guests.values():
            text = guest.try_run("journalctl", "--no-pager", "-o", "short-monotonic").stdout
            (self.logs / f"{name}-{guest.name}-journal.log").write_text(text)
