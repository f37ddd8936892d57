"""What every scenario works with: a worker that has joined, with kubelane as a static pod, and load on it."""

import json
import pathlib
import time
from dataclasses import dataclass, field

from lab.load_client import LoadClient
from lab.network import sh
from lab.process import wait_until
from pods import Pods
from readme import FOLDER
from worker import MANIFESTS, NAME

SOURCE = FOLDER.parents[1]
ADMIN = "http://127.0.0.1:8081"
CONFIG = "/etc/kubelane/config.yaml"
HOME = "/tmp/kubelane"  # where an operator has the files of deploy/static-pod, the archive and config.yaml
READY_LIMIT = 120  # seconds; a pod that was there a moment ago is started after a pause


def build(readme, name, output):
    """Makes the image as the README says, in the checkout, but into that file."""
    command = readme.command("build", IMAGE=name)
    command[-1] = f"{command[-1].rstrip()} --output {output}"
    return pathlib.Path(sh(*command, cwd=SOURCE).splitlines()[-1])


@dataclass
class Result:
    name: str
    gap: float = 0      # longest time between two fresh connections that were answered
    failed: int = 0     # fresh connections
    ended: int = 0      # held connections
    lease: float = 0    # longest time between two renewals of the node's lease
    note: str = ""
    problems: list = field(default_factory=list)

    def expect(self, claim, problem):
        if not claim:
            self.problems.append(problem)

    def within(self, what, value, bound):
        self.expect(value <= bound, f"{what}: {value:.1f} s, not {bound}")


@dataclass
class Version:
    """A pod of kubelane."""
    name: str
    image: str

    @property
    def manifest(self):
        return MANIFESTS / f"{self.name}.yaml"


class Lab:
    """`archive` is the image's. `usual` is what scenarios begin with, `other` what may come after it."""

    def __init__(self, cluster, worker, readme, archive, usual, other):
        self.cluster, self.worker, self.readme, self.archive = cluster, worker, readme, archive
        self.usual, self.other = usual, other
        self.pods = Pods(worker)
        self.names = [NAME]  # of the nodes whose leases are watched

    # What the operator does.

    def step(self, name, version=None, old=None, limit=60):
        """Runs a block of the README on the worker, in the operator's folder."""
        return self.worker.run(*self.command(name, version, old), limit=limit)

    def command(self, name, version=None, old=None):
        version = version or self.usual
        return ["env", "-C", HOME, *self.readme.command(
            name, IMAGE=version.image, NAME=version.name, ARCHIVE=f"{HOME}/{self.archive.name}",
            OLD=old.name if old else "")]

    def bring(self, config):
        """The operator's files; `config` becomes config.yaml."""
        for file in (FOLDER / "kubelane.yaml.in", self.archive):
            target = self.worker.path(f"{HOME}/{file.name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
        self.worker.write(f"{HOME}/config.yaml", config)

    def configuration(self, addresses=None, extra=""):
        """For these upstreams, name -> address; the cluster's servers if none are given."""
        addresses = addresses or {server.name: server.address for server in self.cluster.servers}
        lines = [f"  - {{name: {name}, address: {address}}}" for name, address in addresses.items()]
        return "\n".join(["version: 1", "upstreams:", *lines, extra])

    def remove(self, version=None):
        version = version or self.usual
        self.worker.path("/etc/kubelane").mkdir(exist_ok=True)
        self.step("remove", version)
        self.wait(lambda: not self.pods.containers(version.name), f"{version.name}: gone", 30)

    def wait(self, claim, what, limit):
        """For a claim that costs a program to check."""
        wait_until(claim, what, limit, every=0.25)

    # What is seen.

    def get(self, path):
        """From kubelane's admin port; empty while it does not answer, or not well."""
        return self.worker.try_run("curl", "--fail", "--silent", "--max-time", "3", ADMIN + path).stdout

    def upstreams(self):
        """What kubelane says of each upstream, by name; empty while it does not answer."""
        try:
            return {one["name"]: one for one in json.loads(self.get("/status"))["upstreams"]}
        except ValueError:
            return {}

    def all_ready(self, names=None):
        """Whether exactly these upstreams are wanted, and ready; the servers if none are named."""
        found = {name: (one["state"], one["cause"]) for name, one in self.upstreams().items()
                 if one["membership"] == "configured"}
        return found == {name: ("ready", "") for name in names or (server.name for server in self.cluster.servers)}

    def object(self, *argv):
        """An API object, as a server tells that has no fault; {} if there is none."""
        done = self.cluster.kubectl("get", *argv, "-o", "json", address=self.witness.address)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    @property
    def witness(self):
        return self.cluster.servers[-1]

    def pod(self, name):
        return self.object("pod", f"{name}-{NAME}", "-n", "kube-system")

    def pod_ready(self, name):
        return condition(self.pod(name), "Ready")

    def kubelet_log(self):
        return (self.cluster.logs / "kubelet.log").read_text()

    def node_ready(self):
        return condition(self.object("node", NAME), "Ready")

    def load(self, name):
        return LoadClient(self.cluster.worker, self.cluster.authority.certificate,
                          self.cluster.logs / f"{name}-load.log", held=4, every=0.2, fresh_every=0.05, path="/version")

    def settle(self):
        """As every scenario begins: the usual version, three good upstreams, everything ready."""
        self.bring(self.configuration())
        self.step("configure")
        if not self.worker.path(self.usual.manifest).exists():
            self.step("install")
        self.worker.path(self.other.manifest).unlink(missing_ok=True)
        self.cluster.wait_ready(60)
        self.wait(self.all_ready, "upstreams: ready", READY_LIMIT)
        self.wait(lambda: self.pod_ready(self.usual.name), "the pod: ready", READY_LIMIT)
        self.wait(self.node_ready, "the node: ready", READY_LIMIT)


def condition(thing, kind):
    """Whether that condition of a pod or a node is true."""
    return any(one["type"] == kind and one["status"] == "True" for one in thing.get("status", {}).get("conditions", []))


def measure(lab, result, act, settle=3):
    """Does `act` under load; what was seen from then on, and for `settle` seconds after it, is the result's."""
    with lab.load(result.name) as client:
        time.sleep(2)
        began = time.monotonic()
        act()
        time.sleep(settle)
    seen = client.seen
    result.gap = max(result.gap, seen.longest_gap(began))
    result.failed += seen.failed_fresh(began)
    result.ended += seen.ended(began)
