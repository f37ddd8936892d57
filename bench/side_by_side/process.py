"""A measured process with its children: CPU time, memory, where it runs."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import time


class Process:
    """Started at once; ends with `stop`. Only what was started here is ever signalled."""

    def __init__(self, name, command, log, cores=None, group=None, environment=None, pass_fds=()):
        self.name, self.group = name, group

        def prepare():
            if cores:
                os.sched_setaffinity(0, cores)
            if group:
                group.join()

        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        preexec_fn=prepare, env=environment, pass_fds=pass_fds)
        self.started = time.monotonic()  # the new program was just begun

    def wait_for_port(self, port, limit=10):
        """Seconds from the start until somebody connected."""
        while not can_connect(port):
            if self.process.poll() is not None or time.monotonic() - self.started > limit:
                raise RuntimeError(f"{self.name} does not listen on {port}")
            time.sleep(0.0005)
        return time.monotonic() - self.started

    def processes(self):
        found = [self.process.pid]
        for pid in found:
            path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
            found += [int(child) for child in path.read_text().split()]
        return found

    def threads(self):
        return [(pid, int(task)) for pid in self.processes() for task in os.listdir(f"/proc/{pid}/task")]

    def pin(self, cores):
        for _, thread in self.threads():
            os.sched_setaffinity(thread, cores)

    def hurry(self, niceness):
        for _, thread in self.threads():
            set_niceness(thread, niceness)

    def cpu_seconds(self):
        """Of all processes and threads. From schedstat, which counts nanoseconds, not ticks."""
        return sum(int(pathlib.Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0])
                   for pid, thread in self.threads()) / 1e9

    def pss_kib(self):
        return sum(int(re.search(r"^Pss:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(),
                                 re.M).group(1)) for pid in self.processes())

    def descriptors(self):
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.processes())

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.group:
            self.group.remove()


def two_cores():
    """The proxy's and the others', each as a set; the same twice if there is only one."""
    cores = [{core} for core in sorted(os.sched_getaffinity(0))[:2]]
    return cores * 2 if len(cores) == 1 else cores


def set_niceness(thread, niceness):
    try:
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
    except PermissionError:
        pass  # not root: then it waits for its turn as the rest does


def can_connect(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class MemoryGroup:
    """A memory cgroup of its own, which counts the kernel memory that a process makes the kernel use.

    `create` returns None where that is not possible (no root, no such controller).
    """

    def __init__(self, path, v2):
        self.path, self.v2 = path, v2

    @staticmethod
    def create(name):
        for base, v2 in (("/sys/fs/cgroup/memory", False), ("/sys/fs/cgroup", True)):
            probe = "memory.stat" if v2 else "memory.kmem.usage_in_bytes"
            path = pathlib.Path(base, f"kubelane-bench-{os.getpid()}-{name}")
            try:
                path.mkdir()
            except OSError:
                continue
            if path.joinpath(probe).exists():
                return MemoryGroup(path, v2)
            path.rmdir()
        return None

    def join(self):
        self.path.joinpath("cgroup.procs").write_text(str(os.getpid()))

    def kernel_kib(self):
        if not self.v2:
            return int(self.path.joinpath("memory.kmem.usage_in_bytes").read_text()) / 1024
        text = self.path.joinpath("memory.stat").read_text()
        return int(re.search(r"^kernel (\d+)", text, re.M).group(1)) / 1024

    def remove(self):
        for _ in range(50):  # its last process may not be gone yet
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.02)
