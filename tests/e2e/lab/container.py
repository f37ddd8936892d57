"""A booted systemd in a container of its own, on a laboratory's host or without network but its loopback."""

import functools
import os
import pathlib
import signal
import subprocess

from . import process


wait_until = functools.partial(process.wait_until, every=0.02)  # seconds; what happens here is quick


class Container:
    def __init__(self, root, log, host=None):
        """Works in the network of `host`, if there is one (see network.py)."""
        self.root, self.log = root, log
        self.name = f"kubelane-{os.getpid()}" + (f"-{host.name}" if host else "")
        self.network = f"--network-namespace-path=/run/netns/{host.namespace}" if host else "--private-network"
        self.nspawn = None
        self.leader = 0

    def __enter__(self):
        try:
            self.boot()
        except BaseException:
            self.power_off()
            raise
        return self

    def __exit__(self, *_):
        self.power_off()

    def boot(self, wait=True):
        with open(self.log, "ab") as out:
            self.nspawn = subprocess.Popen(
                # First in line for the CPU: what else the machine does is not what is measured.
                ["nice", "-n", "-10", "systemd-nspawn", "-q", "--register=no", "--keep-unit", self.network,
                 "--console=pipe", f"--machine={self.name}", "-b", "-D", self.root],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        wait_until(self._find_leader, "the container's first process", 20)
        wait_until(lambda: self.try_run("systemctl", "show-environment").returncode == 0, "its manager", 20)
        if wait:
            wait_until(lambda: self.output("systemctl", "is-system-running") in ("running", "degraded"), "its boot", 30)

    def _find_leader(self):
        if self.nspawn.poll() is not None:
            raise RuntimeError(f"systemd-nspawn has ended; see {self.log}")
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
        self.leader = int(children[0]) if children else 0
        # It is a part of nspawn until it has become the init of its own name spaces, and not the first such part.
        try:
            return self.leader and pathlib.Path(f"/proc/{self.leader}/comm").read_text().strip() == "systemd"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def power_off(self):
        """Pulls the plug."""
        if self.nspawn is None:
            return
        try:
            if self.leader:
                os.kill(self.leader, signal.SIGKILL)
            self.nspawn.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            self.nspawn.kill()
            self.nspawn.wait(10)
        self.nspawn = None

    def inside(self, *argv):
        """A command line that runs `argv` in all name spaces of the container."""
        return ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "env", "-i",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", *map(str, argv)]

    def in_network(self, *argv):
        """A command line that runs `argv` in its network, outside of all else."""
        return ["nsenter", "-t", str(self.leader), "-n", *map(str, argv)]

    def try_run(self, *argv, limit=60):
        return subprocess.run(self.inside(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=limit)

    def run(self, *argv, limit=60):
        done = self.try_run(*argv, limit=limit)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, argv))}: exit {done.returncode}: {done.stdout.strip()}")
        return done.stdout

    def output(self, *argv):
        return self.try_run(*argv).stdout.strip()

    def systemctl(self, *argv, limit=60):
        return self.run("systemctl", *argv, limit=limit)

    def property(self, name, unit="kubelane.service"):
        return self.output("systemctl", "show", "--value", f"--property={name}", unit)

    def signal_main(self, name):
        self.run("sh", "-c", f"kill -s {name} {self.property('MainPID')}")

    def path(self, path):
        """Of a file in the container, from outside."""
        return pathlib.Path(f"/proc/{self.leader}/root{path}")

    def write(self, path, text, mode=0o644):
        """All or nothing, as editors and packages do it."""
        fresh = self.path(path + ".fresh")
        fresh.write_text(text)
        fresh.chmod(mode)
        fresh.rename(self.path(path))
