"""nginx and HAProxy, as kubespray sets them up on a worker and, HAProxy, as a careful hand tunes it."""

import subprocess

from .proxy import Proxy


def nginx_settings(addresses):
    """What a worker's nginx.conf has in any case."""
    servers = "\n".join(f"    server {address}:6443;" for address in addresses)
    return f"""error_log stderr notice;
worker_processes 2;
worker_rlimit_nofile 16384;
worker_shutdown_timeout 10s;
events {{
  multi_accept on;
  use epoll;
  worker_connections 8192;
}}
stream {{
  upstream kube_apiserver {{
    least_conn;
{servers}
  }}
  server {{
    listen 127.0.0.1:6443;
    proxy_pass kube_apiserver;
    proxy_timeout 10m;
    proxy_connect_timeout 1s;
  }}
}}
"""


class Nginx(Proxy):
    """It asks nobody: a server is bad for ten seconds after a client's dial to it failed."""
    settings = "as kubespray sets it"

    def command(self):
        return ["/usr/sbin/nginx", "-c", self.config, "-e", "stderr"]

    def configuration(self):
        return f"""
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
user root;
pid {self.config}.pid;
{nginx_settings([server.address for server in self.site.servers])}"""


class HAProxy(Proxy):
    settings = "as kubespray sets it"

    def command(self):
        return ["/usr/sbin/haproxy", "-db", "-f", self.config]

    def configuration(self):
        return f"""
global
  maxconn 4000
  log stderr local0 notice
defaults
  mode http
  log global
  option dontlognull
  option http-server-close
  option redispatch
  retries 5
  timeout http-request 5m
  timeout queue 5m
  timeout connect 30s
  timeout client 5m
  timeout server 15m
  timeout http-keep-alive 30s
  timeout check 30s
  maxconn 4000
frontend kube_api_frontend
  bind 127.0.0.1:6443
  mode tcp
  default_backend kube_api_backend
backend kube_api_backend
  mode tcp
  balance leastconn
  default-server inter 15s downinter 15s rise 2 fall 2 slowstart 60s maxconn 1000 maxqueue 256 weight 100
  option httpchk GET /healthz
  http-check expect status 200
{self.server_lines("  server {name} {address}:6443 check check-ssl verify none")}
"""


class TunedHAProxy(HAProxy):
    settings = "tuned by hand"

    def configuration(self):
        default = ("inter 1s fastinter 250ms fall 2 rise 2 on-marked-down shutdown-sessions "
                   "observe layer4 error-limit 1 on-error mark-down maxconn 1000")
        lines = super().configuration().splitlines()
        changed = {"  default-server": f"  default-server {default}",
                   "  option httpchk": "  option httpchk GET /readyz",
                   "  timeout connect": "  timeout connect 1s", "  timeout check": "  timeout check 1s"}
        for start, line in changed.items():
            lines = [line if old.startswith(start) else old for old in lines]
        return "\n".join(lines) + "\n"


def versions():
    nginx = subprocess.run(["/usr/sbin/nginx", "-v"], capture_output=True, text=True, check=True).stderr
    haproxy = subprocess.run(["/usr/sbin/haproxy", "-v"], capture_output=True, text=True, check=True).stdout
    return [f"nginx {nginx.split('/')[-1].strip()}", f"HAProxy {haproxy.split()[2]}"]
