"""1,500 workers, as far as Prometheus can tell: one page has the metrics of them all.

promtool looks at no more than ten thousand samples at once, so a fleet of this size needs a real Prometheus.
"""

import http.server
import threading
import time

from prometheus import Prometheus
from rule_tests import DAY, STATES

WORKERS = 1500
UPSTREAMS = ("cp1", "cp2", "cp3")
WELL = {"kubelane_ready": 1, "kubelane_panic_mode": 0, "kubelane_config_fallback": 0, "kubelane_stored_connections": 20,
        "kubelane_stored_connections_limit": 508, "kubelane_unrestored_connections_total": 0,
        'kubelane_control_plane_quorum{kind="members"}': 3}


def page(dead=()):
    """The exposition of all workers, to each of which these upstreams are dead."""
    lines, expiry = [], int(time.time()) + 300 * DAY
    for worker in range(WORKERS):
        values = dict(WELL)
        values['kubelane_control_plane_quorum{kind="spare"}'] = 1 - len(dead)
        for upstream in UPSTREAMS:
            now = "dead" if upstream in dead else "ready"
            for state in STATES:
                values[f'kubelane_upstream_state{{state="{state}",upstream="{upstream}"}}'] = int(state == now)
            values[f'kubelane_upstream_certificate_expiry_timestamp_seconds{{upstream="{upstream}"}}'] = expiry
        for name, value in values.items():
            own = f'instance="worker{worker}"'
            series = f"{name[:-1]},{own}}}" if name.endswith("}") else f"{name}{{{own}}}"
            lines.append(f"{series} {value}")
    return ("\n".join(lines) + "\n").encode()


class Exporter:
    def __init__(self):
        self.page = page()
        exporter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(exporter.page)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def target(self):
        return f"127.0.0.1:{self.server.server_port}"


def check(programs, folder, rules, becomes, alert):
    """`becomes(server, alerts)` waits until exactly those fire; `alert` is the one of a dead server."""
    folder.mkdir()
    with Exporter() as workers, Prometheus(programs, folder, rules, workers.target, every=5) as server:
        seen = server.query("cluster:kubelane_workers:count")
        if not seen or float(seen[0]["value"][1]) != WORKERS:
            raise AssertionError(f"workers: {seen}")
        time.sleep(20)
        becomes(server, [])
        workers.page = page(dead=("cp2",))
        becomes(server, [alert])
        time.sleep(20)
        if len(server.raw_alerts()) != 1:
            raise AssertionError(f"not one alert: {server.alerts()}")
        return f"{WORKERS} workers, 1 alert"
