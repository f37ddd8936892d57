"""Three control-plane hosts, each with an etcd member and the kube-apiserver that uses it, as kubeadm stacks them."""

import concurrent.futures
import http.client
import json
import secrets
import shutil
import ssl
import subprocess
import time
from contextlib import contextmanager

from .certificates import Authority, key_pair, serving_names
from .network import Host, Switch, sh
from .process import Process, wait_until

OWN_ETCD = "http://127.0.0.1:2379"
WORKER_ADDRESS = "10.77.0.21"
ADDRESSES = {"cp1": "10.77.0.11", "cp2": "10.77.0.12", "cp3": "10.77.0.13"}


def api_options(folder, authority, certificate, key):
    """A kube-apiserver's, wherever it runs; `folder` has tokens.csv and the key pair `accounts`."""
    return ["--secure-port=6443", f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--client-ca-file={authority.certificate}", f"--token-auth-file={folder / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=api",
            f"--service-account-key-file={folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={folder / 'accounts.key'}",
            "--authorization-mode=Node,RBAC", "--service-cluster-ip-range=10.96.0.0/16"]


def admin_token(folder):
    """A new one, put into `folder` for the kube-apiservers."""
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},admin,1,"system:masters"\n')
    return token


def kubeconfig(address, authority, token):
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": f"https://{address}:6443",
                                                 "certificate-authority": str(authority.certificate)}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
    })


class Server:
    """One control-plane host."""

    def __init__(self, cluster, name, address):
        self.cluster = cluster
        self.name = name
        self.address = address
        self.host = Host(cluster.switch, name, address)
        self.authority = cluster.authority
        self.certificate, self.key = self.serving_certificate(cluster.authority)
        self.etcd = self.api = None

    def serving_certificate(self, authority, **options):
        return authority.issue(f"{self.name}-{time.monotonic_ns()}", "/CN=kube-apiserver", serving_names(ADDRESSES),
                               **options)

    def start_etcd(self, *options):
        peers = ",".join(f"{name}=http://{address}:2380" for name, address in ADDRESSES.items())
        self.etcd = Process(self.host, [
            self.cluster.programs / "etcd", "--name", self.name, "--data-dir", self.cluster.folder / f"etcd-{self.name}",
            "--listen-client-urls", f"http://127.0.0.1:2379,http://{self.address}:2379",
            "--advertise-client-urls", f"http://{self.address}:2379",
            "--listen-peer-urls", f"http://{self.address}:2380",
            "--initial-advertise-peer-urls", f"http://{self.address}:2380",
            "--initial-cluster", peers, "--initial-cluster-token", "kl", "--log-level", "warn",
            # A member that returns must not force an election: its errors would be etcd's, not the proxy's.
            "--pre-vote", *options,
        ], self.cluster.logs / f"{self.name}-etcd.log")

    def start_api(self, *options, certificate=None, key=None):
        self.api = Process(self.host, [
            self.cluster.programs / "kube-apiserver",
            f"--etcd-servers={self.cluster.etcd_servers}", f"--advertise-address={self.address}",
            "--bind-address=0.0.0.0", "--endpoint-reconciler-type=lease",
            *api_options(self.cluster.folder, self.cluster.authority, certificate or self.certificate, key or self.key),
            f"--cert-dir={self.cluster.folder / self.name}", *self.cluster.api_options, *options,
        ], self.api_log)

    def rebuild(self):
        """On an empty disk, as a new member of etcd and with a new certificate."""
        helper = next(server for server in self.cluster.servers if server is not self)
        members = json.loads(helper.etcdctl("member", "list", "-w", "json"))["members"]
        old = next(member["ID"] for member in members if member["name"] == self.name)
        helper.etcdctl("member", "remove", f"{old:x}")
        helper.etcdctl("member", "add", self.name, f"--peer-urls=http://{self.address}:2380")
        shutil.rmtree(self.cluster.folder / f"etcd-{self.name}")
        self.certificate, self.key = self.serving_certificate(self.authority)
        self.start_etcd("--initial-cluster-state", "existing")
        self.start_api()

    @property
    def api_log(self):
        return self.cluster.logs / f"{self.name}-apiserver.log"

    def ready(self):
        try:
            return self.request("GET", "/readyz") == 200
        except OSError:
            return False

    def request(self, method, path, body=None):
        """One request on this host itself, whatever the network does: the status."""
        with self.open(path, method, body) as answer:
            return answer.status

    @contextmanager
    def open(self, path, method="GET", body=None, limit=3):
        """The same, to be read; `limit` is for each wait."""
        connection = http.client.HTTPSConnection("127.0.0.1", 6443)
        try:
            raw = self.host.connect("127.0.0.1", 6443, limit)
            connection.sock = self.cluster.tls.wrap_socket(raw, server_hostname="127.0.0.1")
            connection.request(method, path, json.dumps(body) if body else None,
                               {"Authorization": f"Bearer {self.cluster.token}", "Content-Type": "application/json"})
            yield connection.getresponse()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def etcdctl(self, *arguments):
        return sh(*self.host.command(self.cluster.programs / "etcdctl", *arguments),
                  env={"ETCDCTL_API": "3", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def leads_etcd(self):
        answer = json.loads(self.etcdctl("endpoint", "status", "-w", "json"))[0]["Status"]
        return answer["leader"] == answer["header"]["member_id"]

    def connections(self):
        """How many established connections from the worker it holds."""
        return len(sh(*self.host.command("ss", "-Htn", "state", "established", "sport", "=", ":6443",
                                         "dst", WORKER_ADDRESS)).splitlines())


class Cluster:
    """The control plane and its one worker. `folder` is for keys and data, `logs` for what is kept on failure."""

    def __init__(self, programs, folder, logs):
        self.programs, self.folder, self.logs = programs, folder, logs
        self.authority = Authority(folder, "ca")
        self.etcd_servers = OWN_ETCD
        self.api_options = ()
        self.token = admin_token(folder)
        key_pair(folder, "accounts")
        self.tls = ssl.create_default_context(cafile=self.authority.certificate)
        self.switch = Switch("real")
        self.worker = Host(self.switch, "worker", WORKER_ADDRESS)
        self.servers = [Server(self, name, address) for name, address in ADDRESSES.items()]
        for address in ("127.0.0.1", *ADDRESSES.values()):
            self.write_kubeconfig(address)

    def write_kubeconfig(self, address):
        (self.folder / f"{address}.kubeconfig").write_text(kubeconfig(address, self.authority, self.token))

    def start(self):
        for server in self.servers:
            server.start_etcd()
        for server in self.servers:
            server.start_api()
        self.wait_ready(90)

    def wait_ready(self, limit):
        for server in self.servers:
            wait_until(server.ready, f"{server.name} ready", limit)

    def all_etcd_servers(self):
        return ",".join(f"http://{server.address}:2379" for server in self.servers)

    @contextmanager
    def restarted_with(self, *api_options, etcd_servers=OWN_ETCD):
        """The kube-apiservers run with other options for a while."""
        self.restart_apis(api_options, etcd_servers)
        try:
            yield
        finally:
            self.restart_apis((), OWN_ETCD)

    def restart_apis(self, api_options, etcd_servers):
        self.api_options, self.etcd_servers = api_options, etcd_servers
        for server in self.servers:
            server.api.stop()
            server.start_api()
        self.wait_ready(90)

    def stop(self):
        programs = [p for s in self.servers for p in (s.api, s.etcd) if p]
        with concurrent.futures.ThreadPoolExecutor(len(programs) or 1) as pool:
            list(pool.map(lambda program: program.stop(3), programs))

    def kubectl_command(self, *arguments, address="127.0.0.1"):
        return self.worker.command(self.programs / "kubectl", "--kubeconfig", self.folder / f"{address}.kubeconfig",
                                   "--cache-dir", self.folder / "kubectl-cache", *arguments)

    def kubectl(self, *arguments, address="127.0.0.1", limit=60, **options):
        return subprocess.run(self.kubectl_command(*arguments, address=address), capture_output=True, timeout=limit,
                              **options)

    def etcd_follower(self, preferred):
        """The preferred server, or the next one if it leads: an election makes every API server wait, with any proxy."""
        order = self.servers[preferred:] + self.servers[:preferred]
        return next(server for server in order if not server.leads_etcd())
