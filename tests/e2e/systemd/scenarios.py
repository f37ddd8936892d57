"""What kubelane goes through under systemd; each function's first line says what must hold."""

import random
import time

import kubelets
import life
from lab.container import wait_until
from stage import BINARY, CONFIG, GOOD, PREVIOUS
from load import CONNECTIONS, PORT

RESTART = (50, 100)  # milliseconds: median and longest stall of a ping
KILL = (250, 400)
SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


@scenario
def restart(lab, result):
    """Ten restarts lose no connection and no byte."""
    with lab.load() as load:
        lab.repeat(result, load, 10, lambda _: lab.container.systemctl("restart", "kubelane"))
        lab.finish(result, load)
    result.expect_kept()
    result.expect_stalls(*RESTART)


@scenario
def kill(lab, result):
    """Ten kill -9 at random moments lose no connection that is a second old, and no byte."""
    chance = random.Random(1)

    def act(_):
        time.sleep(chance.random() * 0.5)
        lab.container.signal_main("KILL")

    with lab.load() as load:
        lab.repeat(result, load, 10, act)
        lab.finish(result, load)
    result.expect_kept(young_may_end=True)
    result.expect_stalls(*KILL)


@scenario
def upgrade(lab, result):
    """Three upgrades of the package, forth, back and forth, lose nothing."""
    with lab.load() as load:
        lab.repeat(result, load, 3, lambda i: lab.install((i + 1) % 2), settle=2)
        lab.finish(result, load)
    result.expect(lab.container.path(PREVIOUS).exists(), "no previous binary was kept")
    result.expect_kept()
    result.expect_stalls(*RESTART)


@scenario
def reload(lab, result):
    """Three reloads lose nothing, and stay one process."""
    before = lab.container.property("MainPID")
    with lab.load() as load:
        lab.repeat(result, load, 3, lambda _: lab.container.systemctl("reload", "kubelane"))
        lab.finish(result, load)
    result.expect(lab.container.property("MainPID") == before, "another process serves")
    result.expect_kept()
    result.expect_stalls(*RESTART)


@scenario
def manager(lab, result):
    """systemd's own reload and re-execution lose nothing, nor does a restart after them."""
    commands = [("daemon-reload",), ("daemon-reexec",), ("restart", "kubelane"), ("daemon-reexec",), ("daemon-reload",)]
    with lab.load() as load:
        lab.repeat(result, load, len(commands), lambda i: lab.container.systemctl(*commands[i]), settle=2)
        lab.container.signal_main("KILL")
        time.sleep(2)
        result.events.append(load.mark("end"))
        lab.finish(result, load)
    result.expect_kept(young_may_end=True)


@scenario
def broken_binary(lab, result):
    """With /bin/false in its place, the previous binary takes the connections over; then the repaired one."""
    lab.install(1)  # keeps the older one beside
    with lab.load() as load:
        lab.settle(load)
        good = lab.container.path(BINARY).read_bytes()
        lab.container.run("cp", "/bin/false", f"{BINARY}.new")
        lab.container.run("mv", f"{BINARY}.new", BINARY)
        lab.container.signal_main("KILL")
        time.sleep(3)
        result.events.append(load.mark("repaired"))
        result.expect(lab.main_binary() == PREVIOUS, f"{lab.main_binary()} serves")
        lab.container.path(f"{BINARY}.new").write_bytes(good)
        lab.container.run("chmod", "755", f"{BINARY}.new")
        lab.container.run("mv", f"{BINARY}.new", BINARY)
        lab.container.systemctl("restart", "kubelane")
        time.sleep(2)
        result.events.append(load.mark("end"))
        result.expect(lab.main_binary() == BINARY, f"{lab.main_binary()} serves after the repair")
        lab.finish(result, load)
    result.expect_kept(young_may_end=True)
    result.expect(max(result.stalls()) < 3000, "silent for 3 s")


@scenario
def repaired_binary(lab, result):
    """A binary that somebody has repaired is taken by itself, and no connection notices."""
    lab.install(1)
    drop_in = "/run/systemd/system/kubelane-fallback.service.d"
    lab.container.run("mkdir", "-p", drop_in)
    lab.container.write(f"{drop_in}/test.conf", "[Service]\nEnvironment=RETRY_AFTER=5\n")
    lab.container.systemctl("daemon-reload")
    with lab.load() as load:
        lab.settle(load)
        lab.container.run("mv", BINARY, "/root/kept")
        lab.container.run("cp", "/bin/false", BINARY)
        lab.container.signal_main("KILL")
        wait_until(lambda: lab.main_binary() == PREVIOUS, "the previous binary", 10)
        time.sleep(7)  # it is tried meanwhile, and stays away
        result.expect(lab.main_binary() == PREVIOUS, f"{lab.main_binary()} serves")
        lab.container.run("mv", "/root/kept", BINARY)
        wait_until(lambda: lab.main_binary() == BINARY, "the repaired binary", 20)
        time.sleep(2)
        result.events.append(load.mark("end"))
        lab.finish(result, load)
    result.expect_kept(young_may_end=True)
    wait_until(lambda: lab.container.property("ActiveState", "kubelane-fallback.service") == "inactive",
               "kubelane-fallback.service: inactive", 10)


def expect_released(lab, result, breaking, repair):
    """Nothing can serve: within three seconds every client is ended and new ones are refused. Then it comes back."""
    with lab.load() as load:
        lab.settle(load)
        breaking()
        lab.container.signal_main("KILL")
        time.sleep(4)
        event = load.mark("repaired")
        result.events.append(event)
        # More than there were: the clients come back, and are ended again while the listener is still there.
        result.expect(event["lost"] >= CONNECTIONS, f"{event['lost']} of {CONNECTIONS} connections were ended")
        result.expect(event["last_loss_ms"] <= 3000, f"the last one after {event['last_loss_ms']:.0f} ms")
        result.expect(event["refused"] > 0, "no fresh connect was refused")
        result.expect(event["slowest_fresh_ms"] <= 3000 and not event["fresh_stuck"], "a fresh connect hung")
        repair()
        lab.wait_active(30)
        time.sleep(2)
        load.mark("served again")
        time.sleep(1)
        again = load.mark("end")
        result.expect(again["fresh"] > 0 and not again["refused"], "not served again")
        lab.finish(result, load)


@scenario
def no_binary_at_all(lab, result):
    """With /bin/false and no previous binary, every client is ended within 3 s and new ones are refused."""
    def breaking():
        lab.container.run("cp", "-p", BINARY, "/root/kept")
        lab.container.run("cp", "/bin/false", BINARY + ".new")
        lab.container.run("mv", BINARY + ".new", BINARY)

    expect_released(lab, result, breaking, lambda: lab.container.run("mv", "/root/kept", BINARY))


@scenario
def missing_library(lab, result):
    """Without a library that both binaries need, every client is ended within 3 s and new ones are refused."""
    lab.install(1)
    library = lab.container.output("sh", "-c", "realpath /usr/lib/*/libyaml-cpp.so.0.7")
    expect_released(lab, result, lambda: lab.container.run("mv", library, "/root/library"),
                    lambda: lab.container.run("mv", "/root/library", library))


@scenario
def no_program(lab, result):
    """A file that is no program, for two seconds: nobody hangs, and who can be kept is kept."""
    with lab.load() as load:
        lab.settle(load)
        lab.container.run("mv", BINARY, "/root/kept")
        lab.container.write(BINARY, "no program\n", mode=0o755)
        lab.container.signal_main("KILL")
        time.sleep(2)
        lab.container.run("mv", "/root/kept", BINARY)
        time.sleep(3)
        event = load.mark("end")
        result.events.append(event)
        lab.wait_active(20)
        time.sleep(2)
        load.mark("after")
        time.sleep(1)
        after = load.mark("end")
        result.note = f"{max(CONNECTIONS - event['lost'], 0)} of {CONNECTIONS} kept"
        result.expect(not event["wrong"] and not event["fresh_stuck"], "wrong bytes or a hanging connect")
        result.expect(after["fresh"] and not after["refused"] and not after["waiting"], "not served afterwards")
        result.expect(max(event["stall_ms"], 0) < 3500, "silent for 3.5 s")
        lab.finish(result, load)


def expect_previous(lab, result, limit):
    """A version that gets ready and ends is replaced by the one before it, which serves at once."""
    with lab.load() as load:
        lab.settle(load)
        lab.container.path(BINARY + ".new").write_bytes(lab.unsteady.read_bytes())
        lab.container.run("chmod", "755", BINARY + ".new")
        lab.container.run("mv", BINARY + ".new", BINARY)
        began = time.monotonic()
        lab.container.signal_main("KILL")
        wait_until(lambda: lab.main_binary() == PREVIOUS, "the previous binary", limit)
        result.note = f"after {time.monotonic() - began:.1f} s"
        time.sleep(2)
        result.events.append(load.mark("previous"))
        time.sleep(1)
        after = load.mark("end")
        result.expect(after["fresh"] and not after["refused"] and not after["waiting"], "not served afterwards")
        lab.finish(result, load)


@scenario
def crashing_version(lab, result):
    """A version that crashes again and again is replaced by the previous one."""
    lab.install(1)
    expect_previous(lab, result, 10)


@scenario
def exiting_version(lab, result):
    """A version that exits again and again is replaced by the previous one."""
    lab.install(1)
    lab.container.path("/var/lib/kubelane/exits").touch()
    expect_previous(lab, result, 10)


@scenario
def broken_config(lab, result):
    """A restart and a start with a broken configuration run on the last good one."""
    with lab.load() as load:
        lab.settle(load)
        lab.container.write(CONFIG, "version: 1\nupstreams: [\n")
        for _ in range(2):
            lab.container.systemctl("restart", "kubelane")
            time.sleep(2)
            result.events.append(load.mark("again"))
        result.expect(lab.metric("kubelane_config_fallback") == 1, "config_fallback is not 1")
        lab.finish(result, load)
    result.expect_kept()
    lab.container.systemctl("stop", "kubelane")
    lab.container.systemctl("start", "kubelane")
    result.expect(lab.metric("kubelane_config_fallback") == 1, "config_fallback is not 1 after a start")


@scenario
def other_listen_address(lab, result):
    """A restart with another listen address keeps connections; the old address refuses, the new one serves."""
    with lab.load() as load:
        lab.settle(load)
        lab.container.write(CONFIG, GOOD.replace(f"127.0.0.1:{PORT}", "127.0.0.1:6444"))
        lab.container.systemctl("restart", "kubelane")
        time.sleep(2)
        event = load.mark("end")
        result.events.append(event)
        result.expect(not event["lost"] and not event["wrong"], f"lost {event['lost']}, wrong {event['wrong']}")
        result.expect(event["refused"] > 50, "the old address does not refuse")
        result.expect(not event["fresh_stuck"] and not event["waiting"], "somebody hangs")
        listening = lab.container.output("sh", "-c", "cat /proc/net/tcp | grep -c ':192C 00000000:0000 0A'")
        result.expect(listening == "1", "nobody listens on the new address")
        lab.finish(result, load)


@scenario
def answers(lab, result):
    """A hundred kill -9 while answers of 64 MiB flow: no byte is wrong."""
    chance = random.Random(2)

    def act(_):
        time.sleep(chance.random() * 0.3)
        lab.container.signal_main("KILL")

    with lab.load(answers=8) as load:
        lab.repeat(result, load, 100, act, settle=0.9, connections=33)
        lab.finish(result, load)
    result.note = f"{result.total('answers')} answers, {result.total('mib')} MiB"
    result.expect_kept(young_may_end=True)


@scenario
def stop(lab, result):
    """A stop ends every client at once, and leaves nothing."""
    with lab.load() as load:
        lab.settle(load)
        lab.container.systemctl("stop", "kubelane")
        result.events.append(load.mark("after"))
        time.sleep(1.5)
        after = load.mark("end")
        result.events.append(after)
    result.expect(result.total("lost") >= CONNECTIONS, f"{result.total('lost')} of {CONNECTIONS} connections were ended")
    result.expect(after["last_loss_ms"] <= 100, f"the last one {after['last_loss_ms']:.0f} ms after the stop")
    result.expect(lab.container.property("NFileDescriptorStore") == "0", "descriptors are left")
    result.expect(lab.container.property("ActiveState") == "inactive", "it is not inactive")


@scenario
def crash_loop(lab, result):
    """Two crashes keep every connection; the third in ten seconds ends them, and all goes on."""
    with lab.load() as load:
        lab.settle(load)
        for i in range(3):
            lab.container.signal_main("SEGV")
            time.sleep(1.8)
            lab.wait_active()
            result.events.append(load.mark(f"crash-{i + 2}"))
        kept, ended = result.events[:2], result.events[2]
        result.expect(not any(e["lost"] or e["wrong"] for e in kept), "the first two crashes lost something")
        result.expect(ended["lost"] == CONNECTIONS, f"the third ended {ended['lost']} of {CONNECTIONS}")
        time.sleep(1)
        after = load.mark("end")
        result.expect(after["fresh"] and not after["refused"] and not after["lost"], "not served afterwards")
        lab.finish(result, load)


@scenario
def watchdog(lab, result):
    """A process that stands still is killed by the watchdog, and its connections are kept."""
    with lab.load() as load:
        lab.settle(load)
        before = lab.container.property("MainPID")
        lab.container.signal_main("STOP")
        wait_until(lambda: lab.container.property("MainPID") not in (before, "0"), "another process", 35)
        time.sleep(2)
        result.events.append(load.mark("end"))
        lab.finish(result, load)
    crashes = lab.container.path("/var/lib/kubelane/crashes")
    result.expect(crashes.exists() and len(crashes.read_text().splitlines()) == 1, "the crash was not counted")
    for key in ("lost", "wrong", "refused", "waiting"):
        result.expect(not result.total(key), f"{key}: {result.total(key)}")


scenario(kubelets.kubelets)
scenario(life.package)
scenario(life.boot)


@scenario
def support(lab, result):
    """State changes outlive a stop, as the user that the service has; a bundle has unit, log, check and configuration."""
    run = lab.container.output
    wait_until(lambda: "cp1" in run("kubelane", "events"), "there are events", 10)
    lab.container.systemctl("stop", "kubelane")
    kept = run("cat", "/var/lib/kubelane/events.jsonl").splitlines()
    result.expect(len(kept) >= 2, f"kept events: {kept}")
    result.expect("cp1" in run("kubelane", "events"), "events are not read from the file")
    lab.container.systemctl("start", "kubelane")
    lab.wait_active()
    wait_until(lambda: len(run("kubelane", "events").splitlines()) > len(kept) + 1, "older and newer events", 10)
    run("kubelane", "status", "--bundle", "/root/support.tar.gz")
    text = run("tar", "-xzOf", "/root/support.tar.gz")
    for part in ("MainPID=", "ExecStart=/bin/sh -c", "serving version=", "good, 2 upstreams", "name: cp2",
                 "Max open files", "last-good.yaml"):
        result.expect(part in text, f"not in the bundle: {part}")
