"""What a worker's kubelet and containerd say of its pods, and the programs in them, without the API."""

import json
import re

from worker import NAME


class Pods:
    def __init__(self, worker):
        self.worker = worker

    def containers(self, pod):
        """The running containers of that static pod: id -> process, as the worker counts."""
        return {one["ID"]: pid for one, pid in self._running()
                if one["Labels"].get("io.kubernetes.pod.name") == f"{pod}-{NAME}"
                and one["Labels"].get("io.cri-containerd.kind") == "container"}

    def restarts(self, pod):
        """How often the kubelet started its container anew: the logs are numbered."""
        return max((int(file.stem) for file in self._logs(pod)), default=0)

    def kill(self, pod):
        for one in self.containers(pod):
            self._ctr("task", "kill", "--signal", "SIGKILL", one)

    def log(self, pod):
        """What its containers wrote."""
        return "".join(re.sub(r"^\S+ std(out|err) [FP] ", "", line)
                       for file in self._logs(pod) for line in file.read_text().splitlines(keepends=True))

    def forget_log(self, pod):
        for file in self._logs(pod):
            file.unlink()

    def _logs(self, pod):
        return sorted(self.worker.path("/var/log/pods").glob(f"*_{pod}-{NAME}_*/*/*.log"))

    def process(self, pod):
        """`/proc` of its one container."""
        pid, = self.containers(pod).values()
        return self.worker.path(f"/proc/{pid}")

    def _running(self):
        tasks = [line.split() for line in self._ctr("task", "ls").splitlines()[1:]]
        return [(json.loads(self._ctr("containers", "info", one)), int(pid))
                for one, pid, state in tasks if state == "RUNNING"]

    def _ctr(self, *argv):
        return self.worker.run("ctr", "-n", "k8s.io", *argv)
