"""A worker of a cluster: a host of the laboratory with name spaces of its own, containerd and a kubelet.

All that it runs is in one process name space, and all that it writes on layers over the machine's files, so that
nothing of it is left when its first process is killed.
"""

import json
import os
import pathlib
import shutil
import subprocess

from lab.process import Process, wait_until

NAME = "worker"  # as a node
CGROUPS = pathlib.Path("/sys/fs/cgroup")
CGROUP = "kl-lab-pod"
MANIFESTS = pathlib.Path("/etc/kubernetes/manifests")
SOCKET = "unix:///run/containerd/containerd.sock"
PAUSE = "localhost/pause:1"

# What a kubelet sets for the whole machine, which is not a node's for long.
TUNABLES = [pathlib.Path("/proc/sys") / name for name in (
    "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes")]

# Its first process: children that lost their parents are reaped by the kernel, as SIGCHLD is ignored.
INIT = """
set -e
layers=$1
for top in etc var; do
  mkdir -p "$layers/$top" "$layers/$top.work"
  mount -t overlay overlay -o "lowerdir=/$top,upperdir=$layers/$top,workdir=$layers/$top.work" "/$top"
done
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t proc proc /proc
trap '' CHLD
: >"$layers/mounted"
exec sleep infinity
"""

CONTAINERD = f"""
version = 2
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
"""

NETWORK = {"cniVersion": "0.4.0", "name": "pods", "plugins": [
    {"type": "bridge", "bridge": "cni0", "isGateway": True,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.1.0/24"}]]}},
    {"type": "loopback"}]}


def kubelet_settings(authority):
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "staticPodPath": str(MANIFESTS), "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{CGROUP}",
        "cgroupsPerQOS": False, "enforceNodeAllocatable": [], "failSwapOn": False, "resolvConf": "/etc/resolv.conf",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(authority.certificate)}},
        "syncFrequency": "10s",  # after which it shows the API a pod that was there before the API; a minute otherwise
        # The machine's memory and disk are not the node's.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "volumePluginDir": "/var/lib/kubelet/plugins",
    }


class Worker:
    """Runs while the `with` block runs; a host for `Process`."""

    name = NAME

    def __init__(self, cluster, kubernetes, containers, folder):
        self.cluster, self.kubernetes, self.containers = cluster, kubernetes, containers
        self.layers = folder / "layers"
        self.logs = cluster.logs
        self.first = self.containerd = self.kubelet = None
        self.tunables = {path: path.read_text() for path in TUNABLES}

    def __enter__(self):
        try:
            self._boot()
            self._start_containerd()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.first:
            self.first.kill()  # and with it goes all that runs in it, and its mounts
        for path, value in self.tunables.items():
            path.write_text(value)
        remove_cgroups()
        shutil.rmtree(self.layers, ignore_errors=True)

    def _boot(self):
        remove_cgroups()
        shutil.rmtree(self.layers, ignore_errors=True)
        self.layers.mkdir()
        # Not `ip netns exec`, which puts a /sys without control groups into its place.
        self.first = Process(InNetwork(self.cluster.worker), [
            "unshare", "--mount", "--propagation", "private", "--pid", "--ipc", "--fork", "--kill-child",
            "bash", "-c", INIT, "init", self.layers], self.logs / "worker.log")
        wait_until(lambda: (self.layers / "mounted").exists() or not self.first.running(), "the worker's mounts", 10)
        if not self.first.running():
            raise RuntimeError(f"the worker did not come up; see {self.logs}/worker.log")
        children = pathlib.Path(f"/proc/{self.first.pid}/task/{self.first.pid}/children").read_text().split()
        self.leader = int(children[0])

    def command(self, *argv):
        """A command line that runs `argv` on the worker, with the programs of the laboratory."""
        path = f"{self.containers / 'bin'}:{self.kubernetes}:/usr/sbin:/usr/bin:/sbin:/bin"
        return ["nsenter", "-t", str(self.leader), "-m", "-n", "-p", "-i", "env", "-i", f"PATH={path}", "HOME=/tmp",
                "CONTAINERD_SNAPSHOTTER=native", *map(str, argv)]

    def try_run(self, *argv, limit=60, **options):
        return subprocess.run(self.command(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=limit, **options)

    def run(self, *argv, limit=60, **options):
        done = self.try_run(*argv, limit=limit, **options)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stdout.strip()}")
        return done.stdout

    def path(self, path):
        """Of a file on the worker, from outside."""
        return pathlib.Path(f"/proc/{self.leader}/root{path}")

    def write(self, path, text, mode=0o644):
        """All or nothing, by a rename, as careful hands do it."""
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name("." + target.name)
        fresh.write_text(text)
        fresh.chmod(mode)
        fresh.rename(target)

    def _start_containerd(self):
        self.write("/etc/containerd/config.toml", CONTAINERD)
        self.write("/etc/cni/net.d/10-pods.conflist", json.dumps(NETWORK))
        self.containerd = Process(self, ["containerd", "--config", "/etc/containerd/config.toml"],
                                  self.logs / "containerd.log")
        wait_until(lambda: self.try_run("ctr", "version").returncode == 0, "containerd", 20)

    def start_kubelet(self):
        """With the identity of a node, and with the API at localhost alone."""
        self.write("/var/lib/kubelet/config.yaml", json.dumps(kubelet_settings(self.cluster.authority)))
        self.write("/etc/kubernetes/kubelet.conf", self._kubeconfig(), mode=0o600)
        self.path(MANIFESTS).mkdir(parents=True, exist_ok=True)
        self.kubelet = Process(self, [
            "kubelet", "--config=/var/lib/kubelet/config.yaml", "--kubeconfig=/etc/kubernetes/kubelet.conf",
            "--container-runtime=remote", f"--container-runtime-endpoint={SOCKET}", f"--hostname-override={NAME}",
            f"--node-ip={self.cluster.worker.address}", "--root-dir=/var/lib/kubelet", "--v=2",
        ], self.logs / "kubelet.log")

    def _kubeconfig(self):
        authority = self.cluster.authority
        certificate, key = authority.issue("kubelet", f"/O=system:nodes/CN=system:node:{NAME}", [], usage="clientAuth")
        return json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "node",
            "clusters": [{"name": "lab", "cluster": {"server": "https://localhost:6443",
                                                     "certificate-authority": str(authority.certificate)}}],
            "users": [{"name": NAME, "user": {"client-certificate": str(certificate), "client-key": str(key)}}],
            "contexts": [{"name": "node", "context": {"cluster": "lab", "user": NAME}}]})


class InNetwork:
    """A host for `Process` that shares a laboratory host's network and nothing else."""

    def __init__(self, host):
        self.host = host

    def command(self, *argv):
        return ["nsenter", f"--net=/run/netns/{self.host.namespace}", *map(str, argv)]


def remove_cgroups():
    """Those that containers had; they are empty now. An aborted run leaves some, too."""
    for top in CGROUPS.glob(f"*/{CGROUP}"):
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                pass  # a process in it is about to end
