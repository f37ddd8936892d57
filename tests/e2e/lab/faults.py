"""The faults. Each begins on entering its `with` block and is undone on leaving it."""

import signal
from contextlib import contextmanager

from .network import sh


@contextmanager
def killed(server):
    """kube-apiserver gone at once; its host's kernel refuses."""
    server.api.kill()
    try:
        yield
    finally:
        server.start_api()


@contextmanager
def terminated(server):
    """SIGTERM, with the --shutdown-delay-duration it was started with."""
    server.api.signal(signal.SIGTERM)
    try:
        yield
    finally:
        server.api.stop()
        server.start_api()


@contextmanager
def frozen(server):
    """kube-apiserver hangs; its host's kernel still accepts and acknowledges."""
    server.api.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.api.signal(signal.SIGCONT)


@contextmanager
def unplugged(host):
    """The host's cable: nothing in, nothing out, no FIN, no RST. For the worker this is a dark network."""
    sh("ip", "-n", host.switch.namespace, "link", "set", host.name, "down")
    try:
        yield
    finally:
        sh("ip", "-n", host.switch.namespace, "link", "set", host.name, "up")


@contextmanager
def etcd_killed(server):
    """Its etcd member is gone: kube-apiserver lives, says `[-]etcd failed`, and cannot answer."""
    server.etcd.kill()
    try:
        yield
    finally:
        server.start_etcd()


@contextmanager
def quorum_lost(cluster, members):
    """The members hang (SIGSTOP): every API server says `[-]etcd failed`. Undone when all are ready again."""
    for server in members:
        server.etcd.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for server in members:
            server.etcd.signal(signal.SIGCONT)
        cluster.wait_ready(60)


@contextmanager
def port_closed(server):
    """New connections are refused, established ones served: a graceful stop that takes its time."""
    with _rules(server.host.namespace, "inet", "input",
                "tcp dport 6443 tcp flags & (syn | ack) == syn reject with tcp reset"):
        yield


@contextmanager
def lossy(host, percent):
    """Loses packets at random on the host's wire, both ways."""
    loss = f"numgen random mod 100 < {percent} drop"
    with _rules(host.switch.namespace, "bridge", "forward", f"iifname {host.name} {loss}", f"oifname {host.name} {loss}"):
        yield


@contextmanager
def impostor(server, authority):
    """kube-apiserver comes back with a certificate of another authority."""
    certificate, key = server.cluster.serving_certificate(authority, server.name)
    server.api.stop()
    server.start_api(certificate=certificate, key=key)
    try:
        yield
    finally:
        server.api.stop()
        server.start_api()


@contextmanager
def _rules(namespace, family, hook, *rules):
    nft = ["ip", "netns", "exec", namespace, "nft"]
    chain = "; ".join([f"type filter hook {hook} priority 0", *rules])
    sh(*nft, "-f", "-", input=f"table {family} kl {{ chain {hook} {{ {chain}; }}; }}\n")
    try:
        yield
    finally:
        sh(*nft, "delete", "table", family, "kl")
