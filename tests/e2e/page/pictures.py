"""Pictures of the page with a server that is down, in both themes, for people to look at and for the README."""

import json
import time

from lab import faults
from lab.process import wait_until
from lab.proxy import Kubelane

import page

WIDTH, HEIGHT = 1120, 1060


class Remembering(Kubelane):
    """With a state directory that tells of an eventful hour, and a host name of its own."""

    def __init__(self, stage):
        super().__init__(stage.rack, stage.binary, "kubelane", stage.worker)
        self.state = stage.folder / "state"
        self.state.mkdir()
        (self.state / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in hour()))

    def command(self):
        # A host name and a place of the configuration of its own, which show on the page.
        prepare = f"hostname worker7; mount -t tmpfs none /etc; mkdir /etc/kubelane; cp {self.config} /etc/kubelane/config.yaml"
        return ["env", f"STATE_DIRECTORY={self.state}", "unshare", "--uts", "--mount", "sh", "-c", f'{prepare}; exec "$@"',
                "sh", self.binary, "run", "--config", "/etc/kubelane/config.yaml"]


def hour():
    """State changes of the last 55 minutes: a start, a restart of cp1, an etcd that was away."""
    story = [(55, "cp1", "unknown", "ready", ""), (55, "cp2", "unknown", "ready", ""), (55, "cp3", "unknown", "ready", ""),
             (38, "cp1", "ready", "shutting_down", "shutdown"), (37.6, "cp1", "shutting_down", "refused", "connection refused"),
             (36, "cp1", "refused", "ready", ""), (17, "cp3", "ready", "not_ready", "etcd"), (9, "cp3", "not_ready", "ready", "")]
    for minutes, upstream, before, after, cause in story:
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 60 * minutes))
        yield {"at": at, "upstream": upstream, "from": before, "to": after, "cause": cause}


def take(stage, folder):
    folder.mkdir(parents=True, exist_ok=True)
    browser = stage.browser
    browser.size(WIDTH, HEIGHT)
    with stage.serving(Remembering(stage)) as lane, stage.rack.load(stage.worker.name):
        time.sleep(25)
        with faults.unplugged(stage.rack.servers[1].host):
            wait_until(lambda: lane.states().get("cp2") == "dead", "cp2 is dead", 20)
            time.sleep(12)
            for name, theme, width in (("light", "light", WIDTH), ("dark", "dark", WIDTH), ("narrow", "dark", 400)):
                browser.media(prefers_color_scheme=theme)
                browser.size(width, HEIGHT)
                photograph(browser, "fresh", folder / f"{name}.png")
    browser.media(prefers_color_scheme="light")
    browser.size(WIDTH, HEIGHT)
    photograph(browser, "stale", folder / "stale.png")
    print(f"pictures: {folder}")
    return 0


def photograph(browser, state, path):
    time.sleep(1)  # it is laid out anew
    wait_until(lambda: page.read(browser)["body"] == state, f"the page is {state}", 10, every=0.05)
    browser.picture(path)
