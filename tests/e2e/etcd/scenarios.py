"""One function a scenario; the first line of its docstring is what `./dev e2e etcd --list` shows."""

import pathlib
import subprocess
import threading
import time
from contextlib import contextmanager

from bench import environment_without
from cluster import PEER_PORT
from lab import faults
from lab.certificates import Authority
from lab.network import sh
from lab.process import wait_until
from runbook import scale_in, whole_runbook

SHIFTED = pathlib.Path(__file__).with_name("shifted")
OFF = 300  # seconds that a wrong clock is off


def healthy(bench):
    """three and five members, all well; one endpoint is enough to find the others"""
    for size, spare in ((3, 1), (5, 2)):
        cluster = bench.start(size)
        leader = cluster.leader()
        with bench.counting():
            for given in (cluster.members, cluster.members[:1], [*cluster.members, cluster.members[0]]):
                answer = bench.expect(f"{size} members", verdict="healthy", exit=0, given=given)
                bench.check(answer.json["quorum"]["spare"] == spare, f"spare: {answer.json['quorum']}")
                bench.check(set(answer.states().values()) == {"up"}, f"states: {answer.states()}")
            bench.check(answer.json["leader"] == leader.name, f"{answer.json['leader']} leads, not {leader.name}")
            text = bench.ask()
            bench.check(f"{size} of {size} up: quorum survives" in text.text, text.text)
            for follower in (m for m in cluster.members if m is not leader):
                bench.decide("--without", follower.name, safe=True)
                bench.decide("--remove", follower.name, safe=True)
            bench.decide("--without", leader.name, safe=False, because="it leads")
            bench.decide("--remove", leader.name, safe=False, because="it leads")
            for options in (["--domains", "a=e1,b=e2+e3"], ["--inventory", inventory(bench)]):
                answer = bench.ask("--json", *options)
                survives = {d["name"]: d["survives"] for d in answer.json["domains"]}
                bench.check(survives == {"a": True, "b": size == 5}, f"{options}: {answer.text} {answer.error}")


def inventory(bench):
    """As kubespray takes it; its hosts have other names than etcd's members, and the same addresses."""
    rows = [f"node{i} ip={m.address} zone={'a' if i == 1 else 'b'}"
            for i, m in enumerate(bench.cluster.members[:3], 1)]
    path = bench.folder / "inventory.ini"
    path.write_text("\n".join(["[kube_control_plane]", *rows, "[etcd]", "node1", "node2", "node3", "[kube_node]", "node1",
                               "[k8s_cluster:children]", "kube_control_plane", "kube_node", ""]))
    return path


def one_killed(bench):
    """one of three and one of five: degraded, and no other may go"""
    for size in (3, 5):
        cluster = bench.start(size)
        dead, other = cluster.followers()[:2]
        dead.process.kill()
        with bench.counting():
            answer = bench.expect("one dead", verdict="degraded", exit=1, rules=[f"member-down {dead.name}"])
            bench.check("connection refused" in answer.member(dead.name)["cause"], answer.text)
            bench.decide("--without", other.name, safe=False, because=f"{dead.name} is down")
            bench.decide("--remove", other.name, safe=False, because=f"{dead.name} is down")
            bench.decide("--remove", dead.name, safe=True)
            bench.decide("--without", dead.name, safe=True)


def two_killed(bench):
    """two of three: no quorum; two of five: not one more"""
    for size, verdict, exit in ((3, "no_quorum", 2), (5, "degraded", 1)):
        cluster = bench.start(size)
        dead = cluster.followers()[:2]
        for member in dead:
            member.process.kill()
        alive = next(m for m in cluster.members if m.process.running())
        for _ in range(8):  # at once, and while the one that is left gives its leadership up
            answer = bench.ask("--json")
            bench.check((answer.verdict, answer.exit) == (verdict, exit), answer.text)
            time.sleep(0.2)
        bench.decide("--without", alive.name, safe=False, exit=exit)
        bench.decide("--remove", dead[0].name, safe=False, exit=exit)


def all_killed(bench):
    """nobody answers"""
    cluster = bench.start(3)
    for member in cluster.members:
        member.process.kill()
    bench.expect("all dead", verdict="no_answer", exit=3, rules=["endpoint-silent"] * 3)


def frozen(bench):
    """SIGSTOP: a follower, the leader, two of three; its host still accepts connections"""
    cluster = bench.start(3)
    follower = cluster.followers()[0]
    with faults.suspended(follower.process):
        answer = bench.expect("a frozen follower", verdict="degraded", exit=1, rules=[f"member-down {follower.name}"])
        bench.check("timed out" in answer.member(follower.name)["cause"], answer.text)
    cluster.wait_healthy()
    leader = cluster.leader()
    with faults.suspended(leader.process):
        first = bench.ask("--json")
        bench.check(first.exit == 1 and f"member-down {leader.name}" in first.rules(), first.text)
        wait_until(lambda: bench.ask("--json").json["settled"], "another leader", 10)
        bench.expect("after the election", verdict="degraded", exit=1, rules=[f"member-down {leader.name}"])
    cluster.wait_healthy()
    pair = cluster.followers()
    with faults.suspended(pair[0].process), faults.suspended(pair[1].process):
        bench.check(bench.ask("--json").exit == 2, "two frozen: not 2")
        time.sleep(1)
        bench.check(bench.ask("--json").exit == 2, "two frozen, later: not 2")
    cluster.wait_healthy()
    bench.expect("thawed", verdict="healthy", exit=0)


def cut_off(bench):
    """a pulled cable; a member that its peers do not reach; members that reach nobody"""
    cluster = bench.start(3)
    follower = cluster.followers()[0]
    with faults.unplugged(follower.host):
        answer = bench.expect("a dark host", verdict="degraded", exit=1, rules=[f"member-down {follower.name}"])
        bench.check("timed out" in answer.member(follower.name)["cause"] or "no route" in answer.text, answer.text)
    cluster.wait_healthy()
    follower = cluster.followers()[0]
    with without_peers(follower):
        wait_until(lambda: follower.status().get("leader", 0) == 0, "no leader there", 10)
        bench.expect("without its peers", verdict="degraded", exit=1, rules=[f"member-cut-off {follower.name}"])
    cluster.wait_healthy()
    with without_peers(*cluster.members):
        wait_until(lambda: all(m.status().get("leader", 0) == 0 for m in cluster.members), "no leader at all", 10)
        answer = bench.expect("nobody reaches anybody", verdict="no_quorum", exit=2, rules=["no-leader"])
        bench.check("3 of 3 answer, and none has a leader" in bench.ask().text, answer.text)
    cluster.wait_healthy()


def leader_change(bench):
    """the leader moves all the time; the leader dies, and until another is there"""
    cluster = bench.start(5)
    stop = threading.Event()
    mover = threading.Thread(target=move_leader, args=(cluster, stop))
    mover.start()
    try:
        for _ in range(10):
            answer = bench.ask("--json")
            bench.check(answer.exit in (0, 1), f"while the leader moves: {answer.exit} {answer.text}")
            bench.check(answer.json["quorum"]["spare"] >= 0, f"while the leader moves: {answer.text}")
    finally:
        stop.set()
        mover.join()
    leader = cluster.leader()
    leader.process.kill()
    deadline, settled = time.monotonic() + 10, False
    while not settled and time.monotonic() < deadline:
        answer = bench.ask("--json")
        settled = answer.json.get("settled", False)
        bench.check(answer.exit == 1 or not settled and answer.exit == 2, f"in the election: {answer.text}")
    bench.check(settled and answer.json["leader"] != leader.name, f"no other leader: {answer.text}")
    bench.note = f"{bench.asked} answers, none wrong"


def learner(bench):
    """one that never started, one that runs: it does not vote, and may go"""
    cluster = bench.start(3)
    new = cluster.add_learner()
    with bench.counting(cluster.members[:3]):
        answer = bench.expect("a learner", verdict="healthy", exit=0)
        bench.check(answer.member(new.name)["role"] == "learner", answer.text)
        bench.check(answer.json["quorum"]["members"] == 3, answer.text)
        bench.decide("--remove", new.name, safe=True)
        bench.decide("--without", new.name, safe=True)
    new.process.kill()
    bench.expect("a dead learner", verdict="degraded", exit=1, rules=[f"member-down {new.name}"])
    new.run()
    wait_until(lambda: cluster.etcdctl("member", "promote", new.id, check=False).returncode == 0, "promoted", 20)
    answer = bench.expect("promoted", verdict="healthy", exit=0, rules=["even-members"])
    bench.check(answer.json["quorum"]["members"] == 4, answer.text)
    cluster.wait_healthy()
    cluster.etcdctl("member", "remove", new.id, endpoints=cluster.members[:3])
    cluster.members.remove(new)
    wait_until(lambda: not new.process.running(), "it ends by itself", 10)
    again = cluster.new_member()
    add = ("member", "add", again.name, f"--peer-urls={again.peer_url}")
    wait_until(lambda: cluster.etcdctl(*add, endpoints=cluster.members[:3], check=False).returncode == 0, "added", 20)
    identity = next(f"{m['ID']:x}" for m in cluster.members_listed() if not m.get("name"))
    bench.expect("one that never started", verdict="degraded", exit=1, given=cluster.members[:3],
                 rules=[f"member-not-started {identity}", "even-members"])
    bench.decide("--remove", identity, safe=True)


def no_space(bench):
    """the NOSPACE alarm: writes are refused, and nobody goes before that is over"""
    cluster = bench.start(3, "--quota-backend-bytes", str(256 * 1024))
    for number in range(40):
        if cluster.etcdctl("put", f"key{number}", "x" * 16384, check=False).returncode:
            break
    followers = cluster.followers()
    with bench.counting():
        answer = bench.ask("--json")
        bench.check(answer.exit == 1 and answer.rules()[0].startswith("alarm "), answer.text)
        for follower in followers:
            bench.decide("--without", follower.name, safe=False, because="NOSPACE")
    bench.check(cluster.etcdctl("put", "one", "more", check=False).returncode != 0, "a write was taken")


def removed_runs(bench):
    """removed while it was cut off: it still runs, and is no member"""
    cluster = bench.start(3)
    gone = cluster.followers()[0]
    others = [m for m in cluster.members if m is not gone]
    identity = gone.id
    with without_peers(gone):
        remove = ("member", "remove", identity)
        wait_until(lambda: cluster.etcdctl(*remove, endpoints=others, check=False).returncode == 0, "removed", 20)
        wait_until(lambda: gone.status().get("leader", 0) == 0, "it has no leader", 10)
        for given in (others + [gone], [gone], [gone] + others):
            answer = bench.expect(f"asked of {[m.name for m in given]}", given=given, verdict="degraded", exit=1,
                                  rules=[f"removed-member-runs {identity}", "even-members"])
            bench.check(sorted(answer.states()) == sorted(m.name for m in others), answer.text)
        bench.expect("asked of the others", given=others, verdict="healthy", exit=0, rules=["even-members"])


def clocks_apart(bench):
    """one member's clock is five minutes slow, one's is fast"""
    cluster = bench.start(5)
    slow, fast = cluster.followers()[:2]
    for member, seconds in ((slow, -OFF), (fast, OFF)):
        member.process.kill()
        member.run(launcher=[SHIFTED, str(seconds)])
    cluster.wait_healthy()
    follower = next(m for m in cluster.followers() if m not in (slow, fast))
    with bench.counting():
        answer = bench.expect("two wrong clocks", verdict="degraded", exit=1,
                              rules=[f"clocks-apart {slow.name}", f"clocks-apart {fast.name}"])
        for member, seconds in ((slow, -OFF), (fast, OFF)):
            said = answer.member(member.name)["clock_apart_ms"] / 1000
            bench.check(abs(said - seconds) < 5, f"{member.name} is {seconds} s off, said {said}")
        bench.decide("--without", follower.name, safe=True)
    bench.note = "the vDSO of those two processes was rewritten: libfaketime does nothing to a Go program"


def wrong_questions(bench):
    """each mistake is named with what would be right"""
    cluster = bench.start(3)
    first = cluster.members[0]
    stranger = Authority(bench.folder, "stranger")
    foreign, foreign_key = stranger.issue("foreign", "/CN=foreign", [], usage="clientAuth")
    cases = [
        (3, "write https://", ["--endpoints", f"http://{first.address}:2379"]),
        (3, "a peer URL (2380) is no client URL", ["--endpoints", first.peer_url]),
        (3, "--cacert is to be the CA of etcd", ["--cacert", stranger.certificate]),
        (3, "--cert is not of a CA that it trusts", ["--cert", foreign, "--key", foreign_key]),
        (64, "no member is called e9; there are e1, e2, e3", ["--without", "e9"]),
        (64, "no member is called e9", ["--domains", "a=e9"]),
        (64, "No such file or directory", ["--cacert", bench.folder / "none.crt"]),
        (64, "holds no certificate", ["--cacert", cluster.key]),
        (64, "key does not fit certificate", ["--cert", foreign, "--key", cluster.key]),
        (64, "is no endpoint: write https://", ["--endpoints", f"{first.address}:2379"]),
    ]
    for exit, words, options in cases:
        answer = bench.ask(*map(str, options))
        bench.check(answer.exit == exit and words in answer.text + answer.error,
                    f"{options}: {answer.exit}, no `{words}` in {answer.text}{answer.error}")
    anonymous = bench.ask(environment=environment_without(cluster, "ETCDCTL_CERT", "ETCDCTL_KEY"))
    bench.check(anonymous.exit == 3 and "give --cert and --key" in anonymous.text, anonymous.text)
    odd_certificates(bench, cluster)


def odd_certificates(bench, cluster):
    """One for another name; one with which the gateway cannot be a client of its own server."""
    first = cluster.members[0]
    for name, alternatives, usage, words in (
            ("elsewhere", ["DNS:elsewhere"], "serverAuth,clientAuth", "ask it by a name or address that is in"),
            ("server-only", [f"IP:{first.address}"], "serverAuth", "needs clientAuth besides serverAuth")):
        certificate, key = cluster.authority.issue(name, f"/CN={name}", alternatives, usage=usage)
        first.process.kill()
        first.change(CERT_FILE=certificate, KEY_FILE=key)
        first.run()
        wait_until(lambda: accepts(first), "it serves", 10)
        answer = bench.ask("--json", given=[first])
        bench.check(words in answer.text, f"{name}: no `{words}` in {answer.text}")


def accepts(member):
    try:
        member.cluster.operator.connect(member.address, 2379, 1).close()
        return True
    except OSError:
        return False


@contextmanager
def without_peers(*members):
    """Clients reach them, their peers do not: packets are dropped in silence."""
    for member in members:
        rules = "".join(f"add rule inet kl {chain} tcp {port} {PEER_PORT} drop\n"
                        for chain in ("in", "out") for port in ("sport", "dport"))
        sh("ip", "netns", "exec", member.host.namespace, "nft", "-f", "-", input=(
            "table inet kl { chain in { type filter hook input priority 0; }; "
            f"chain out {{ type filter hook output priority 0; }}; }}\n{rules}"))
    try:
        yield
    finally:
        for member in members:
            sh("ip", "netns", "exec", member.host.namespace, "nft", "delete", "table", "inet", "kl")


def move_leader(cluster, stop):
    """From member to member, as fast as etcd does it."""
    turn = 0
    while not stop.is_set():
        turn += 1
        target = cluster.members[turn % len(cluster.members)]
        subprocess.run(cluster.operator.command("etcdctl", "move-leader", target.id), env=cluster.environment(),
                       capture_output=True, timeout=30)


SCENARIOS = {
    "healthy": healthy, "one-killed": one_killed, "two-killed": two_killed, "all-killed": all_killed,
    "frozen": frozen, "cut-off": cut_off, "leader-change": leader_change, "learner": learner, "no-space": no_space,
    "removed-runs": removed_runs, "clocks-apart": clocks_apart, "wrong-questions": wrong_questions,
    "scale-in": scale_in, "runbook": whole_runbook,
}
