"""Follows deploy/etcd.md on a real cluster: every command block of the page, as it is written there."""

import pathlib
import re
import subprocess

from lab.process import wait_until
from writer import Writer

PAGE = pathlib.Path(__file__).resolve().parents[3] / "deploy/etcd.md"
# Randomised between one and two of etcd's election time-outs; the rest is for a machine that does more than this.
ELECTION = 2 * 0.5 + 0.5

# Stands for systemd's on a member's host: the laboratory runs etcd, and is told what to do with it.
SYSTEMCTL = """#!/bin/sh
echo "$1" >"$LAB_FOLDER/order"
for i in $(seq 100); do [ -e "$LAB_FOLDER/order" ] || exit 0; sleep 0.1; done
exit 1
"""


class Page:
    """The blocks of the runbook: section -> (where, script), in order."""

    def __init__(self):
        self.sections, self.run_already = {}, set()
        title, block = "", None  # inside a block: (where, lines)
        for line in PAGE.read_text().splitlines():
            fence = re.match(r"```(\S*) ?(\S*)", line)
            if fence and block is None:
                block = (fence[2] or fence[1], [])
            elif fence:
                self.sections.setdefault(title, []).append((block[0], "\n".join(block[1]) + "\n"))
                block = None
            elif block is not None:
                block[1].append(line)
            elif heading := re.match(r"#+ (.*)", line):
                title = heading[1]

    def blocks(self):
        return {(title, i) for title, blocks in self.sections.items() for i in range(len(blocks))}

    def take(self, title, where=None):
        """The section's blocks, marked as run; of one place, unless all."""
        for i, (at, script) in enumerate(self.sections[title]):
            if where in (None, at):
                self.run_already.add((title, i))
                yield at, script


class Operator:
    """Runs blocks where they belong: on the operator's host, or on that of the member in question."""

    def __init__(self, bench, cluster, page):
        self.bench, self.cluster, self.page = bench, cluster, page
        self.tools = bench.folder / "tools"
        self.tools.mkdir()
        (self.tools / "kubelane").symlink_to(bench.kubelane)
        (self.tools / "systemctl").write_text(SYSTEMCTL)
        (self.tools / "systemctl").chmod(0o755)
        self.backups = bench.folder / "backups"
        self.backups.mkdir()

    def environment(self, member, endpoints=None, **more):
        values = self.cluster.environment(endpoints)
        values.update(PATH=f"{self.tools}:{values['PATH']}", BACKUPS=str(self.backups), LAB_FOLDER=str(self.tools),
                      **{name: str(value) for name, value in more.items()})
        if member:
            values.update(NAME=member.name, PEER_URL=member.peer_url, ETCD_ENV=str(member.environment_file),
                          ETCD_DATA=str(member.data), ETCD_NAME=member.name)
        return values

    def run(self, title, member=None, endpoints=None, **more):
        """The whole section, one block after the other."""
        for where, script in self.page.take(title):
            self.run_block(where, script, member, endpoints, **more)

    def run_block(self, where, script, member, endpoints=None, **more):
        host = self.cluster.operator if where == "operator" else member.host if member else self.cluster.operator
        shell = subprocess.Popen(host.command("bash", "-euo", "pipefail", "-c", script), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                                 env=self.environment(member, endpoints, **more))
        orders = self.tools / "order"
        wait_until(lambda: self.obey(orders, member) or shell.poll() is not None, f"{script!r} to end", 150, 0.05)
        text = shell.communicate()[0]
        with open(self.bench.logs / "runbook.log", "a") as log:
            log.write(f"$ {script}{text}\n")
        if shell.returncode:
            raise RuntimeError(f"exit status {shell.returncode} of {script!r}: {text[-1500:]}")
        return text

    def obey(self, orders, member):
        """What the block asked of systemctl; always false, for there may be more."""
        if orders.exists() and (verb := orders.read_text().strip()):
            if verb == "stop":
                member.process.stop()
            elif verb == "start":
                member.run()
            orders.unlink()
        return False


def scale_in(bench):
    """five to three by the runbook, the leader among them, while a writer counts"""
    cluster = bench.start(5)
    operator = Operator(bench, cluster, Page())
    with Writer(cluster) as writer:
        wait_until(lambda: writer.written > 50, "some writes", 20)
        for member in (cluster.leader(), cluster.followers()[0]):
            operator.run("Scale in", member)
            cluster.members.remove(member)
        done = writer.written
        wait_until(lambda: writer.written > done + 50, "more writes", 20)
    bench.expect("three are left", verdict="healthy", exit=0)
    judge_writes(bench, writer)


def judge_writes(bench, writer):
    bench.note = (f"{writer.written} writes, {writer.refused} tries refused, longest without one "
                  f"{writer.longest * 1000:.0f} ms")
    bench.check(writer.longest <= ELECTION, f"no write for {writer.longest:.2f} s, an election takes {ELECTION} s")
    bench.check(writer.written > 100, f"only {writer.written} writes")
    bench.check(writer.lost() == [], f"writes that are not there: {writer.lost()[:5]}")


def whole_runbook(bench):
    """every block of deploy/etcd.md, on a cluster that a writer uses"""
    cluster = bench.start(3)
    page = Page()
    operator = Operator(bench, cluster, page)
    operator.run("Set once", cluster.members[0])
    with Writer(cluster) as writer:
        wait_until(lambda: writer.written > 50, "some writes", 20)
        operator.run("Back up")
        for member in (cluster.leader(), cluster.followers()[0]):
            operator.run("Reboot", member)
        gate(bench, operator)
        for _ in range(2):
            scale_out(operator, cluster.new_member())
        for member in (cluster.leader(), cluster.followers()[0]):
            operator.run("Scale in", member)
            cluster.members.remove(member)
        dead = cluster.followers()[0]
        dead.process.kill()
        operator.run("Replace a dead one", dead)
        cluster.members.remove(dead)
        scale_out(operator, cluster.new_member())
    judge_writes(bench, writer)
    restore(bench, operator)
    missing = page.blocks() - page.run_already
    bench.check(not missing, f"blocks that nobody ran: {missing}")


def gate(bench, operator):
    """The command of the unit's ExecCondition=, as systemd would run it."""
    (_, unit), = operator.page.take("As a gate")
    command = re.search(r"^ExecCondition=/usr/bin/(.*)$", unit, re.M)[1]
    cluster = operator.cluster
    follower, other = cluster.followers()[:2]
    operator.run_block("operator", command, follower)
    other.process.kill()
    try:
        operator.run_block("operator", command, follower)
        bench.check(False, f"the gate let {follower.name} go while {other.name} was dead")
    except RuntimeError as error:
        bench.check("exit status 1 " in str(error) and "one at a time" in str(error), str(error))
    other.run()
    cluster.wait_healthy()


def scale_out(operator, new):
    cluster = operator.cluster
    old = [m for m in cluster.members if m is not new]
    new.write_environment("new", [new])  # as a host comes from its installation
    all_of_them = ",".join(f"{m.name}={m.peer_url}" for m in cluster.members)
    operator.run("Scale out", new, old, INITIAL_CLUSTER=all_of_them)


def restore(bench, operator):
    """What was written before the snapshot is there again, what came later is not."""
    cluster = operator.cluster
    cluster.etcdctl("put", "before", "yes")
    operator.run("Back up")
    cluster.etcdctl("put", "after", "yes")
    file = sorted(operator.backups.glob("etcd-*.db"))[-1]
    for member in cluster.members[1:]:
        member.process.kill()
    bench.check(bench.ask("--json").exit == 2, "two of three are gone, and there is a quorum")
    together = ",".join(f"{m.name}={m.peer_url}" for m in cluster.members)
    *steps, (where, check) = operator.page.take("Restore")
    for place, script in steps:  # each on every member, before the next one
        for member in cluster.members:
            operator.run_block(place, script, member, FILE=file, INITIAL_CLUSTER=together, TOKEN="restored")
    operator.run_block(where, check, None)
    bench.check(cluster.etcdctl("get", "before").stdout.split() == ["before", "yes"], "the snapshot is not there")
    bench.check(cluster.etcdctl("get", "after").stdout == "", "more than the snapshot is there")
