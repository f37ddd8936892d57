"""Every state of an API server: the page, the command line and the metrics say the same, the page within two seconds."""

import signal
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Callable

from lab import faults
from lab.certificates import Authority
from lab.process import wait_until
from lab.proxy import Kubelane

import page

LIMIT = 2    # seconds from when kubelane knows until the page shows it
KNOWN = 20   # seconds until kubelane knows


@dataclass
class State:
    name: str
    server: str        # whose state it is
    state: str
    cause: str         # is part of what is said
    says: str          # is part of the headline
    fault: Callable    # of the stage; a context
    lane: Callable = lambda stage: More(stage)  # what serves meanwhile
    membership: str = "configured"


def second(stage):
    return stage.rack.servers[1]


def impostor(stage):
    return faults.impostor(second(stage), Authority(stage.folder, "other"))


@contextmanager
def removed(stage):
    """cp2 is taken out of the configuration while clients use it all the time."""
    lane = stage.lane
    text = lane.config.read_text()
    lane.config.write_text("".join(line for line in text.splitlines(True) if "name: cp2" not in line))
    lane.process.signal(signal.SIGHUP)
    try:
        yield
    finally:
        lane.config.write_text(text)
        lane.process.signal(signal.SIGHUP)


class More(Kubelane):
    """On its defaults; or with one more upstream, which never becomes ready, or another file of authorities."""

    def __init__(self, stage, upstream="", ca=None, options=()):
        super().__init__(stage.rack, stage.binary, "kubelane", stage.worker, options=options)
        self.upstream, self.ca = upstream, ca

    def configuration(self):
        text = super().configuration().replace("health:\n", f"{self.upstream}health:\n", 1)
        return text.replace(str(self.site.authority.certificate), str(self.ca)) if self.ca else text

    def serves(self):
        own = [state for name, state in self.states().items() if name in ("cp1", "cp2", "cp3")]
        return own == ["ready"] * 3


def nameless(stage):
    return More(stage, '  - {name: cp4, address: "api.nowhere.invalid"}\n')


def unreachable(stage):
    return More(stage, '  - {name: cp4, address: "[2001:db8::14]"}\n')


def without_authority(stage):
    return More(stage, ca=stage.folder / "not-there-yet.crt")


STATES = [
    State("ready", "cp2", "ready", "", "All 3 API servers are ready", lambda s: nullcontext()),
    State("unauthorized", "cp2", "ready", "401", "cp2 is ready, with a reservation: 401",
          lambda s: faults.unauthorized([second(s)])),
    State("slow", "cp2", "slow", "timed out", "cp2 is slow", lambda s: faults.slow_answers([second(s)], 3)),
    State("shutting-down", "cp2", "shutting_down", "shutdown", "cp2 is shutting down",
          lambda s: faults.shutting_down([second(s)])),
    State("not-ready", "cp2", "not_ready", "etcd", "cp2 is not ready: etcd", lambda s: faults.etcd_failed([second(s)])),
    State("refused", "cp2", "refused", "refused", "cp2 is down: its host answers", lambda s: faults.killed(second(s))),
    State("hung", "cp2", "hung", "timed out", "cp2 is down: its host answers, but the API server does not",
          lambda s: faults.frozen(second(s))),
    State("dead", "cp2", "dead", "", "cp2 is down: no answer from its host", lambda s: faults.unplugged(second(s).host)),
    State("impostor", "cp2", "impostor", "certificate", "cp2 is not trusted", impostor),
    State("leaving", "cp2", "ready", "", "cp2 is leaving", removed, membership="leaving"),
    State("unresolved", "cp4", "unresolved", "no address", "cp4 is without an address", lambda s: nullcontext(), nameless),
    State("unknown", "cp4", "unknown", "unreachable", "cp4 is not known", lambda s: nullcontext(), unreachable),
    State("unverified", "cp2", "ready", "CA", "cp2 is ready, with a reservation", lambda s: nullcontext(),
          without_authority),
]


def check(state, stage):
    """A line about what was seen."""
    with stage.serving(state.lane(stage)) as lane, stage.rack.load(stage.worker.name), state.fault(stage):
        began = time.monotonic()
        wait_until(lambda: is_known(lane, state), f"kubelane knows: {state.name}", KNOWN, every=0.02)
        known = time.monotonic()
        wait_until(lambda: is_shown(stage.browser, state), f"the page shows: {state.name}", LIMIT, every=0.02)
        shown = time.monotonic()
        agree(stage.browser, lane)
    return f"known after {known - began:.1f} s, on the page {shown - known:.1f} s later"


def is_known(lane, state):
    upstream = lane.upstreams().get(state.server, {})
    return (upstream.get("state") == state.state and state.cause in upstream["cause"]
            and upstream["membership"] == state.membership)


def is_shown(browser, state):
    seen = page.read(browser)
    return (any(state.says in sentence for sentence in seen["headline"])
            and any(row["name"] == state.server and row["state"] == state.state and state.cause in row["cause"]
                    for row in seen["servers"]))


def agree(browser, lane):
    """All ways to ask say the same, as soon as nothing changed between two of the questions."""
    last = []

    def agreed():
        last[:] = page.disagreements(browser, lane)
        return not last

    try:
        wait_until(agreed, "agreement", 5, every=0.05)
    except TimeoutError:
        raise AssertionError("; ".join(last)) from None
