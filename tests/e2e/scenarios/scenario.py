"""Traffic through a fault and its undoing, and the verdict."""

import time
from dataclasses import dataclass, field

from lab.clients import Traffic
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


def strike(lab, name, target, fault, seconds, *, silence=None, watch_lag=None, excused_while=False,
           lost_for=None, serves_on=None, meanwhile=None, **kubelane_options):
    """Runs traffic through a fault and its undoing, and judges.

    `silence` and `watch_lag` are the bounds of a server that is lost. Without a bound for silence nothing is lost:
    then no held connection may end while the fault lasts, or for `serves_on` seconds of it.
    `excused_while`: what began before the fault was undone may fail. `lost_for`: seconds from the fault on in which
    a write may be in the hands of a server that cannot serve it, though nothing shows that from outside TLS; by
    default those of a server that is lost at once. `meanwhile` gets the kubelane, during the fault.
    """
    result = Result(name)
    with Kubelane(lab.cluster, lab.kubelane, name, **kubelane_options) as kubelane:
        with Traffic(lab.cluster, bystander(lab, target)) as traffic:
            time.sleep(SETTLE)
            if target and target.connections() < 3:  # kubelane's own and two of clients
                result.problems.append(f"{target.name} held {target.connections()} connections: nothing to lose")
            struck = time.monotonic()
            with fault:
                in_effect = time.monotonic()
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
        lost_until = in_effect if lost_for is None else struck + lost_for
        may_be_lost = silence is not None or lost_for is not None
        return may_be_lost and command.kind != "read" and command.began < lost_until and struck < command.ended

    judge_commands(result, traffic, struck, excused)
    judge_held(result, traffic, silence, watch_lag, struck, float("inf") if serves_on is None else struck + serves_on)
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
