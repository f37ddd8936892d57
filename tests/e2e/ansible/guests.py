"""Guests: booted Debians on hosts of the laboratory, reached by ssh, with nginx as kubespray runs it."""

import json
import subprocess

from lab import peers
from lab.container import Container
from lab.network import sh
from lab.process import wait_until
from lab.root import Overlay

PACKAGES = ["openssh-server", "python3", "python3-apt", "nginx-light", "libnginx-mod-stream", "haproxy", "iproute2", "curl"]
MANIFESTS = "/etc/kubernetes/manifests"
HEALTH = """
http {
  server {
    listen 8081;
    location /healthz { access_log off; return 200; }
  }
}
"""
HOSTS = "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"
SSHD = "UsePAM no\nUseDNS no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nMaxStartups 100\nSubsystem sftp /usr/lib/openssh/sftp-server\n"


class Keys:
    """An ssh key that every guest lets in, and a host key that every guest has; they live as long as the laboratory."""

    def __init__(self, folder):
        self.own, self.hosts = folder / "id_ed25519", folder / "host_ed25519"
        for path in (self.own, self.hosts):
            sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path))
        self.known_hosts = folder / "known_hosts"
        self.known_hosts.write_text("10.77.0.* " + " ".join(self.hosts.with_suffix(".pub").read_text().split()[:2]) + "\n")

    def install(self, root):
        (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
        (root / "root/.ssh/authorized_keys").write_text(self.own.with_suffix(".pub").read_text())
        for old in (root / "etc/ssh").glob("ssh_host_*"):
            old.unlink()
        key = root / "etc/ssh/ssh_host_ed25519_key"
        key.write_text(self.hosts.read_text())
        key.chmod(0o600)
        (root / "etc/ssh/sshd_config").write_text(SSHD)


class Guest:
    """One node: a container in the network of `host`. Boots in its `with` block."""

    def __init__(self, host, lower, folder, keys, logs, stand_in):
        self.host, self.name, self.address = host, host.name, host.address
        self.overlay = Overlay(lower, folder / host.name)
        self.log = logs / f"{host.name}-boot.log"
        self.keys, self.stand_in = keys, stand_in

    def __enter__(self):
        self.overlay.__enter__()
        try:
            self._furnish(self.overlay.path)
            self.container = Container(self.overlay.path, self.log, self.host)
            self.container.__enter__()
        except BaseException:
            self.overlay.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.container.power_off()
        self.overlay.__exit__()

    def _furnish(self, root):
        self.keys.install(root)
        (root / "etc/hostname").write_text(self.name + "\n")
        (root / "etc/hosts").write_text(HOSTS)
        for unit in ("nginx.service", "haproxy.service"):
            (root / "etc/systemd/system/multi-user.target.wants" / unit).unlink(missing_ok=True)
        script = root / "usr/local/bin/kubelet"
        script.write_bytes((self.stand_in / "kubelet").read_bytes())
        script.chmod(0o755)
        (root / "etc/systemd/system/kubelet.service").write_bytes((self.stand_in / "kubelet.service").read_bytes())
        (root / "etc/systemd/system/multi-user.target.wants/kubelet.service").symlink_to(
            "/etc/systemd/system/kubelet.service")

    def run(self, *argv, **options):
        return self.container.run(*argv, **options)

    def try_run(self, *argv, **options):
        return self.container.try_run(*argv, **options)

    def write(self, path, text, mode=0o644):
        self.run("mkdir", "-p", path.rpartition("/")[0])
        self.container.write(path, text, mode)

    def exists(self, path):
        return self.try_run("test", "-e", path).returncode == 0

    def holder(self, port=6443):
        """The name of the process that listens on 127.0.0.1:`port`; empty if none does."""
        listed = self.run("ss", "-Hltnp", "src", f"127.0.0.1:{port}")
        return listed.partition('(("')[2].partition('"')[0]

    def admin(self, path):
        """Status and body of kubelane's admin port; status 0 if nobody answers."""
        done = subprocess.run(self.container.in_network("curl", "-sS", "-m", "3", "-w", "\n%{http_code}",
                                                        f"http://127.0.0.1:8081{path}"), capture_output=True, text=True)
        body, _, status = done.stdout.rpartition("\n")
        return int(status or 0), body

    def states(self):
        status, body = self.admin("/status")
        return {one["name"]: (one["state"], one["cause"]) for one in json.loads(body)["upstreams"]} if status == 200 else {}

    def wipe(self):
        """Back to a machine on which nothing of Kubernetes and kubelane was ever installed."""
        self.try_run("apt-get", "purge", "-qqy", "kubelane")
        self.run("rm", "-rf", "/etc/kubernetes", "/etc/kubelane", "/var/lib/kubelane", "/run/kubelane",
                 "/var/cache/kubelane", "/usr/lib/kubelane")
        self.run("systemctl", "restart", "kubelet")
        self.try_run("sh", "-c", "kill $(pidof nginx haproxy)")  # whose kubelet has ended before them
        wait_until(lambda: not self.holder(), f"{self.name}: port 6443 free", 40)
        self.run("systemctl", "reset-failed")

    def join(self, files):
        for path, text in files.items():
            self.write(f"/etc/kubernetes/{path}", text)


class GuestNginx(peers.Nginx):
    """Only its configuration is of use here: the guest's kubelet runs it."""

    def __init__(self, site):
        self.site, self.config = site, "/run/nginx-proxy"

    def configuration(self):
        return super().configuration().replace("daemon off;\n", "") + HEALTH


class GuestHAProxy(peers.HAProxy):
    def __init__(self, site):
        self.site = site


def manifest(name, *command):
    """A static pod, as far as the stand-in for the kubelet looks at it. JSON is YAML too."""
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "kube-system"},
                       "spec": {"hostNetwork": True, "containers": [{"name": name, "command": command}]}}, indent=1)


PROXIES = {
    "nginx": ("nginx-proxy.yml", "/etc/nginx/nginx.conf", GuestNginx,
              manifest("nginx-proxy", "/usr/sbin/nginx", "-e", "stderr", "-g", "daemon off;")),
    "haproxy": ("haproxy.yml", "/etc/haproxy/haproxy.cfg", GuestHAProxy,
                manifest("haproxy", "/usr/sbin/haproxy", "-db", "-f", "/etc/haproxy/haproxy.cfg")),
}
