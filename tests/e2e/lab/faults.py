"""The faults. Each begins on entering its `with` block and is undone on leaving it."""

import pathlib
import signal
import subprocess
from contextlib import contextmanager

from .network import sh

DAY = 86400
DELAY = pathlib.Path(__file__).with_name("delay.py")


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
    with suspended(server.api):
        yield


@contextmanager
def suspended(process):
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


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
def off(cluster):
    """The whole control plane, and on again when this is left: all are ready then."""
    for server in cluster.servers:
        server.api.kill()
        server.etcd.kill()
    try:
        yield
    finally:
        for server in cluster.servers:
            server.start_etcd()
            server.start_api()
        cluster.wait_ready(90)


@contextmanager
def lost(server):
    """A host is gone; on leaving this it comes back rebuilt, empty, under the same address."""
    with unplugged(server.host):
        server.api.kill()
        server.etcd.kill()
        yield
    server.rebuild()


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
    with _rules(host.switch.namespace, "bridge", "forward",
                f"iifname {host.name} {loss}", f"oifname {host.name} {loss}"):
        yield


@contextmanager
def delayed(host, seconds):
    """Every packet on the host's wire comes that much later, each way, by a program: not all kernels have netem."""
    ip = ["ip", "-n", host.switch.namespace, "link"]
    near, far = host.name + "-n", host.name + "-f"
    sh(*ip, "add", near, "type", "veth", "peer", "name", far)
    sh(*ip, "set", near, "master", "bridge", "up")
    sh(*ip, "set", far, "up")
    sh(*ip, "set", host.name, "nomaster")
    command = ["ip", "netns", "exec", host.switch.namespace, DELAY, host.name, far, str(seconds)]
    forwarder = subprocess.Popen(command, start_new_session=True)
    try:
        yield
    finally:
        forwarder.kill()
        forwarder.wait()
        sh(*ip, "delete", near)
        sh(*ip, "set", host.name, "master", "bridge")


def impostor(server, authority):
    """It comes back with a certificate of another authority."""
    return _certified(server, authority)


def expired(server):
    """It comes back with a certificate that expired yesterday."""
    return _certified(server, server.authority, valid=-DAY)


@contextmanager
def _certified(server, authority, **options):
    certificate, key = server.serving_certificate(authority, **options)
    server.api.stop()
    server.start_api(certificate=certificate, key=key)
    try:
        yield
    finally:
        server.api.stop()
        server.start_api()


# What only the small servers of a rack can be told to say; several at once.

def etcd_failed(servers, requests_fail=True):
    """The checks say `[-]etcd failed`, and so requests fail; or nothing but the checks is wrong."""
    return told(servers, ready=(500, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"),
                 serves=not requests_fail)


def shutting_down(servers, requests_fail=False):
    """The checks say `[-]shutdown failed`."""
    return told(servers, ready=(500, "[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n"),
                 serves=not requests_fail)


def slow_answers(servers, seconds):
    """Every check is answered that late."""
    return told(servers, delay=seconds)


def unauthorized(servers):
    """The checks answer 401, as with anonymous-auth=false."""
    return told(servers, ready=(401, "Unauthorized"))


def failing_checks(servers, every):
    """Every so many-th check fails."""
    return told(servers, failing=every)


@contextmanager
def told(servers, **orders):
    for server in servers:
        server.tell(**orders)
    try:
        yield
    finally:
        for server in servers:
            server.tell()


@contextmanager
def _rules(namespace, family, hook, *rules):
    nft = ["ip", "netns", "exec", namespace, "nft"]
    chain = "; ".join([f"type filter hook {hook} priority 0", *rules])
    sh(*nft, "-f", "-", input=f"table {family} kl {{ chain {hook} {{ {chain}; }}; }}\n")
    try:
        yield
    finally:
        sh(*nft, "delete", "table", family, "kl")
