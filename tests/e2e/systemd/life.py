"""The package's life, and the node's boot."""

from lab.container import wait_until
from stage import BINARY, CONFIG, GOOD, PREVIOUS

BROKEN = "version: 1\nupstreams: [\n"
UNITS = "/etc/systemd/system"
# A network that never comes online, and what waits for kubelane.
NEVER_ONLINE = """[Unit]
Before=network-online.target
[Service]
Type=oneshot
ExecStart=/bin/sleep infinity
TimeoutStartSec=infinity
[Install]
WantedBy=network-online.target
"""
KUBELET = """[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
[Install]
WantedBy=multi-user.target
"""
BOOTED = 30  # seconds: the timer's fifteen, and a busy machine's boot


def package(lab, result):
    """Installs without a configuration, upgrades only what can start, leaves a stopped service stopped, purges all."""
    inside = lab.container

    def state():
        return inside.property("ActiveState")

    inside.run("dpkg", "--purge", "kubelane")
    left = inside.output("sh", "-c", "find / -xdev -name '*kubelane*' -not -path '/proc/*' -not -path '/root/*' "
                                     "-not -path '/var/log/*' -not -path '/var/lib/dpkg/*' -not -path '/var/cache/*'")
    result.expect(not left, f"left after the purge: {left.split()}")

    printed = lab.install(0)
    result.expect("write /etc/kubelane/config.yaml" in printed, "the installation does not say what is needed")
    result.expect(state() == "inactive", f"{state()} without a configuration")
    result.expect(inside.property("UnitFileState") == "enabled", "not enabled")
    inside.write(CONFIG, GOOD)
    inside.systemctl("start", "kubelane")

    before = inside.property("MainPID")
    inside.write(CONFIG, BROKEN)
    printed = lab.install(1)
    result.expect(inside.property("MainPID") == before, "restarted with a configuration that the new version refuses")
    result.expect("not restarted" in printed and f"{CONFIG}:" in printed, "the refusal is not explained")
    inside.write(CONFIG, GOOD)

    inside.systemctl("stop", "kubelane")
    lab.install(0)
    result.expect(state() == "inactive", f"an upgrade made a stopped service {state()}")
    inside.systemctl("start", "kubelane")

    inside.run("dpkg", "--remove", "kubelane")
    result.expect(state() == "inactive", f"{state()} after the removal")
    result.expect(not inside.path(BINARY).exists() and not inside.path(PREVIOUS).exists(), "a binary is left")
    result.expect(inside.path(CONFIG).exists(), "the removal took the configuration")
    lab.install(0)
    result.expect(state() == "active", f"{state()} after it was installed again")


def boot(lab, result):
    """Boots on the last good configuration, without a network that is online, and the kubelet after it."""
    inside = lab.container
    inside.write(f"{UNITS}/never-online.service", NEVER_ONLINE)
    inside.write(f"{UNITS}/kubelet.service", KUBELET)
    inside.systemctl("enable", "never-online", "kubelet")
    inside.write(CONFIG, BROKEN)
    try:
        inside.power_off()
        inside.boot(wait=False)
        wait_until(lambda: inside.property("ActiveState") == "active", "kubelane: active after a boot", BOOTED)
        wait_until(lambda: inside.property("ActiveState", "kubelet.service") == "active", "kubelet: active", 5)
        result.expect(inside.property("ActiveState", "network-online.target") != "active", "the network was online")
        started = int(inside.property("ActiveEnterTimestampMonotonic"))
        result.expect(started <= int(inside.property("ActiveEnterTimestampMonotonic", "kubelet.service")),
                      "the kubelet did not wait for kubelane")
        result.expect(lab.metric("kubelane_config_fallback") == 1, "config_fallback is not 1")
        result.note = f"active {started / 1e6 - boot_began(inside):.0f} s after the boot began"
    finally:
        inside.systemctl("disable", "never-online", "kubelet")
        inside.power_off()
        inside.boot()


def boot_began(inside):
    """On the clock of ActiveEnterTimestampMonotonic, in seconds."""
    return int(inside.output("systemctl", "show", "--value", "--property=UserspaceTimestampMonotonic")) / 1e6
