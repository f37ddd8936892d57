"""Runs every command of deploy/README.md, where it says and in its order.

A fenced block is `sh WHERE` (control, or a guest), `yaml control PATH` (a file to write) or `ini control PATH` (lines to
add under their group). A block of any other kind, or an event that is not known here, is a mistake.
"""

import re
import shutil
from dataclasses import dataclass

from lab import package
from lab.certificates import Authority
from lab.process import wait_until
from stage import HERE, SOURCE

DOCUMENT = SOURCE / "deploy/README.md"
PACKAGES = ("0.1.0", "0.1.1")
FLEET = ["w1", "w2", "w3"]
STUB = {path.name for path in (HERE / "kubespray").glob("*.yml")}


@dataclass
class Step:
    line: int
    kind: str   # sh, yaml, ini; or event
    where: str
    path: str
    text: str


def steps(document):
    """All blocks and events, in their order."""
    found, lines, i = [], document.splitlines(), 0
    while i < len(lines):
        event = re.fullmatch(r"<!-- lab: (.+) -->", lines[i])
        if event:
            found.append(Step(i + 1, "event", "", "", event[1]))
        elif lines[i].startswith("```"):
            kind, where, path = (*lines[i][3:].split(), "", "", "")[:3]
            end = lines.index("```", i + 1)
            found.append(Step(i + 1, kind, where, path, "\n".join(lines[i + 1:end]) + "\n"))
            i = end
        i += 1
    return found


def run_all(lab, result):
    """Every command of deploy/README.md does what it says, in the order of the document."""
    lab.begin_anew(FLEET)
    lab.write_inventory(FLEET, control_planes=("cp1", "cp2"))
    prepare(lab)
    try:
        blocks, commands = run_steps(lab, result)
    finally:
        serve_with(lab, lab.cluster.authority)
    note_stub(lab, result, f"{blocks} blocks, {commands} lines")
    result.expect(blocks > 10, f"only {blocks} blocks were found")


def run_steps(lab, result):
    """Until one fails, as what follows builds on it. How many blocks were run, and lines in them."""
    run = []
    for step in steps(DOCUMENT.read_text()):
        before = len(result.problems)
        RUN[step.kind](lab, result, step)
        run += [step.text] if step.kind == "sh" else []
        if len(result.problems) > before:
            break
    return len(run), sum(text.count("\n") for text in run)


def note_stub(lab, result, counts):
    """Says which commands were kubespray's, whose playbooks are a stub."""
    words = [call.split() for call in (lab.checkout / "calls").read_text().splitlines()]
    stub = [" ".join(word for word in call if word != "-b") for call in words
            if any(word in STUB for word in call)]
    result.notes.append(f"{counts}; kubespray's playbooks, which are a stub here, were called: {', '.join(stub)}")
    result.expect(len({call.split()[0] for call in stub}) >= 4, f"the stub was called too seldom: {stub}")


def prepare(lab):
    """What the document takes for granted: kubelane's sources at home with two packages, kubectl's credentials."""
    home = lab.folder
    packed = home / "kubelane/build/release/package"
    packed.mkdir(parents=True, exist_ok=True)
    for version in PACKAGES:
        package.pack(lab.kubelane.parent, packed, version)
    for name in ("deploy", "docs"):
        (home / "kubelane" / name).unlink(missing_ok=True)
        (home / "kubelane" / name).symlink_to(SOURCE / name)
    (home / ".kube").mkdir(exist_ok=True)
    (home / ".kube/config").write_text((lab.cluster.folder / "10.77.0.11.kubeconfig").read_text())
    shutil.rmtree(lab.checkout / "kubelane")


def run_sh(lab, result, step):
    script = ["sh", "-euc", step.text]
    if step.where == "control":
        done = lab.on_control_host(*script)
    elif step.where in lab.guests:
        done = lab.guests[step.where].try_run(*script, limit=120)
    else:
        return result.expect(False, f"line {step.line}: nobody is called {step.where}")
    lab.runs += 1
    (lab.logs / f"play-{lab.runs:03}.log").write_text(f"line {step.line}, on {step.where}\n{step.text}\n{done.stdout}")
    result.expect(done.returncode == 0, f"line {step.line}, on {step.where}: exit {done.returncode}: "
                                        f"{done.stdout.strip()[-700:]}")


def write_yaml(lab, result, step):
    if step.where != "control" or not step.path:
        return result.expect(False, f"line {step.line}: a yaml block is `yaml control PATH`")
    (lab.checkout / step.path).write_text(step.text)


def add_ini(lab, result, step):
    """Under the header that is its first line, at the end of that group."""
    path = lab.checkout / step.path
    header, *added = step.text.splitlines()
    head, found, tail = path.read_text().partition(header + "\n")
    group, gap, rest = tail.partition("\n\n")
    result.expect(found, f"line {step.line}: the inventory has no {header}")
    path.write_text(head + found + "\n".join([group, *added]) + gap + rest)


def do_event(lab, result, step):
    if step.text not in EVENTS:
        return result.expect(False, f"line {step.line}: no event is called {step.text}")
    EVENTS[step.text](lab)


def refuse(lab, result, step):
    result.expect(False, f"line {step.line}: nobody runs a block of kind {step.kind!r}")


class Kinds(dict):
    def __missing__(self, kind):
        return refuse


RUN = Kinds(sh=run_sh, yaml=write_yaml, ini=add_ini, event=do_event)


def kill(lab):
    lab.cluster.servers[1].api.kill()
    wait_until(lambda: lab.guests["w1"].states().get("cp2", ("",))[0] == "refused", "w1: cp2 is refused", 20)


def start(lab):
    lab.cluster.servers[1].start_api()
    lab.cluster.wait_ready(90)


def make_new_ca(lab):
    lab.new_authority = Authority(lab.folder, "new-ca")
    for name, authority in (("old", lab.cluster.authority), ("new", lab.new_authority)):
        (lab.checkout / f"ca-{name}.crt").write_text(authority.certificate.read_text())


def serve_with_new_ca(lab):
    serve_with(lab, lab.new_authority)
    (lab.checkout / "ssl/ca.crt").write_text(lab.new_authority.certificate.read_text())  # for those who join
    wait_until(lambda: {state for state, _ in lab.guests["w1"].states().values()} == {"ready"}, "w1: all ready", 90)


def serve_with(lab, authority):
    """The API servers start anew, with certificates of that authority."""
    for server in lab.cluster.servers:
        certificate, key = server.serving_certificate(authority)
        server.api.stop()
        server.start_api(certificate=certificate, key=key)
    for server in lab.cluster.servers:  # the laboratory's own client may not verify them
        wait_until(lambda: accepts(server), f"{server.name}: accepts", 60)


def accepts(server):
    try:
        server.host.connect(server.address, 6443, 1).close()
        return True
    except OSError:
        return False


def run_haproxy(lab):
    guest = lab.guests["w3"]
    guest.wipe()
    lab.run_proxy(guest, "haproxy")
    if hasattr(lab, "new_authority"):
        guest.write("/etc/kubernetes/ssl/ca.crt", lab.new_authority.certificate.read_text())
    wait_until(lambda: guest.holder() == "haproxy", "w3: haproxy on its port", 20)


EVENTS = {"kill cp2": kill, "start cp2": start, "make a new CA": make_new_ca,
          "serve with the new CA": serve_with_new_ca, "run haproxy on w3": run_haproxy}
