"""What a person sees on the status page, read out of a browser, and whether the other ways to ask agree with it."""

import json
import re
import subprocess

READ = r"""
const text = (node) => node ? node.textContent.trim() : "";
const texts = (selector) => [...document.querySelectorAll(selector)].map(text);
const pairs = (selector) => Object.fromEntries([...document.querySelectorAll(selector + " dt")].map(
  (term) => [text(term), text(term.nextElementSibling)]));
return {
  body: document.body.className, live: text(document.querySelector("#live")), title: document.title,
  trouble: text(document.querySelector("#trouble")), announced: text(document.querySelector("#announce")),
  headline: texts("#headline .said"),
  servers: [...document.querySelectorAll("#servers tbody tr")].map((row) => ({
    name: row.cells[0].firstChild.textContent, state: text(row.querySelector(".badge")).replaceAll(" ", "_"),
    cause: text(row.querySelector(".cause")), leaving: row.cells[1].textContent.includes("leaving"),
    connections: parseInt(row.cells[4].textContent), since: row.querySelector("time").dateTime,
    chart: row.querySelector(".chart") ? row.querySelector(".chart").getAttribute("aria-label") : "",
    expiry: text(row.cells[6]) })),
  quorum: pairs("#quorum"), self: pairs("#self"), changes: texts("#changes tbody tr"),
};
"""
SERIES = re.compile(r'^kubelane_(\w+?)(?:\{(.*)\})? (\S+)$', re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def read(browser):
    return browser.run(READ)


def metrics(kubelane):
    """name -> {labels: value}; labels are a sorted tuple of pairs."""
    found = {}
    for name, labels, value in SERIES.findall(kubelane.get("/metrics").decode()):
        pairs = [(key, re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text))
                 for key, text in LABEL.findall(labels)]
        found.setdefault(name, {})[tuple(sorted(pairs))] = float(value)
    return found


def command(kubelane, *arguments):
    """What the command line says, run on the same node; its exit status is 1 while kubelane is not ready."""
    done = subprocess.run(kubelane.worker.command(kubelane.binary, *arguments), capture_output=True, text=True, timeout=10)
    if done.returncode > 1:
        raise RuntimeError(f"kubelane {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def disagreements(browser, kubelane):
    """Where the page, `kubelane status --json` and /metrics differ; each asked once, so a change may be in between."""
    status = json.loads(command(kubelane, "status", "--json"))
    measured, page = metrics(kubelane), read(browser)
    return [*about_servers(status, measured, page), *about_all(status, measured, page)]


def about_servers(status, measured, page):
    if [u["name"] for u in status["upstreams"]] != [row["name"] for row in page["servers"]]:
        yield f"servers: {status['upstreams']}, on the page {page['servers']}"
        return
    for upstream, row in zip(status["upstreams"], page["servers"]):
        name = upstream["name"]
        for key in ("state", "cause", "since", "connections"):
            if upstream[key] != row[key]:
                yield f"{name}: {key} is {upstream[key]!r}, on the page {row[key]!r}"
        if (upstream["membership"] == "leaving") != row["leaving"]:
            yield f"{name}: membership {upstream['membership']}, on the page leaving {row['leaving']}"
        states = {dict(labels)["state"] for labels, value in measured["upstream_state"].items()
                  if dict(labels)["upstream"] == name and value == 1}
        if states != {upstream["state"]}:
            yield f"{name}: state {upstream['state']}, in the metrics {states}"
        connections = measured["upstream_connections"][(("upstream", name),)]
        if connections != upstream["connections"]:
            yield f"{name}: {upstream['connections']} connections, in the metrics {connections}"


def about_all(status, measured, page):
    panic = page["self"]["Panic mode"].startswith("on")
    if not status["panic"] == panic == bool(measured["panic_mode"][()]):
        yield f"panic {status['panic']}, on the page {panic}, in the metrics {measured['panic_mode']}"
    if status["ready"] != (page["self"]["Answers /readyz"] == "ready"):
        yield f"ready {status['ready']}, on the page {page['self']['Answers /readyz']}"
    quorum = {labels[0][1]: int(value) for labels, value in measured.get("control_plane_quorum", {}).items()}
    said = {key: value for key, value in (status["quorum"] or {}).items() if key != "verdict"}
    if said != quorum:
        yield f"quorum {status['quorum']}, in the metrics {quorum}"
    if quorum:
        left = page["quorum"]["Failures left"]
        shown = {"members": int(page["quorum"]["Members"]), "majority": int(page["quorum"]["Majority"]),
                 "ready": int(page["quorum"]["Ready"]),
                 "spare": -int(left.split()[1]) if left.startswith("none") else int(left)}
        if shown != quorum:
            yield f"quorum {quorum}, on the page {shown}"
    if [s["text"].rstrip(".") for s in status["headline"]] != [re.sub(r", since .*", "", s).rstrip(".")
                                                              for s in page["headline"]]:
        yield f"headline {status['headline']}, on the page {page['headline']}"
