"""What operators do: upgrades, a rebuilt host, other credentials, another wiring of etcd, everything off and on."""

import time
from contextlib import nullcontext

from lab import faults
from lab.process import wait_until

from .scenario import recover, scenario, strike


@scenario
def upgrade(lab):
    """the kube-apiservers upgraded one by one: SIGTERM, 20 s down, back"""
    def upgrade_each(kubelane):
        for server in lab.cluster.servers:
            with faults.terminated(server):
                time.sleep(20)
            recover(lab, kubelane)

    return strike(lab, "upgrade", None, nullcontext(), 0, silence=1.5, watch_lag=4, meanwhile=upgrade_each)


@scenario
def rebuilt(lab):
    """a control plane's host lost for 15 s, and rebuilt empty under the same address"""
    target = lab.cluster.etcd_follower(2)
    return strike(lab, "rebuilt", target, faults.lost(target), 15, silence=3, watch_lag=5)


@scenario
def no_credentials(lab):
    """--anonymous-auth=false, kubelane without a certificate: every check answers 401; one kube-apiserver killed"""
    target = lab.cluster.servers[0]

    def causes(kubelane):
        others = [u for name, u in kubelane.upstreams().items() if name != target.name]
        if not all(u["state"] == "ready" and is_unauthorized(u) for u in others):
            raise ValueError(f"not ready and unauthorized: {others}")

    with lab.cluster.restarted_with("--anonymous-auth=false"):
        return strike(lab, "no-credentials", target, faults.killed(target), 12, silence=1.5, watch_lag=4,
                      meanwhile=causes)


@scenario
def rotation(lab):
    """--anonymous-auth=false, kubelane with a client certificate that is rotated before it expires"""
    folder, authority = lab.cluster.folder, lab.cluster.authority
    lifetime = 30

    def issue(valid):
        """A new pair put in place as cert-manager and kubeadm do it: two renames, so that for a moment they differ."""
        made = authority.issue(f"probe-{time.monotonic_ns()}", "/O=kubelane/CN=probe", [], usage="clientAuth",
                               valid=valid)
        for path, name in zip(made, ("probe.crt", "probe.key")):
            path.rename(folder / name)

    def rotate(kubelane):
        expires = time.monotonic() + lifetime
        time.sleep(5)
        judge_authorized(kubelane)
        issue(86400)
        time.sleep(max(0, expires + 5 - time.monotonic()))
        judge_authorized(kubelane)

    with lab.cluster.restarted_with("--anonymous-auth=false"):
        issue(lifetime + 15)  # it takes that long at most until `rotate` begins
        return strike(lab, "rotation", None, nullcontext(), 0, meanwhile=rotate,
                      tls_options=f", client_cert_file: {folder / 'probe.crt'}, "
                                  f"client_key_file: {folder / 'probe.key'}")


def judge_authorized(kubelane):
    upstreams = kubelane.upstreams()
    if not all(u["state"] == "ready" and not is_unauthorized(u) for u in upstreams.values()):
        raise ValueError(f"not ready and authorized: {upstreams}")


def is_unauthorized(upstream):
    return "unauthorized" in upstream["cause"] or "401" in upstream["cause"]


@scenario
def etcd_shared(lab):
    """false alarm: each kube-apiserver has all etcd endpoints, one member is killed: no state may change"""
    def steady(kubelane):
        before = kubelane.metric("kubelane_upstream_transitions_total")
        time.sleep(15)
        if kubelane.metric("kubelane_upstream_transitions_total") != before:
            raise ValueError(f"states changed: {kubelane.upstreams()}")

    with lab.cluster.restarted_with(etcd_servers=lab.cluster.all_etcd_servers()):
        target = lab.cluster.etcd_follower(0)
        # kube-apiserver itself fails the write that it had sent to that member.
        return strike(lab, "etcd-shared", None, faults.etcd_killed(target), 15, meanwhile=steady, lost_for=0.5)


@scenario
def etcd_shared_lost(lab):
    """false alarm: each kube-apiserver has all etcd endpoints, the quorum is lost for 15 s"""
    def reported(kubelane):
        wait_until(lambda: kubelane.metric("kubelane_control_plane_quorum", 'kind="spare"') < 0,
                   'kubelane_control_plane_quorum{kind="spare"} below 0', 12)

    with lab.cluster.restarted_with(etcd_servers=lab.cluster.all_etcd_servers()):
        return strike(lab, "etcd-shared-lost", None, faults.quorum_lost(lab.cluster, lab.cluster.servers[1:]), 15,
                      excused_while=True, meanwhile=reported)


@scenario
def off_and_on(lab):
    """the whole control plane off for 20 s, and on: kubelane resets nothing, and everything works once it is ready"""
    return strike(lab, "off-and-on", None, faults.off(lab.cluster), 20, excused_while=True, serves_on=0)
