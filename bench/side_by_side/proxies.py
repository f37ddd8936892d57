"""The API servers' stand-in, and the proxies before it, each with its configuration."""

import json
import os
import pathlib
import subprocess
import urllib.request

from .process import Process

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER_PORT = 18100
PORTS = {"direct": SERVER_PORT, "nginx": 18101, "haproxy": 18102, "splice": 18103, "kubelane": 18104}
ADMIN = 18105
SERVERS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")  # one process that listens on all
ORDER = ("nginx", "haproxy", "splice", "kubelane")
WORDS = {"direct": "direct", "nginx": "nginx", "haproxy": "HAProxy", "splice": "+splice", "kubelane": "kubelane"}

# As kubespray sets its nginx-proxy up, but with one worker process instead of two, since what is
# measured runs on one core.
NGINX = """
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off; user root; error_log stderr error; pid {directory}/nginx.pid;
worker_processes 1; worker_rlimit_nofile 16384; worker_shutdown_timeout 10s;
events {{ multi_accept on; use epoll; worker_connections 16384; }}
stream {{
  upstream kube_apiserver {{ least_conn; {servers} }}
  server {{ listen 127.0.0.1:{port} backlog=4096; proxy_pass kube_apiserver; proxy_timeout 10m;
           proxy_connect_timeout 1s; }}
}}
"""
# As kubespray sets it up, but with one thread, and limits that let 4,000 idle connections in.
HAPROXY = """
global
  maxconn 5000
  nbthread 1
defaults
  mode http
  option dontlognull
  option http-server-close
  option redispatch
  {splice}
  retries 5
  timeout http-request 5m
  timeout queue 5m
  timeout connect 30s
  timeout client 5m
  timeout server 15m
  timeout http-keep-alive 30s
  timeout check 30s
  maxconn 5000
frontend kube_api_frontend
  bind 127.0.0.1:{port} backlog 4096
  mode tcp
  default_backend kube_api_backend
backend kube_api_backend
  mode tcp
  balance leastconn
  default-server inter 15s downinter 15s rise 2 fall 2 slowstart 60s maxconn 5000 maxqueue 256 weight 100
  option httpchk GET /healthz
  http-check expect status 200
  {servers}
"""
# The defaults: verified probes of /readyz, suspicion, byte counts, metrics.
KUBELANE = """
version: 1
listen: 127.0.0.1:{port}
admin: {{listen: "127.0.0.1:{admin}"}}
upstreams:
  {servers}
health: {{tls: {{ca_file: {directory}/server.crt}}}}
"""


class Stage:
    """One server, and the proxies that are started before it; all end together."""

    def __init__(self, directory, build):
        self.directory, self.build = directory, pathlib.Path(build)
        self.log = open(f"{directory}/log", "w")
        self.running = {}
        self.notes = []  # printed below the table
        make_certificate(directory)
        self.start_server()

    def start_server(self):
        self.server = Process("server", [str(self.build / "bench/bench_server"), str(SERVER_PORT),
                                         f"{self.directory}/server.crt", f"{self.directory}/server.key"], self.log)
        self.server.wait_for_port(SERVER_PORT)

    def command(self, name):
        def configured(text, form, joined="\n  ", **more):
            path = f"{self.directory}/{name}.conf"
            lines = joined.join(form.format(i=i + 1, address=f"{host}:{SERVER_PORT}")
                                for i, host in enumerate(SERVERS))
            pathlib.Path(path).write_text(text.format(directory=self.directory, port=PORTS[name], servers=lines,
                                                      admin=ADMIN, **more))
            return path

        if name == "nginx":
            return ["nginx", "-e", "stderr", "-c", configured(NGINX, "server {address};", " ")]
        if name == "kubelane":
            path = configured(KUBELANE, '- {{name: cp{i}, address: "{address}"}}')
            return [str(self.build / "kubelane"), "run", "--config", path]
        splice = "option splice-auto" if name == "splice" else ""
        form = "server cp{i} {address} check check-ssl verify none"
        return ["haproxy", "-db", "-f", configured(HAPROXY, form, splice=splice)]

    def start(self, name, **more):
        """Starts it and waits until it listens."""
        started = Process(name, self.command(name), self.log, **more)
        self.running[name] = started
        started.wait_for_port(PORTS[name])
        return started

    def stop(self, name):
        self.running.pop(name).stop()

    def close(self):
        for name in list(self.running):
            self.stop(name)
        self.server.stop()
        self.log.close()

    def counts(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{SERVER_PORT}/counts", timeout=10) as answer:
            return json.load(answer)


def make_certificate(directory):
    names = "DNS:kubernetes.default.svc,IP:127.0.0.1,IP:127.0.0.2,IP:127.0.0.3"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
                    "/CN=kube-apiserver", "-addext", f"subjectAltName={names}", "-keyout",
                    f"{directory}/server.key", "-out", f"{directory}/server.crt"],
                   check=True, capture_output=True)


def metric(series):
    """The value of one of kubelane's metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{ADMIN}/metrics", timeout=10) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(series + " "):
                return float(line.split()[-1])
    raise KeyError(series)


def versions(build):
    lines = []
    for command in (["uname", "-sr"], ["nginx", "-v"], ["haproxy", "-v"], ["wrk", "-v"],
                    [str(pathlib.Path(build) / "kubelane"), "--version"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines.append((done.stdout + done.stderr).splitlines()[0].strip())
    return lines


def machine():
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} cores, {model}; load average {load}"
