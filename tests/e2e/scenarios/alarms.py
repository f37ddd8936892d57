"""Nothing is lost. No held connection may end."""

import time

from lab import faults
from lab.handshakes import Handshakes
from lab.process import wait_until
from lab.proxy import Kubelane

from .scenario import Result, judge_exit, scenario, strike


@scenario
def dark_300ms(lab):
    """false alarm: the worker's own cable pulled for 0.3 s"""
    return strike(lab, "dark-300ms", None, faults.unplugged(lab.cluster.worker), 0.3)


@scenario
def dark_1s(lab):
    """false alarm: the worker's own cable pulled for 1 s"""
    return strike(lab, "dark-1s", None, faults.unplugged(lab.cluster.worker), 1, excused_while=True)


@scenario
def dark_4s(lab):
    """false alarm: the worker's own cable pulled for 4 s"""
    return strike(lab, "dark-4s", None, faults.unplugged(lab.cluster.worker), 4, excused_while=True)


@scenario
def loss(lab):
    """false alarm: 1 % of the worker's packets lost for 30 s"""
    return strike(lab, "loss", None, faults.lossy(lab.cluster.worker, 1), 30)


@scenario
def delay(lab):
    """false alarm: every packet of the worker 100 ms late, each way, for 30 s"""
    return strike(lab, "delay", None, faults.delayed(lab.cluster.worker, 0.1), 30)


@scenario
def paused(lab):
    """false alarm: kube-apiserver paused for 2 s"""
    target = lab.cluster.servers[0]
    return strike(lab, "paused", target, faults.frozen(target), 2)


@scenario
def quorum_lost(lab):
    """false alarm: etcd without a quorum for 8 s, so that every API server is red"""
    members = lab.cluster.servers[1:]
    return strike(lab, "quorum-lost", None, faults.quorum_lost(lab.cluster, members), 8, excused_while=True)


@scenario
def port_closed(lab):
    """false alarm: an API server refuses new connections for 20 s and serves on"""
    target = lab.cluster.servers[1]
    return strike(lab, "port-closed", target, faults.port_closed(target), 20)


@scenario
def graceful_stop(lab):
    """false alarm: kube-apiserver says it is shutting down and serves on for 20 s (--shutdown-delay-duration)"""
    target = lab.cluster.servers[2]
    target.api.stop()
    target.start_api("--shutdown-delay-duration=25s")
    wait_until(target.ready, f"{target.name} ready", 60)
    return strike(lab, "graceful-stop", target, faults.terminated(target), 30, serves_on=20, watch_lag=4)


@scenario
def quiet(lab):
    """no client at all: one TLS handshake per upstream (the time is set by --quiet-minutes)"""
    # Besides, every 30th probe proves that a fresh connection works; resumed, it costs the server no signature.
    result = Result("quiet")
    servers = lab.cluster.servers
    complaints = [handshake_errors(server) for server in servers]
    with Handshakes(lab.cluster.worker) as handshakes:
        with Kubelane(lab.cluster, lab.kubelane, "quiet") as kubelane:
            time.sleep(lab.quiet_seconds)
            if not kubelane.all_ready():
                result.problems.append(f"states at the end: {kubelane.states()}")
    for server, before in zip(servers, complaints):
        full = handshakes.full[server.address]
        if full != 1:
            result.problems.append(f"{server.name} did {full} full TLS handshakes, not 1")
        if handshakes.resumed[server.address] > lab.quiet_seconds / 20:
            result.problems.append(f"{server.name} did {handshakes.resumed[server.address]} resumed TLS handshakes")
        if handshake_errors(server) != before:
            result.problems.append(f"{server.name} logged TLS handshake errors")
    judge_exit(result, kubelane)
    result.note = (f"{lab.quiet_seconds / 60:g} min: {sum(handshakes.full.values())} full handshakes on "
                   f"{len(servers)} servers, {sum(handshakes.resumed.values())} resumed")
    return result


def handshake_errors(server):
    return server.api_log.read_text(errors="replace").count("TLS handshake error")
