"""What a fleet goes through; each function's first line says what must hold."""

import hashlib
import json
import re
import time

import yaml  # Ansible brings it
from guests import MANIFESTS
from lab.kubelets import Kubelets
from lab.process import Process, wait_until
from stage import ADDRESSES, DEPLOY

FLEET = ["w1", "w2", "w3"]
CONFIG = "/etc/kubelane/config.yaml"
INSTALL = "kubelane/kubelane.yml"
ROLLBACK = "kubelane/rollback.yml"
SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


def succeed(result, play, what):
    result.expect(play.status == 0, f"{what}: {play.tail()}")
    return play.status == 0


def expect_unchanged(result, play, what):
    if succeed(result, play, what):
        result.expect(play.changed() == 0, f"{what}: changed={play.changed()}, not 0")


@scenario
def lint(lab, result):
    """ansible-lint, yamllint and a syntax check find nothing."""
    lab.make_checkout()
    lab.write_inventory(FLEET)
    for command in (["ansible-lint", "--offline"], ["yamllint", "."]):
        done = lab.on_control_host("sh", "-c", f"cd kubelane && {' '.join(command)}")
        result.expect(done.returncode == 0, f"{command[0]}: {done.stdout[-800:]}")
    for playbook in sorted(DEPLOY.glob("*.yml")):
        play = lab.play(f"kubelane/{playbook.name}", "--syntax-check")
        result.expect(play.status == 0, f"{playbook.name}: {play.output[-400:]}")


@scenario
def swap(lab, result):
    """Three workers go from nginx to kubelane and back; no client waits longer than a second, a second run changes nothing."""
    lab.begin_anew(FLEET)
    before = {name: files_of(lab.guests[name]) for name in FLEET}
    play = lab.play(INSTALL, "--check", "--diff")
    succeed(result, play, "--check --diff")
    for name in FLEET:
        result.expect(files_of(lab.guests[name]) == before[name], f"--check changed files of {name}")
        lab.expect_on(result, name, "nginx")
    with lab.load(FLEET) as loads:
        time.sleep(2)
        succeed(result, lab.play(INSTALL, "-e", "kubelane_serial=[1,2]"), "kubelane.yml")
        time.sleep(2)
    result.expect_gaps("nginx to kubelane", loads)
    for name in FLEET:
        lab.expect_on(result, name, "kubelane")
        result.expect(set(lab.guests[name].states()) == set(ADDRESSES), f"{name}: {lab.guests[name].states()}")
        result.expect(not lab.guests[name].exists(f"{MANIFESTS}/nginx-proxy.yml"), f"{name}: the manifest is still there")
    expect_unchanged(result, lab.play(INSTALL), "second run")
    expect_unchanged(result, lab.play(INSTALL, "--check", "--diff"), "--check --diff")
    with lab.load(FLEET) as loads:
        time.sleep(2)
        succeed(result, lab.play(ROLLBACK, "-e", "kubelane_serial=[1,2]"), "rollback.yml")
        time.sleep(2)
    result.expect_gaps("kubelane to nginx", loads)
    for name in FLEET:
        lab.expect_on(result, name, "nginx")
        left = files_of(lab.guests[name]) - before[name]
        result.expect(not left, f"{name}: left behind: {sorted(left)[:6]}")
    expect_unchanged(result, lab.play(ROLLBACK), "second rollback")


@scenario
def limit(lab, result):
    """--limit touches those nodes alone, and observe mode is a variable."""
    lab.begin_anew(FLEET)
    succeed(result, lab.play(INSTALL, "--limit", "w1", "-e", "kubelane_mode=observe"), "trial")
    lab.expect_on(result, "w1", "kubelane")
    for name in ("w2", "w3"):
        lab.expect_on(result, name, "nginx")
        result.expect(not lab.guests[name].exists("/usr/bin/kubelane"), f"{name} was touched")
    result.expect(config(lab, "w1")["failover"] == {"mode": "observe"}, f"w1: {config(lab, 'w1')}")
    succeed(result, lab.play(INSTALL), "act, on all")
    result.expect(config(lab, "w1")["failover"] == {"mode": "act"}, "w1 still observes")


@scenario
def air_gap(lab, result):
    """Nodes fetch the package from files_repo; one with another checksum is refused, and nothing is touched."""
    lab.begin_anew(["w1"])
    server = Process(lab.cluster.worker, ["python3", "-m", "http.server", "8000", "--directory", lab.package.parent],
                     lab.logs / "files.log")
    try:
        further = {"files_repo": f"http://{lab.cluster.worker.address}:8000", "kubelane_package": "",
                   "kubelane_version": lab.package.name.split("_")[1]}
        lab.write_inventory(["w1"], **further, kubelane_package_sha256="0" * 64)
        play = lab.play(INSTALL)
        result.expect(play.failed() == ["w1"] and "checksum" in play.output, f"a wrong checksum: {play.tail()}")
        lab.expect_on(result, "w1", "nginx")
        result.expect(not lab.guests["w1"].exists("/usr/bin/kubelane"), "it was installed")
        checksum = hashlib.sha256(lab.package.read_bytes()).hexdigest()
        lab.write_inventory(["w1"], **further, kubelane_package_sha256=checksum)
        succeed(result, lab.play(INSTALL), "kubelane.yml")
        lab.expect_on(result, "w1", "kubelane")
        expect_unchanged(result, lab.play(INSTALL), "second run")
    finally:
        server.stop()


@scenario
def no_server(lab, result):
    """If no API server answers, nothing is moved, nginx serves on, and the rollout stops."""
    lab.begin_anew(FLEET)
    lab.write_inventory(FLEET)
    inventory = lab.checkout / "inventory/mycluster/inventory.ini"
    inventory.write_text(re.sub(r" ip=10\.77\.0\.1(\d)", r" ip=10.77.0.9\1", inventory.read_text()))
    with lab.load(FLEET) as loads:
        play = lab.play(INSTALL, "-e", "kubelane_serial=[1,2]")
    result.expect_gaps("refused beforehand", loads)
    result.expect(play.status != 0 and list(play.hosts) and play.failed() == ["w1"], f"status {play.status}: {play.tail()}")
    for name in FLEET:
        lab.expect_on(result, name, "nginx")
    for name in ("w2", "w3"):
        result.expect(not lab.guests[name].exists("/usr/bin/kubelane"), f"the rollout went on to {name}")


@scenario
def failing_swap(lab, result):
    """If kubelane gets the port and is not ready, nginx comes back within a second, and the rollout stops."""
    lab.begin_anew(FLEET)
    guest = lab.guests["w1"]
    # Somebody else on the health port, so that kubelane cannot say that it is ready.
    manifest = f"{MANIFESTS}/nginx-proxy.yml"
    conf = "/etc/nginx/nginx.conf"
    guest.write(conf, guest.run("cat", conf).replace("listen 8081;", "listen 8082;"))
    guest.run("systemctl", "restart", "kubelet")
    guest.run("sh", "-c", f"mv {manifest} /root/m; sleep 1; pkill -x nginx; sleep 1; mv /root/m {manifest}")
    guest.run("systemd-run", "--unit=squatter", "python3", "-m", "http.server", "8081", "--bind", "127.0.0.1")
    wait_until(lambda: guest.holder() == "nginx" and guest.holder(8081) == "python3", "w1: nginx, and a squatter", 20)
    try:
        with lab.load(FLEET) as loads:
            play = lab.play(INSTALL, "-e", "kubelane_serial=[1,2]", "-e", "kubelane_swap_timeout=5")
            time.sleep(2)
    finally:
        guest.run("systemctl", "stop", "squatter")
    result.expect_gaps("forth and back", loads)
    result.expect(play.failed() == ["w1"], f"failed: {play.failed()}: {play.tail()}")
    result.expect("serves again" in play.output, f"not said: {play.tail()}")
    for name in FLEET:
        lab.expect_on(result, name, "nginx")
    result.expect(guest.exists(manifest), "w1: the manifest did not come back")
    result.expect(guest.container.property("ActiveState") == "inactive", "w1: kubelane still runs")
    result.expect(not lab.guests["w2"].exists("/usr/bin/kubelane"), "the rollout went on")


@scenario
def dead_kubelet(lab, result):
    """If nobody ends nginx, the manifest comes back, kubelane goes, and no client notices."""
    lab.begin_anew(["w1"])
    guest = lab.guests["w1"]
    guest.run("systemctl", "stop", "kubelet")
    with lab.load(["w1"]) as loads:
        play = lab.play(INSTALL, "-e", "kubelane_swap_timeout=3")
    guest.run("systemctl", "start", "kubelet")
    result.expect_gaps("nobody ends nginx", loads)
    result.expect(play.failed() == ["w1"] and "held by: " in play.output and "nginx" in play.output, play.tail())
    result.expect(guest.exists(f"{MANIFESTS}/nginx-proxy.yml"), "the manifest did not come back")
    lab.expect_on(result, "w1", "nginx")


@scenario
def new_node(lab, result):
    """A node without a CA gets kubelane first, joins through localhost, and turns Ready."""
    lab.begin_anew(FLEET)
    lab.install()
    lab.write_inventory([*FLEET, "w4"])
    guest = lab.guests["w4"]
    succeed(result, lab.play("facts.yml"), "facts.yml")
    succeed(result, lab.play(INSTALL, "--limit", "w4"), "kubelane.yml")
    lab.expect_on(result, "w4", "kubelane")
    wait_until(lambda: len(guest.states()) == 3, "w4: its API servers", 10)
    causes = {cause for _, cause in guest.states().values()}
    result.expect(causes == {"no CA file yet"}, f"before it has joined: {guest.states()}")
    began = time.monotonic()
    succeed(result, lab.play("scale.yml", "--limit", "w4"), "scale.yml")
    with Kubelets(lab.cluster, guest.host, 1) as kubelets:
        node = kubelets.names[0]
        wait_until(lambda: node_is_ready(lab.cluster, node), "w4: Ready", 60)
    result.notes.append(f"Ready {time.monotonic() - began:.0f} s after scale.yml began")
    wait_until(lambda: {cause for _, cause in guest.states().values()} == {""}, "w4: verified", 5)
    lab.cluster.kubectl("delete", "node", node)
    result.expect(not guest.exists(f"{MANIFESTS}/nginx-proxy.yml"), "w4 got nginx")
    # The rest of the fleet hears of it: every worker's configuration counts nodes.
    with lab.load(FLEET) as loads:
        play = lab.play(INSTALL)
        succeed(result, play, "kubelane.yml on all")
        time.sleep(3)
    result.expect_gaps("the fleet grows", loads)
    for load in loads.values():
        result.expect(not load.seen.ended(0), f"{load.seen.ended(0)} connections ended when the fleet grew")
    for name in FLEET:
        result.expect(config(lab, name)["cluster"]["nodes"] == 7, f"{name}: {config(lab, name)['cluster']}")
    expect_unchanged(result, lab.play(INSTALL), "second run")


@scenario
def kubespray(lab, result):
    """kubespray's next run changes nothing with the right type; with the wrong one the role and check --node say so."""
    lab.begin_anew(FLEET)
    lab.install()
    guest = lab.guests["w1"]
    for playbook in ("cluster.yml", "upgrade-cluster.yml"):
        expect_unchanged(result, lab.play(playbook), playbook)
    checked = guest.try_run("kubelane", "check", "--node")
    result.expect(checked.returncode == 0, f"check --node: {checked.stdout}")
    with lab.load(FLEET) as loads:
        succeed(result, lab.play("cluster.yml", "-e", "loadbalancer_apiserver_type=nginx"), "cluster.yml with the wrong type")
        time.sleep(3)
        checked = guest.try_run("kubelane", "check", "--node")
        result.expect(checked.returncode == 2 and "nginx-proxy.yml" in checked.stdout, f"check --node: {checked.stdout}")
        play = lab.play(INSTALL, "-e", "loadbalancer_apiserver_type=nginx")
        result.expect(play.status != 0 and "loadbalancer_apiserver_type is nginx" in play.output, play.tail())
        result.expect(play.changed() == 0, "the role changed something before it failed")
        succeed(result, lab.play(INSTALL), "with the right type again")
        time.sleep(1)
    result.expect_gaps("a wrong type, and repaired", loads)
    for name in FLEET:
        lab.expect_on(result, name, "kubelane")
        result.expect(not lab.guests[name].exists(f"{MANIFESTS}/nginx-proxy.yml"), f"{name}: the manifest is still there")
    checked = guest.try_run("kubelane", "check", "--node")
    result.expect(checked.returncode == 0, f"check --node, repaired: {checked.stdout}")


@scenario
def never_had_one(lab, result):
    """A node without a proxy to go back to says so; once kubespray has written one, it takes over within a second."""
    lab.begin_anew([])
    lab.write_inventory(["w1"])
    lab.guests["w1"].join(lab.joined_files())
    lab.install()
    play = lab.play(ROLLBACK)
    result.expect(play.failed() == ["w1"] and "there is no proxy to put back" in play.output, play.tail())
    lab.expect_on(result, "w1", "kubelane")
    succeed(result, lab.play("cluster.yml", "-e", "loadbalancer_apiserver_type=nginx"), "cluster.yml")
    with lab.load(["w1"]) as loads:
        time.sleep(4)
        succeed(result, lab.play(ROLLBACK), "rollback.yml")
        time.sleep(2)
    result.expect_gaps("kubelane to a new nginx", loads)
    lab.expect_on(result, "w1", "nginx")


@scenario
def reset(lab, result):
    """After kubespray's reset or remove-node, remove.yml leaves nothing behind."""
    lab.begin_anew(["w1", "w2"])
    before = {name: files_of(lab.guests[name]) for name in ("w1", "w2")}
    lab.install()
    succeed(result, lab.play("reset.yml", "--limit", "w1"), "reset.yml")
    succeed(result, lab.play("remove-node.yml", "-e", "node=w2"), "remove-node.yml")
    succeed(result, lab.play("kubelane/remove.yml", "-e", "kubelane_hosts=w1,w2"), "remove.yml")
    for name in ("w1", "w2"):
        left = files_of(lab.guests[name]) - before[name]
        result.expect(not left, f"{name}: left behind: {sorted(left)[:6]}")
        lab.expect_on(result, name, "")
    expect_unchanged(result, lab.play("kubelane/remove.yml", "-e", "kubelane_hosts=w1,w2"), "second run")
    play = lab.play("kubelane/remove.yml")
    result.expect(play.status != 0 and "name the nodes" in play.output, "remove.yml without names")


@scenario
def haproxy(lab, result):
    """From HAProxy to kubelane within a second; back takes as long as the kubelet starts a pod."""
    lab.begin_anew(["w1"], proxy="haproxy")
    with lab.load(["w1"]) as loads:
        time.sleep(2)
        succeed(result, lab.play(INSTALL), "kubelane.yml")
        time.sleep(2)
    result.expect_gaps("HAProxy to kubelane", loads)
    lab.expect_on(result, "w1", "kubelane")
    with lab.load(["w1"]) as loads:
        time.sleep(1)
        succeed(result, lab.play(ROLLBACK), "rollback.yml")
        time.sleep(2)
    lab.expect_on(result, "w1", "haproxy")
    back = loads["w1"].seen.longest_gap(0)
    result.notes.append(f"back to HAProxy: {back:.1f} s")
    result.expect(back < 5, f"back to HAProxy: {back:.1f} s")


@scenario
def configuration(lab, result):
    """The role writes what `kubelane inventory config` writes, also with two ports, zones, IPv6 and external etcd."""
    lab.begin_anew(["w1", "w2"])
    folder = lab.checkout / "inventory/mycluster"
    lab.write_inventory(["w1", "w2"], loadbalancer_apiserver_port=7443, loadbalancer_apiserver_healthcheck_port=8181,
                        kube_cert_dir="/etc/kubernetes/pki")
    inventory = folder / "inventory.ini"
    text = inventory.read_text().replace("ip=10.77.0.11", "ip=10.77.0.11 zone=a").replace(
        "ip=10.77.0.12", "ip=10.77.0.12 access_ip=10.77.0.112").replace("ip=10.77.0.31", "ip=10.77.0.31 zone=a")
    inventory.write_text(text.replace("[etcd]\ncp1\ncp2\ncp3\n", "[etcd]\nw1\nw2\ncp3\n"))
    for what, further in (("two ports, zones", {}), ("IPv4 is off", {"ipv4_stack": False})):
        if further:
            inventory.write_text(re.sub(r"(ansible_host=10\.77\.0\.(\d+))", r"\1 ip6=fd00::\2", inventory.read_text()))
        play = lab.play("kubelane/config-only.yml", "-e", json.dumps(further)) if further else render(lab)
        succeed(result, play, what)
        for name in ("w1", "w2"):
            compare(lab, result, name, f"{what}, {name}", further)


def render(lab):
    (lab.checkout / "kubelane/config-only.yml").write_text(json.dumps([{
        "hosts": "kube_node", "gather_facts": False, "roles": [], "vars_files": ["roles/kubelane/defaults/main.yml",
                                                                                "roles/kubelane/vars/main.yml"],
        "tasks": [{"ansible.builtin.template": {"src": "roles/kubelane/templates/config.yaml.j2",
                                                "dest": "/root/config.yaml", "mode": "0644"}}]}]))
    return lab.play("kubelane/config-only.yml")


def compare(lab, result, name, what, further):
    written = yaml.safe_load(lab.guests[name].run("cat", "/root/config.yaml"))
    folder = lab.checkout / "inventory/mycluster"
    if further:
        (folder / "group_vars/all/further.yml").write_text(json.dumps(further))
    done = lab.on_control_host("kubelane", "inventory", "config", str(folder / "inventory.ini"), "--node", name)
    result.expect(done.returncode == 0, f"{what}: inventory config: {done.stdout}")
    wanted = yaml.safe_load(done.stdout)
    written.pop("failover")  # a matter of the role alone
    result.expect(written == wanted, f"{what}: the role writes {written}, inventory config {wanted}")


def config(lab, name):
    return yaml.safe_load(lab.guests[name].run("cat", CONFIG))


def node_is_ready(cluster, node):
    listed = cluster.kubectl("get", "node", node, "--no-headers", address="10.77.0.11")
    return re.search(rb"\sReady\s", listed.stdout) is not None


def files_of(guest):
    """Every file outside of what a running system and its package manager write all the time."""
    listed = guest.run("find", "/", "-xdev", "(", "-path", "/proc", "-o", "-path", "/sys", "-o", "-path", "/run", "-o",
                       "-path", "/tmp", "-o", "-path", "/var/tmp", "-o", "-path", "/var/log", "-o", "-path",
                       "/var/lib/systemd", "-o", "-path", "/var/cache", "-o", "-path", "/root/.ansible", "-o",
                       "-path", "/var/lib/apt", "-o", "-path", "/var/lib/dpkg", "-o", "-path", "/etc/kubernetes", "-o",
                       "-name", "*-", "-o", "-path", "/etc/nginx", "-o", "-path", "/var/lib/nginx", ")", "-prune", "-o",
                       "-print")
    return set(listed.splitlines())
