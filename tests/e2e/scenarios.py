"""What happens to a worker's clients, fault by fault. Each scenario runs a kubelane of its own, on its defaults."""

import time
from contextlib import nullcontext
from dataclasses import dataclass, field

from lab import faults
from lab.certificates import Authority
from lab.clients import Traffic
from lab.handshakes import Handshakes
from lab.process import wait_until
from lab.proxy import Kubelane

SETTLE = 4  # seconds of traffic before the fault and after the recovery
COMMAND_LIMIT = 10  # the kubelet's own limit for one request
SCENARIOS = {}


@dataclass
class Result:
    name: str
    commands: int = 0
    failed: int = 0         # of those that must not
    caught: int = 0         # failed, but excused: see the scenario
    slowest: float = 0      # command from the fault on
    watch_lag: float = 0    # from a confirmed creation until the last of the watches saw it
    silence: float = 0      # longest on a held connection
    ended: int = 0          # held connections ended although no server had to go
    note: str = ""
    problems: list = field(default_factory=list)


class OutOfTime(Exception):
    """The run took longer than its limit."""


@dataclass
class Lab:
    folder: object  # for keys and data
    logs: object    # what is kept on failure
    kubelane: str
    quiet_seconds: float
    deadline: float  # CLOCK_MONOTONIC; nothing begins after it
    cluster: object = None

    def check_time(self):
        if time.monotonic() > self.deadline:
            raise OutOfTime("the run took longer than its limit")


def scenario(function):
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


# A server is lost. What has begun since must not fail, what was there must come back in time.

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
    # It takes two seconds for each red answer: its own time-out towards etcd.
    return strike(lab, "etcd-killed", target, faults.etcd_killed(target), 20, silence=1.5, watch_lag=12)


@scenario
def rolling(lab):
    """the kube-apiservers restarted one after the other, each down for 8 s"""
    def restart_each(kubelane):
        for server in lab.cluster.servers:
            with faults.terminated(server):
                time.sleep(8)
            recover(lab, kubelane)

    return strike(lab, "rolling", None, nullcontext(), 0, silence=1.5, watch_lag=4, meanwhile=restart_each)


@scenario
def impostor(lab):
    """kube-apiserver comes back with a certificate of another authority"""
    target = lab.cluster.servers[2]
    other = Authority(lab.cluster.folder, "other-ca")

    def recognised(kubelane):
        wait_until(lambda: kubelane.states().get(target.name) == "impostor", f"{target.name} is an impostor", 20)

    return strike(lab, "impostor", target, faults.impostor(target, other), 10, silence=1.5, watch_lag=4,
                  meanwhile=recognised)


# Nothing is lost. No held connection may end.

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
    """false alarm: 1 % of the worker's packets lost for a minute"""
    return strike(lab, "loss", None, faults.lossy(lab.cluster.worker, 1), 60)


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


def strike(lab, name, target, fault, seconds, *, silence=None, watch_lag=None, excused_while=False,
           serves_on=None, meanwhile=None):
    """Runs traffic through a fault and its undoing, and judges.

    `silence` and `watch_lag` are the bounds of a server that is lost. Without a bound for silence nothing is lost:
    then no held connection may end while the fault lasts, or for `serves_on` seconds of it.
    `excused_while`: what began before the fault was undone may fail.
    """
    result = Result(name)
    with Kubelane(lab.cluster, lab.kubelane, name) as kubelane:
        with Traffic(lab.cluster, bystander(lab, target)) as traffic:
            time.sleep(SETTLE)
            if target and target.connections() < 3:  # kubelane's own and two of clients
                result.problems.append(f"{target.name} held {target.connections()} connections: nothing to lose")
            struck = time.monotonic()
            with fault:
                if meanwhile:
                    attempt(result, lambda: meanwhile(kubelane))
                time.sleep(max(0, struck + seconds - time.monotonic()))
            undone = time.monotonic()
            attempt(result, lambda: recover(lab, kubelane))
            time.sleep(SETTLE)
        attempt(result, lambda: judge_resets(result, kubelane, expected=silence is not None or serves_on))
    judge_exit(result, kubelane)

    def excused(command):
        if excused_while:
            return command.began < undone and command.ended > struck
        # In flight on a server at its end: client-go repeats reads, but a write or half a long answer nobody can.
        return silence is not None and command.kind != "read" and command.began < struck < command.ended

    judge_commands(result, traffic, struck, excused)
    judge_held(result, traffic, silence, watch_lag, struck, struck + serves_on if serves_on else float("inf"))
    return result


def bystander(lab, target):
    return next(server for server in lab.cluster.servers if server is not target)


def attempt(result, step):
    """What goes wrong at this step is a finding about kubelane, not the end of the run."""
    try:
        step()
    except (OSError, TimeoutError, ValueError) as error:
        result.problems.append(str(error))


def recover(lab, kubelane):
    lab.cluster.wait_ready(60)
    wait_until(kubelane.all_ready, "kubelane: every upstream ready again", 60)


def judge_resets(result, kubelane, expected):
    resets = kubelane.metric("kubelane_connections_reset_total")
    if resets and not expected:
        result.problems.append(f"kubelane counts {resets:g} connections reset")


def judge_exit(result, kubelane):
    if kubelane.exit_status:
        result.problems.append(f"kubelane ended with status {kubelane.exit_status}")


def judge_commands(result, traffic, struck, excused):
    result.commands = len(traffic.commands)
    for command in traffic.commands:
        if command.ended > struck and not excused(command):
            result.slowest = max(result.slowest, command.ended - max(command.began, struck))
        if command.error and excused(command):
            result.caught += 1
        elif command.error:
            result.failed += 1
            result.problems.append(f"{command.kind} begun {command.began - struck:+.1f} s from the fault failed "
                                   f"after {command.ended - command.began:.1f} s: {command.error[-160:]}")
    if result.slowest > COMMAND_LIMIT:
        result.problems.append(f"a command took {result.slowest:.1f} s, more than {COMMAND_LIMIT}")
    if result.commands < 10:
        result.problems.append(f"only {result.commands} commands ran")


def judge_held(result, traffic, silence, watch_lag, struck, until):
    result.silence = traffic.longest_silence()
    result.watch_lag = traffic.watch_lag()
    if silence is None:
        ends = [how for when, how in traffic.held_ends() if when < until]
        result.ended = len(ends)
        if ends:
            result.problems.append(f"{len(ends)} held connections ended: {', '.join(sorted(set(ends)))}")
    elif result.silence > silence:
        result.problems.append(f"a held connection was silent for {result.silence:.1f} s, more than {silence}")
    if watch_lag is not None and result.watch_lag > watch_lag:
        result.problems.append(f"a watch was {result.watch_lag:.1f} s behind, more than {watch_lag}")
