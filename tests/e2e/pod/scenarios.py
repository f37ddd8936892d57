"""What a worker with kubelane in a static pod goes through. Each begins on a worker that Lab.settle made ready."""

import contextlib
import json
import os
import re
import stat
import tarfile
import time

import nginx
from lab import faults
from lab.kubelets import LeaseWatcher
from lab.process import Process, wait_until
from stage import CONFIG, READY_LIMIT, Version, build, measure
from worker import InNetwork

SCENARIOS = {}
MIB = 1 << 20
UID = "65534"


def scenario(function):
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


@scenario
def image(lab, result):
    """Small, without root, nothing in it but the binary and its libraries, the same at each build."""
    again = build(lab.readme, lab.usual.image, lab.archive.with_name("again.tar"))
    result.expect(again.read_bytes() == lab.archive.read_bytes(), "a second build is another file")
    settings, files = contents(lab.archive)
    size = lab.archive.stat().st_size
    result.expect(size < 25 * MIB, f"{size / MIB:.1f} MiB")
    result.expect(settings["config"]["User"] == f"{UID}:{UID}", f"user {settings['config'].get('User')}")
    result.expect(settings["config"]["Entrypoint"] == ["/usr/bin/kubelane"], "another entry point")
    result.expect("io.buildah.version" not in settings["config"]["Labels"], "the builder's version is in it")
    needed = re.compile(r"usr/bin/kubelane|\S*/(lib|ld-)[^/]*\.so[.\d]*")
    others = [file.name for file in files if not needed.fullmatch(file.name)]
    result.expect(not others, f"also in it: {others}")
    special = [file.name for file in files if file.mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH) or file.uid]
    result.expect(not special, f"not root's, or with a special mode: {special}")
    result.note = f"{size / MIB:.1f} MiB in {len(files)} files"


def contents(archive):
    """An image's settings, and the files of its one layer."""
    with tarfile.open(archive) as outer:
        manifest = json.load(outer.extractfile("manifest.json"))[0]
        settings = json.load(outer.extractfile(manifest["Config"]))
        layer, = manifest["Layers"]
        with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
            return settings, [member for member in inner if not member.isdir()]


@scenario
def confined(lab, result):
    """Runs as the manifest says: no capability, no new privilege, seccomp, nothing to write to."""
    process = lab.pods.process(lab.usual.name)
    status = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines())
    for field, value in (("Uid", "\t".join([UID] * 4)), ("Gid", "\t".join([UID] * 4)), ("NoNewPrivs", "1"),
                         ("Seccomp", "2"), *((f"Cap{kind}", "0" * 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb"))):
        result.expect(status[field].strip() == value, f"{field}: {status[field]}")
    mounts = [line.split() for line in (process / "mountinfo").read_text().splitlines()]
    writable = {mount[4] for mount in mounts if "rw" in mount[5].split(",")}
    result.expect(not writable & {"/", "/etc/kubelane", "/etc/kubernetes/ssl"}, f"writable: {writable}")
    written = [target for target in open_files(process) if target.startswith("/") and target != "/dev/null"]
    result.expect(not written, f"open files: {written}")
    result.expect(lab.get("/livez") and "kubelane_build_info" in lab.get("/metrics"), "no /livez or no metrics")
    complaints = [line for line in lab.pods.log(lab.usual.name).splitlines() if re.search(r" (warn|error) ", line)]
    result.expect(len(complaints) <= 1, f"complaints: {complaints}")
    spec = lab.pod(lab.usual.name)["spec"]
    result.expect((spec["priority"], spec["priorityClassName"]) == (2000001000, "system-node-critical"), "priority")
    result.expect("limits" not in spec["containers"][0]["resources"], "limits")
    pss = re.search(r"^Pss:\s+(\d+) kB", (process / "smaps_rollup").read_text(), re.MULTILINE)
    result.note = f"{len(complaints)} warnings; {int(pss[1]) / 1024:.1f} MiB of PSS"


def open_files(process):
    return [os.readlink(link) for link in (process / "fd").iterdir()]


@scenario
def names(lab, result):
    """Upstreams by name: from the node's /etc/hosts and from its DNS server."""
    by_name = {"cp1": "cp1.hosts.lab", "cp2": "cp2.hosts.lab", "cp3": "cp3.dns.lab"}
    wanted = {f"{server.name}/{server.address}:6443" for server in lab.cluster.servers}
    lab.bring(lab.configuration(by_name))
    measure(lab, result, lambda: (lab.step("reconfigure"), lab.wait(
        lambda: {f"{name}/{one['address']}" for name, one in normal(lab.upstreams()).items()
                 if one["state"] == "ready"} == wanted, "upstreams by name: ready", 15)))
    result.within("without an answer", result.gap, 1)


def normal(upstreams):
    """By the name in the configuration: an address of a name is an upstream called name/address."""
    return {name.split("/")[0]: one for name, one in upstreams.items()}


@scenario
def reconfigured(lab, result):
    """A configuration replaced by a rename is taken on; a broken one is not, and nothing happens."""
    two = {server.name: server.address for server in lab.cluster.servers[1:]}

    def change():
        lab.bring(lab.configuration(two))
        began = time.monotonic()
        lab.step("reconfigure")
        lab.wait(lambda: lab.all_ready(two), "two upstreams: ready", 15)
        result.note = f"in the status after {time.monotonic() - began:.1f} s"
        lab.bring(lab.configuration(two, "upstream: []"))
        lab.step("reconfigure")
        lab.wait(lambda: "configuration rejected" in lab.pods.log(lab.usual.name), "the broken file: rejected", 15)

    measure(lab, result, change)
    shown = {one["name"] for one in json.loads(lab.step("status"))["upstreams"] if one["membership"] == "configured"}
    result.expect(shown == set(two), f"the status shows {shown}")
    checked = lab.worker.try_run(*lab.command("check"))
    result.expect(checked.returncode == 2 and f"{CONFIG}:" in checked.stdout, f"check: {checked.stdout}")
    result.expect(not result.failed, f"{result.failed} fresh connections failed")
    result.within("without an answer", result.gap, 1)


@scenario
def vanished(lab, result):
    """A control-plane host vanishes for a minute: the node does not notice."""
    # Not the leader of etcd: an election makes every API server wait, with any proxy.
    server = next(one for one in lab.cluster.servers if one is not lab.witness and not one.leads_etcd())
    endure(lab, result, faults.unplugged(server.host), 55)


@scenario
def killed(lab, result):
    """The kube-apiserver that carries the kubelet's connection is killed."""
    busiest = max((one for one in lab.cluster.servers if one is not lab.witness), key=lambda one: one.connections())
    endure(lab, result, faults.killed(busiest), 25)


def endure(lab, result, fault, seconds):
    with LeaseWatcher(lab.witness) as leases:
        wait_until(lambda: leases.renewals.get(lab.names[0]), "a lease", 20)
        def strike():
            with fault:
                deadline = time.monotonic() + seconds
                while time.monotonic() < deadline:
                    result.expect(lab.node_ready(), "the node is not ready")
                    time.sleep(1)
        began = time.monotonic()
        measure(lab, result, strike)
        result.lease = max(leases.longest_gaps(lab, began))
    result.within("without an answer", result.gap, 4)
    result.within("between two renewals of the lease", result.lease, 25)


@scenario
def container_killed(lab, result):
    """kubelane's container is killed: the kubelet starts it again."""
    restarts = lab.pods.restarts(lab.usual.name)

    def kill():
        lab.pods.kill(lab.usual.name)
        lab.wait(lab.all_ready, "upstreams: ready again", 60)

    measure(lab, result, kill, settle=12)  # the node's next lease
    result.expect(lab.pods.restarts(lab.usual.name) == restarts + 1, "not one restart")
    lab.wait(lambda: lab.pod_ready(lab.usual.name) and lab.node_ready(), "pod and node: ready", 60)
    result.within("without an answer", result.gap, 15)


@scenario
def upgraded(lab, result):
    """To an image from a registry, and back to the one that was imported."""
    lab.step("push", lab.other)
    lab.step("pull", lab.other)
    gaps = []
    for new, old in ((lab.other, lab.usual), (lab.usual, lab.other)):
        lab.pods.forget_log(new.name)
        lab.step("install", new)
        lab.step("await", new, limit=90)
        result.gap = 0
        measure(lab, result, lambda: (lab.step("replace", new, old), lab.wait(
            lambda: not lab.pods.containers(old.name), f"{old.name}: gone", 30)))
        gaps.append(result.gap)
        lab.wait(lambda: lab.all_ready() and lab.pod_ready(new.name) and lab.node_ready(), "ready again", 60)
    result.gap = max(gaps)
    result.note = f"there {gaps[0]:.1f} s, back {gaps[1]:.1f} s"
    result.within("without an answer", result.gap, 1)


@scenario
def nginx_swapped(lab, result):
    """From nginx, as kubespray sets it up, to kubelane and back, by moving its manifest."""
    lab.remove()
    lab.worker.write("/etc/nginx/nginx.conf", nginx.configuration(one.address for one in lab.cluster.servers))
    lab.worker.write(nginx.MANIFEST, nginx.manifest())
    lab.wait(lambda: lab.pod_ready("nginx-proxy"), "nginx: ready", READY_LIMIT)
    version = Version("kubelane-after-nginx", lab.usual.image)
    lab.step("configure")
    lab.step("install", version)
    lab.step("await", version, limit=90)
    try:
        measure(lab, result, lambda: (lab.step("from-nginx", version), lab.step("verify", version, limit=90)))
        there, result.gap = result.gap, 0
        measure(lab, result, lambda: (lab.step("to-nginx", version), lab.wait(
            lambda: lab.pod_ready("nginx-proxy"), "nginx: ready again", READY_LIMIT)))
    finally:
        lab.worker.path(nginx.MANIFEST).unlink(missing_ok=True)
        lab.worker.path(version.manifest).unlink(missing_ok=True)
    result.note = f"there {there:.1f} s, back {result.gap:.1f} s"
    result.within("there", there, 1)
    result.within("back", result.gap, 15)
    result.gap = max(there, result.gap)


@scenario
def broken(lab, result):
    """What keeps the pod from starting is said, where the README says so; mended, it starts under another name."""
    lab.remove()
    for number, (problem, bring_about, image, tells) in enumerate(BROKEN):
        version = Version(f"kubelane-broken-{number}", image or lab.usual.image)
        lab.step("configure")
        with bring_about(lab):
            seen = len(lab.kubelet_log())
            lab.step("install", version)
            lab.wait(lambda: tells in lab.pods.log(version.name) + lab.kubelet_log()[seen:], f"{problem}: {tells}", 60)
        result.expect(lab.readme.mentions(tells) or problem == MISSPELT, f"the README does not have {tells}")
        lab.remove(version)
    mended = Version("kubelane-mended", lab.usual.image)
    lab.step("configure")
    lab.step("install", mended)
    lab.step("verify", mended, limit=90)
    lab.worker.path(mended.manifest).unlink()
    result.note = f"{len(BROKEN)} ways"


@contextlib.contextmanager
def no_configuration(lab):
    lab.worker.run("rm", "-r", "/etc/kubelane")
    yield


@contextlib.contextmanager
def unreadable(lab):
    lab.worker.path(CONFIG).chmod(0o600)
    yield


@contextlib.contextmanager
def misspelt(lab):
    lab.worker.write(CONFIG, lab.configuration(extra="upstream: []"))
    yield


@contextlib.contextmanager
def port_taken(lab):
    """By an API server, say."""
    process = Process(InNetwork(lab.cluster.worker), ["python3", "-m", "http.server", "--bind", "127.0.0.1", "6443"],
                      lab.cluster.logs / "port-taken.log")
    try:
        wait_until(lambda: accepts(lab), "another process: listening", 10)
        yield
    finally:
        process.stop()


def accepts(lab):
    try:
        lab.cluster.worker.connect("127.0.0.1", 6443, 1).close()
        return True
    except OSError:
        return False


MISSPELT = "a wrong key"
# What is wrong, how it is brought about, the image if not the usual one, and what says so.
BROKEN = [
    ("no folder", no_configuration, None, "hostPath type check failed: /etc/kubelane is not a directory"),
    ("a file for root alone", unreadable, None, "config.yaml:1:1: file: cannot be opened: Permission denied"),
    (MISSPELT, misspelt, None, "config.yaml:6:1: upstream: unknown key"),
    ("no such image", contextlib.nullcontext, "localhost/kubelane:missing",
     'failed to "StartContainer" for "kubelane" with ErrImagePull'),
    ("port taken", port_taken, None, "waiting for a port that another process holds address=127.0.0.1:6443"),
]
