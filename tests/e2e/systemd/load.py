"""The clients and servers around kubelane, in the container's network and outside its service.

Two clients, so that measuring does not wait for the bulk: one with pings and fresh connections, which gets the CPU
first, and one with streams at full speed, which gets it last. A ping is timed from when it was due.
"""

import json
import queue
import subprocess
import threading

PORT = 6443
SERVER_PORT = 7001
STREAMS, PINGERS, SILENT = 25, 20, 5
CONNECTIONS = STREAMS + PINGERS + SILENT
SUMMED = ("lost", "wrong", "refused", "fresh", "fresh_ended", "fresh_stuck", "pongs", "mib", "answers", "waiting")


class Client:
    def __init__(self, argv):
        self.popen = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.popen.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def tell(self, command):
        self.popen.stdin.write(command + "\n")
        self.popen.stdin.flush()

    def hear(self, limit=10):
        line = self.lines.get(timeout=limit)
        if line is None:
            raise RuntimeError(f"the load client has ended: exit {self.popen.wait()}")
        return line


class Load:
    """Runs while the `with` block runs. `answers` connections get 64 MiB answers instead of the usual mix."""

    def __init__(self, container, traffic, answers=0):
        self.container, self.traffic, self.answers = container, traffic, answers
        self.processes = []

    def __enter__(self):
        self.server = self._spawn("serve", SERVER_PORT, nice=-10, stdout=subprocess.PIPE)
        self.reports = []
        threading.Thread(target=self._collect, daemon=True).start()
        bulk = (0, 0, 0, self.answers, 0) if self.answers else (STREAMS, 0, 0, 0, 0)
        self.clients = [self._client(0, PINGERS, SILENT, 0, 10, nice=-15), self._client(*bulk, nice=10)]
        return self

    def __exit__(self, *_):
        for popen in [self.server, *(c.popen for c in self.clients)]:
            popen.kill()
            popen.wait(10)

    def _argv(self, nice, *words):
        return self.container.in_network("nice", "-n", nice, self.traffic, *words)

    def _spawn(self, *words, nice, stdout):
        return subprocess.Popen(self._argv(nice, *words), stdin=subprocess.DEVNULL, stdout=stdout, text=True,
                                start_new_session=True)

    def _client(self, *numbers, nice):
        return Client(self._argv(nice, "load", PORT, *numbers))

    def _collect(self):
        for line in self.server.stdout:
            self.reports.append(json.loads(line))

    def mark(self, name):
        """Begins a new time; returns what happened in the one before."""
        for client in self.clients:
            client.tell(f"mark {name}")
        return merge([client.hear() for client in self.clients])

    def finish(self):
        """Ends all in order. Returns the last time and what is wrong with the streams."""
        for client in self.clients:
            client.tell("finish")
        last = merge([client.hear(60) for client in self.clients])
        problems = [f"a client exits with {c.popen.wait(10)}" for c in self.clients if c.popen.wait(10)]
        received = {r["id"]: r for r in self.reports if "id" in r}
        streams = []
        while (line := self.clients[-1].lines.get(timeout=5)) is not None:
            streams.append(line)
        for stream in streams:
            at_server = received.get(stream["stream"])
            if not stream["ended"] or at_server is None:
                problems.append(f"stream {stream['stream']} did not end in order")
            elif (at_server["received"], at_server["sent"]) != (stream["sent"], stream["received"]):
                problems.append(f"stream {stream['stream']}: {stream} at the client, {at_server} at the server")
        wrong = sum(r["wrong"] for r in self.reports)
        if wrong:
            problems.append(f"{wrong} wrong bytes at the server")
        return last, problems


def merge(windows):
    whole = dict(windows[0])
    for other in windows[1:]:
        for key, value in other.items():
            if key in SUMMED:
                whole[key] += value
            elif key != "event":
                whole[key] = max(whole[key], value)
    return whole
