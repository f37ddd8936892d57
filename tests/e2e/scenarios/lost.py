"""A server is lost. What has begun since must not fail, what was there must come back in time."""

from lab import faults
from lab.certificates import Authority
from lab.process import wait_until

from .scenario import scenario, strike

FLEET = ["cluster: {nodes: 1500}"]


@scenario
def killed(lab):
    """kube-apiserver killed, and back"""
    target = lab.cluster.servers[0]
    return strike(lab, "killed", target, faults.killed(target), 12, silence=1.5, watch_lag=4)


@scenario
def terminated(lab):
    """kube-apiserver gets SIGTERM, as it is started by kubeadm and kubespray, and is back after 12 s"""
    target = lab.cluster.servers[1]
    return strike(lab, "terminated", target, faults.terminated(target), 12, silence=1.5, watch_lag=4)


@scenario
def frozen(lab):
    """kube-apiserver hangs (SIGSTOP) for 15 s, and goes on"""
    target = lab.cluster.servers[2]
    return strike(lab, "frozen", target, faults.frozen(target), 15, silence=5, watch_lag=7)


@scenario
def vanished(lab):
    """a control plane's cable pulled for 15 s"""
    target = lab.cluster.etcd_follower(0)
    return strike(lab, "vanished", target, faults.unplugged(target.host), 15, silence=3, watch_lag=5)


@scenario
def etcd_killed(lab):
    """a control plane's etcd member killed ([-]etcd failed), and back after 20 s"""
    target = lab.cluster.etcd_follower(1)
    # It takes two seconds for each red answer: its own time-out towards etcd. Then a connection that waits for a
    # write leaves with the others: that write cannot be done there.
    return strike(lab, "etcd-killed", target, faults.etcd_killed(target), 20, silence=1.5, watch_lag=12, lost_for=6.5)


@scenario
def fleet_frozen(lab):
    """kube-apiserver hangs (SIGSTOP) for 25 s, with cluster.nodes: 1500"""
    target = lab.cluster.servers[0]
    return strike(lab, "fleet-frozen", target, faults.frozen(target), 25, silence=14, watch_lag=16, options=FLEET)


@scenario
def fleet_vanished(lab):
    """a control plane's cable pulled for 15 s, with cluster.nodes: 1500"""
    target = lab.cluster.etcd_follower(1)
    return strike(lab, "fleet-vanished", target, faults.unplugged(target.host), 15, silence=3, watch_lag=5,
                  options=FLEET)


@scenario
def expired(lab):
    """kube-apiserver comes back with a certificate that has expired"""
    target = lab.cluster.servers[1]

    def recognised(kubelane):
        wait_until(lambda: kubelane.states().get(target.name) == "not_ready", f"{target.name} is not ready", 40)

    return strike(lab, "expired", target, faults.expired(target), 10, silence=1.5, watch_lag=4, meanwhile=recognised)


@scenario
def impostor(lab):
    """kube-apiserver comes back with a certificate of another authority"""
    target = lab.cluster.servers[2]
    other = Authority(lab.cluster.folder, "other-ca")

    def recognised(kubelane):
        wait_until(lambda: kubelane.states().get(target.name) == "impostor", f"{target.name} is an impostor", 40)

    return strike(lab, "impostor", target, faults.impostor(target, other), 10, silence=1.5, watch_lag=4,
                  meanwhile=recognised)
