"""A real etcd cluster, TLS with client certificates, each member on a host of its own; and the operator's host."""

import collections
import json
import os
import re
import subprocess

from lab.certificates import Authority
from lab.network import Host, Switch, sh
from lab.process import Process, wait_until

CLIENT_PORT, PEER_PORT = 2379, 2380
OPERATOR = "10.79.0.9"
# Small, so that elections are quick and the laboratory too; the ratio is etcd's own, ten heartbeats.
ELECTION_MS, HEARTBEAT_MS = 500, 50


class Member:
    """One etcd process, with its certificate and its data, on a host."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.name = f"e{number}"
        self.address = f"10.79.0.{10 + number}"
        self.host = Host(cluster.switch, self.name, self.address)
        # Both usages, as kubeadm and kubespray issue them: the gateway is a client of its own server.
        self.certificate, self.key = cluster.authority.issue(
            self.name, f"/CN={self.name}", [f"IP:{self.address}", "IP:127.0.0.1", "DNS:localhost"],
            usage="serverAuth,clientAuth", key_type="ec")
        self.data = cluster.folder / f"data-{self.name}"
        self.environment_file = cluster.folder / f"{self.name}.env"
        self.process = None

    @property
    def client_url(self):
        return f"https://{self.address}:{CLIENT_PORT}"

    @property
    def local_url(self):
        return f"https://127.0.0.1:{CLIENT_PORT}"

    @property
    def peer_url(self):
        return f"https://{self.address}:{PEER_PORT}"

    @property
    def id(self):
        """As etcdctl prints it, in hexadecimal."""
        return next(f"{m['ID']:x}" for m in self.cluster.members_listed() if self.peer_url in m["peerURLs"])

    def start(self, *options, state="new", among=None, launcher=()):
        """With its environment file as it is written now; `launcher` is a command that becomes etcd."""
        self.write_environment(state, among or self.cluster.members)
        self.run(*options, launcher=launcher)

    def write_environment(self, state, among):
        """What kubespray's /etc/etcd.env holds."""
        own = {"NAME": self.name, "DATA_DIR": self.data, "LISTEN_CLIENT_URLS": f"{self.client_url},{self.local_url}",
               "ADVERTISE_CLIENT_URLS": self.client_url, "LISTEN_PEER_URLS": self.peer_url,
               "INITIAL_ADVERTISE_PEER_URLS": self.peer_url,
               "INITIAL_CLUSTER": ",".join(f"{m.name}={m.peer_url}" for m in among),
               "INITIAL_CLUSTER_STATE": state, "INITIAL_CLUSTER_TOKEN": "kl",
               "ELECTION_TIMEOUT": ELECTION_MS, "HEARTBEAT_INTERVAL": HEARTBEAT_MS,
               "CERT_FILE": self.certificate, "KEY_FILE": self.key,
               "TRUSTED_CA_FILE": self.cluster.authority.certificate, "CLIENT_CERT_AUTH": "true",
               "PEER_CERT_FILE": self.certificate, "PEER_KEY_FILE": self.key,
               "PEER_TRUSTED_CA_FILE": self.cluster.authority.certificate, "PEER_CLIENT_CERT_AUTH": "true",
               "PRE_VOTE": "true", "LOGGER": "zap", "LOG_LEVEL": "warn"}
        self.environment_file.write_text("".join(f"ETCD_{name}={value}\n" for name, value in own.items()))

    def change(self, **settings):
        """In the environment file, from the next start on."""
        text = self.environment_file.read_text()
        for name, value in settings.items():
            text = re.sub(f"^ETCD_{name}=.*$", f"ETCD_{name}={value}", text, flags=re.M)
        self.environment_file.write_text(text)

    def run(self, *options, launcher=()):
        lines = (line.partition("=") for line in self.environment_file.read_text().splitlines())
        self.process = Process(self.host, [*launcher, "etcd", *options], self.cluster.logs / f"{self.name}.log",
                               env={name: value for name, _, value in lines})

    def healthy(self):
        return self.process.running() and self.cluster.etcdctl(
            "endpoint", "health", "--command-timeout=2s", endpoints=[self], check=False).returncode == 0

    def status(self):
        return json.loads(self.cluster.etcdctl("endpoint", "status", "-w", "json", endpoints=[self]).stdout)[0]["Status"]

    def leads(self):
        status = self.status()
        return status["leader"] == status["header"]["member_id"]

    def calls(self):
        """How often each gRPC method was served so far, name -> count; the gateway's calls are among them."""
        text = sh(*self.cluster.operator.command("curl", "-sSf", "--max-time", "5", *self.cluster.tls_options(),
                                                 f"{self.client_url}/metrics"))
        counts = collections.Counter()
        for method, count in re.findall(r'^grpc_server_handled_total{.*grpc_method="(\w+)".*} (\S+)$', text, re.M):
            counts[method] += int(float(count))
        return counts


class Cluster:
    """`size` members; `folder` is for keys and data, `logs` for what is kept on failure."""

    def __init__(self, folder, logs, size, switch="net"):
        self.folder, self.logs = folder, logs
        folder.mkdir()
        self.switch = Switch(switch)
        self.operator = Host(self.switch, "operator", OPERATOR)
        self.authority = Authority(folder, "ca")
        self.certificate, self.key = self.authority.issue("operator", "/CN=operator", [], usage="clientAuth", key_type="ec")
        self.members, self.made = [], []  # now; ever
        for _ in range(size):
            self.new_member()

    def new_member(self):
        """A host for one more; it does not run yet."""
        new = Member(self, len(self.made) + 1)
        self.made.append(new)
        self.members.append(new)
        return new

    def add_learner(self, *options):
        """One more member, as a learner; it runs when this returns."""
        new = self.new_member()
        others = self.members[:-1]
        add = ("member", "add", new.name, "--learner", f"--peer-urls={new.peer_url}")
        # etcd takes members in only when all have been connected for some seconds.
        wait_until(lambda: self.etcdctl(*add, endpoints=others, check=False).returncode == 0, "a learner taken", 20, 0.5)
        new.start(*options, state="existing")
        wait_until(lambda: self.etcdctl("endpoint", "status", endpoints=[new], check=False).returncode == 0,
                   f"{new.name} answers", 20)
        return new

    def start(self, *options):
        for member in self.members:
            member.start(*options)
        self.wait_healthy()

    def wait_healthy(self, limit=30):
        for member in self.members:
            wait_until(member.healthy, f"{member.name} healthy", limit)

    def stop(self):
        for member in self.made:
            if member.process:
                member.process.kill()

    def leader(self):
        """Waits until a member says that it leads."""
        leads = []

        def found():
            leads[:] = [m for m in self.members if m.process.running() and m.healthy() and m.leads()]
            return len(leads) == 1

        wait_until(found, "a leader", 20)
        return leads[0]

    def followers(self):
        leader = self.leader()
        return [m for m in self.members if m is not leader]

    def members_listed(self):
        for member in self.members:
            done = self.etcdctl("member", "list", "-w", "json", "--command-timeout=2s", endpoints=[member], check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)["members"]
        raise RuntimeError("no member lists the members")

    def urls(self, members=None):
        return ",".join(m.client_url for m in members or self.members)

    def tls_options(self):
        return ["--cacert", str(self.authority.certificate), "--cert", str(self.certificate), "--key", str(self.key)]

    def environment(self, members=None):
        """What etcdctl and kubelane take instead of options."""
        return {"ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": self.urls(members),
                "ETCDCTL_CACERT": str(self.authority.certificate), "ETCDCTL_CERT": str(self.certificate),
                "ETCDCTL_KEY": str(self.key), "PATH": os.environ["PATH"]}

    def etcdctl(self, *arguments, endpoints=None, check=True):
        done = subprocess.run(self.operator.command("etcdctl", *arguments), capture_output=True, text=True, timeout=30,
                              env=self.environment(endpoints))
        if check and done.returncode:
            raise RuntimeError(f"etcdctl {' '.join(arguments)}: {done.stderr.strip()}")
        return done
