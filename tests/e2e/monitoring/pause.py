"""What a scrape costs a kubelane that carries thousands of connections, and those who use them."""

import asyncio
import http.client
import json
import pathlib
import resource
import socket
import statistics
import threading
import time

from lab.process import Process, wait_until
from stand import Here, free_port

ROUND = 5.0          # seconds with scrapes, and without
EVERY = 0.02         # a scrape, all that time
MOST = 0.010         # seconds of the loop's time that one may take
PING_EVERY = 0.001


class EchoServer:
    """Sends back what it gets; on a loop of its own."""

    def __init__(self):
        self.port = free_port()
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        threading.Thread(target=self.run, args=(started,), daemon=True).start()
        started.wait(10)

    def run(self, started):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(
            self.loop.create_server(Echo, "127.0.0.1", self.port, backlog=4096))
        started.set()
        self.loop.run_forever()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)


class Pinger:
    """Times a byte there and back, again and again, on one connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ping(self, seconds):
        times, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.perf_counter()
            self.socket.sendall(b"x")
            self.socket.recv(1)
            times.append(time.perf_counter() - begun)
            time.sleep(PING_EVERY)
        return sorted(times)


def cpu_seconds(pid):
    """Of the process' main thread."""
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def scrape(admin):
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=10)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def value(text, series):
    return float(next(line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith(series + " ")))


def measure(pid, admin, pinger):
    """Round-trip times without and with scrapes, and the CPU time of the main thread per scrape."""
    before = cpu_seconds(pid)
    calm = pinger.ping(ROUND)
    idle, count, stop = cpu_seconds(pid) - before, [0], threading.Event()

    def scrapes():
        while not stop.is_set():
            scrape(admin)
            count[0] += 1
            time.sleep(EVERY)
    thread = threading.Thread(target=scrapes)
    thread.start()
    before = cpu_seconds(pid)
    busy = pinger.ping(ROUND)
    used = cpu_seconds(pid) - before
    stop.set()
    thread.join()
    # Fewer pings fit into a busy round, so what they cost is less than in the calm one: a little too much is
    # left for the scrapes at worst.
    return calm, busy, max(used - idle * len(busy) / len(calm), 0) / count[0]


def check(kubelane, folder, connections):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server, port, admin = EchoServer(), free_port(), free_port()
    config = folder / "pause.yaml"
    config.write_text(json.dumps({
        "version": 1, "listen": [f"127.0.0.1:{port}"], "admin": {"listen": f"127.0.0.1:{admin}"},
        "upstreams": [{"name": "echo", "address": f"127.0.0.1:{server.port}"}],
        "health": {"mode": "tcp"}, "log": {"level": "warn"}}))
    process = Process(Here, [kubelane, "run", "--config", config], folder / "pause.log")
    held = []
    try:
        wait_until(lambda: answers(port), "kubelane serves", 20)
        for _ in range(connections):
            held.append(socket.create_connection(("127.0.0.1", port), 10))
            held[-1].sendall(b"x")
            held[-1].recv(1)
        text = scrape(admin)
        carried = value(text, 'kubelane_upstream_connections{upstream="echo"}')
        if carried < connections or value(text, "process_open_fds") < 2 * connections:
            raise AssertionError(f"{carried:.0f} connections are carried")
        calm, busy, each = measure(process.pid, admin, Pinger(port))
    finally:
        for client in held:
            client.close()
        process.kill()
        server.stop()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    note = (f"{each * 1e3:.2f} ms of the loop each; pings p50 {statistics.median(calm) * 1e3:.2f} -> "
            f"{statistics.median(busy) * 1e3:.2f} ms, p99 {at(calm, 0.99):.2f} -> {at(busy, 0.99):.2f} ms")
    if each > MOST:
        raise AssertionError(note)
    return note


def at(times, share):
    return times[int(len(times) * share)] * 1e3


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as client:
            client.settimeout(2)
            client.sendall(b"x")
            return client.recv(1) == b"x"
    except OSError:
        return False
