"""A Prometheus of our own, with its data in the laboratory's folder, on the loopback alone."""

import json
import re
import urllib.parse
import urllib.request

from lab.process import Process, wait_until
from stand import Here, free_port

CONFIG = """
global: {{scrape_interval: {every}s, scrape_timeout: {every}s, evaluation_interval: {every}s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: kubelane
    honor_labels: true  # one page may have many workers
    static_configs: [{{targets: ["{target}"]}}]
"""


def shorten(rules):
    """Durations of alerts: minutes become two seconds, so that each is seen to be pending first."""
    return re.sub(r"\bfor: (\d+)m\b", lambda found: f"for: {int(found[1]) * 2}s", rules)


class Prometheus:
    def __init__(self, programs, folder, rules, target, every=1):
        """Scrapes the target, and looks at the rules, every so many seconds."""
        self.programs, self.folder, self.rules, self.target, self.every = programs, folder, rules, target, every
        self.address = f"127.0.0.1:{free_port()}"

    def __enter__(self):
        rules = self.folder / "rules.yml"
        rules.write_text(shorten(self.rules.read_text()))
        config = self.folder / "prometheus.yml"
        config.write_text(CONFIG.format(rules=rules, target=self.target, every=self.every))
        self.process = Process(Here, [self.programs / "prometheus", f"--config.file={config}",
                                      f"--storage.tsdb.path={self.folder / 'data'}", "--log.level=warn",
                                      f"--web.listen-address={self.address}"],
                               self.folder / "prometheus.log", env={"GOMAXPROCS": "1"})
        try:
            wait_until(self.is_up, "Prometheus scrapes, and has looked at the rules", 120)
        except BaseException:
            self.process.kill()
            raise
        return self

    def __exit__(self, *_):
        self.process.stop()

    def is_up(self):
        try:
            return bool(self.query("cluster:kubelane_workers:count"))
        except OSError:
            return False

    def get(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def values_of(self, label, metric):
        return self.get(f"label/{label}/values", **{"match[]": metric})

    def raw_alerts(self):
        return self.get("alerts")["alerts"]

    def alerts(self):
        """(name, upstream) -> pending or firing."""
        return {(each["labels"]["alertname"], each["labels"].get("upstream", "")): each["state"]
                for each in self.raw_alerts()}

    def annotations(self, name):
        return next(each["annotations"] for each in self.raw_alerts() if each["labels"]["alertname"] == name)
