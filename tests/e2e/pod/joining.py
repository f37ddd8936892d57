"""A worker becomes a node, with kubelane as its only way to the API: the scenario that the others are built on."""

import time

import images
import nginx
from lab.process import Process


CA = "/etc/kubernetes/ssl/ca.crt"
REGISTRY = "127.0.0.1:5000"
REGISTRY_SETTINGS = """version: 0.1
storage: {filesystem: {rootdirectory: /var/lib/registry}}
http: {addr: "127.0.0.1:5000"}
log: {accesslog: {disabled: true}}
"""
INSECURE = f"""[[registry]]
location = "{REGISTRY}"
insecure = true
"""


def joined(lab, result):
    """Installed before the node has joined, and has no CA: the kubelet registers through it and turns ready."""
    prepare(lab)
    lab.bring(lab.configuration())
    lab.step("import")
    lab.step("configure")
    lab.worker.path("/etc/kubernetes/manifests").mkdir(parents=True)
    lab.step("install")
    lab.worker.start_kubelet()
    # It looks for the clouds it may be in, and only then for pods.
    lab.wait(lambda: "Starting kubelet main sync loop" in lab.kubelet_log(), "the kubelet: looks for pods", 60)
    began = time.monotonic()
    lab.wait(lambda: lab.upstreams(), "kubelane: serving", 60)
    serving = time.monotonic() - began
    unverified = {one["cause"] for one in lab.upstreams().values()}
    lab.wait(lab.node_ready, "the node: ready", 90)
    ready = time.monotonic() - began
    lab.worker.write(CA, lab.cluster.authority.certificate.read_text())
    began = time.monotonic()
    lab.wait(lab.all_ready, "upstreams: verified", 20)
    verified = time.monotonic() - began
    lab.step("verify")
    lab.step("check")
    lab.wait(lambda: lab.pod_ready(lab.usual.name), "the pod: ready, as the API says", 60)
    result.note = (f"from the kubelet's start: kubelane serves after {serving:.1f} s, the node is ready after "
                   f"{ready:.1f} s; without a CA: {'; '.join(sorted(unverified))}; verified {verified:.1f} s later")


def prepare(lab):
    """What a node has beside kubelane: pause and nginx, name look-ups, a registry within reach."""
    for make, name in ((images.pause, "pause"), (nginx.image, "nginx")):
        lab.worker.run("ctr", "-n", "k8s.io", "images", "import", make(lab.cluster.folder / name))
    hosts = lab.worker.path("/etc/hosts").read_text()
    named = [f"{server.address} {server.name}.hosts.lab" for server in lab.cluster.servers]
    lab.worker.write("/etc/hosts", "\n".join([hosts, *named, ""]))
    lab.worker.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    lab.worker.write("/etc/containers/registries.conf.d/lab.conf", INSECURE)
    lab.worker.write("/etc/registry.yaml", REGISTRY_SETTINGS)
    addresses = [f"--address=/{server.name}.dns.lab/{server.address}" for server in lab.cluster.servers]
    start(lab, "dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--listen-address=127.0.0.1",
          "--bind-interfaces", "--pid-file=", "--user=root", *addresses)
    start(lab, "docker-registry", "serve", "/etc/registry.yaml")


def start(lab, program, *argv):
    """Ends with the worker."""
    process = Process(lab.worker, [program, *argv], lab.cluster.logs / f"{program}.log")
    time.sleep(0.3)
    if not process.running():
        raise RuntimeError(f"{program} has ended; see {lab.cluster.logs}/{program}.log")
