"""What a scenario works with: clusters, kubelane to ask about them, and what came of it."""

import collections
import json
import os
import subprocess
import time

from cluster import Cluster
from lab import network

LIMIT = 3.0  # seconds for a right answer
QUESTIONS = {"MemberList", "Status", "Alarm"}  # Alarm: with the action GET, the one kubelane has


class Answer:
    def __init__(self, done, seconds):
        self.exit, self.seconds = done.returncode, seconds
        self.text, self.error = done.stdout, done.stderr
        self.json = json.loads(done.stdout) if done.stdout.startswith("{") else {}

    @property
    def verdict(self):
        return self.json.get("verdict")

    def rules(self):
        """`rule member` of each problem."""
        return [f"{p['rule']} {p['member']}".strip() for p in self.json["problems"]]

    def member(self, name):
        return next(m for m in self.json["members"] if m["name"] == name)

    def states(self):
        return {m["name"]: m["state"] for m in self.json["members"]}


class Bench:
    def __init__(self, name, kubelane, folder, logs):
        self.name, self.kubelane, self.folder, self.logs = name, kubelane, folder, logs
        self.problems, self.note = [], ""
        self.asked, self.slowest, self.calls, self.writes = 0, 0.0, 0, 0
        self.cluster, self.clusters = None, 0
        folder.mkdir()
        logs.mkdir()

    def start(self, size, *options):
        """A cluster of this many members, all healthy."""
        self.end()
        self.clusters += 1
        self.cluster = Cluster(self.folder / f"cluster{self.clusters}", self.logs, size)
        self.cluster.start(*options)
        return self.cluster

    def end(self):
        if self.cluster:
            self.cluster.stop()
            self.cluster = None
        network.remove_all()  # also what a cluster that could not be made has left

    def check(self, claim, what):
        if not claim:
            self.problems.append(what)

    def ask(self, *options, given=None, environment=None, program=None):
        """Asks kubelane, of all members unless some are given; the answer has to come in time."""
        command = self.cluster.operator.command(self.kubelane, "etcd", "status", *options)
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                              env=environment or self.cluster.environment(given))
        answer = Answer(done, time.monotonic() - began)
        self.asked += 1
        self.slowest = max(self.slowest, answer.seconds)
        self.check(answer.seconds < LIMIT, f"{' '.join(map(str, options))} took {answer.seconds:.2f} s")
        return answer

    def expect(self, what, *options, verdict, exit, rules=(), given=None):
        """Asks for JSON and compares; `rules` are the problems that have to be named, and no others."""
        answer = self.ask("--json", *options, given=given)
        if not answer.json:
            self.problems.append(f"{what}: no JSON: {answer.text} {answer.error}")
            return answer
        got = (answer.verdict, answer.exit, sorted(answer.rules()))
        wanted = (verdict, exit, sorted(rules))
        self.check(got == wanted, f"{what}: {got} instead of {wanted}; {answer.text}")
        return answer

    def decide(self, option, name, *, safe, because="", exit=None):
        """--remove or --without; `because` is part of a reason."""
        answer = self.ask("--json", option, name)
        decision = answer.json.get("decision") or {}
        reasons = decision.get("reasons", [])
        wanted = exit if exit is not None else 0 if safe else 1
        self.check(decision.get("safe") is safe and answer.exit == wanted,
                   f"{option} {name}: {answer.exit}, {decision.get('safe')}, {reasons or answer.error}")
        self.check(not because or any(because in reason for reason in reasons),
                   f"{option} {name}: no reason has `{because}`: {reasons}")
        return answer

    def counting(self, members=None):
        return Counting(self, members or [m for m in self.cluster.members if m.process.running()])


class Counting:
    """In its `with` block nobody but kubelane talks to these members; their calls are counted."""

    def __init__(self, bench, members):
        self.bench, self.members = bench, members

    def total(self):
        result = collections.Counter()
        for member in self.members:
            result.update(member.calls())
        return result

    def revision(self):
        return max(member.status()["header"]["revision"] for member in self.members)

    def __enter__(self):
        self.revision_before = self.revision()
        self.before = self.total()

    def __exit__(self, kind, *_):
        if kind:
            return
        served = self.total() - self.before
        self.bench.calls += sum(served.values())
        writes = {name: count for name, count in served.items() if name not in QUESTIONS}
        self.bench.writes += sum(writes.values())
        self.bench.check(not writes, f"calls that are no questions: {writes}")
        self.bench.check(self.revision() == self.revision_before, "the revision changed")


def environment_without(cluster, *names):
    return {name: value for name, value in cluster.environment().items() if name not in names} | {
        "HOME": os.environ.get("HOME", "/")}
