"""What the page is like to use: live and not live, by keyboard, by a screen reader, in both themes, under attack."""

import contextlib
import signal
import time

from lab import faults
from lab.process import wait_until

import page
from states import More, agree

ADDRESS = "http://127.0.0.1:8081/"
NASTY = '<img src=x onerror="window.pwned=1">\'"&amp;<script>window.pwned=1</script>'
CHECKS = {}

# Text on the page and what it is seen against, as [contrast, text, colours].
CONTRASTS = r"""
const parse = (colour) => { const n = colour.match(/[\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3]));
function ground(node) {
  const stack = [];
  for (let n = node; n; n = n.parentElement) stack.push(parse(getComputedStyle(n).backgroundColor));
  return stack.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
}
function opacity(node) {
  let value = 1;
  for (let n = node; n; n = n.parentElement) value *= getComputedStyle(n).opacity;
  return value;
}
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !node.checkVisibility() || node.closest("script, style, .hidden, caption")) continue;
  const under = ground(node), colour = parse(getComputedStyle(node).color);
  colour[3] *= opacity(node);
  const [a, b] = [light(over(colour, under)), light(under)].sort((x, y) => y - x);
  found.push([(a + 0.05) / (b + 0.05), walker.currentNode.textContent.trim().slice(0, 40), `${colour} on ${under}`]);
}
return found;
"""
FOCUS = r"""
const node = document.activeElement, style = getComputedStyle(node), box = node.getBoundingClientRect();
return {what: node === document.body ? "" : node.id || node.getAttribute("href") || node.getAttribute("aria-label") ||
          node.getAttribute("aria-labelledby") || node.tagName,
        outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth), size: box.width * box.height};
"""


def check(function):
    CHECKS[function.__name__.replace("_", "-")] = function
    return function


def expect(claim, message):
    if not claim:
        raise AssertionError(message)


@check
def newcomer(stage):
    """the first answer says which server is down, why, since when, and whether another may be lost"""
    with stage.serving(More(stage)) as lane, faults.unplugged(stage.rack.servers[1].host):
        wait_until(lambda: lane.states().get("cp2") == "dead", "cp2 is dead", 20)
        stage.browser.open(ADDRESS)
        wait_until(lambda: page.read(stage.browser)["body"] == "fresh", "the page is live", 2)
        seen = page.read(stage.browser)
        said = " ".join(seen["headline"])
        for part in ("2 of 3 API servers are ready.", "cp2 is down: no answer from its host (dead), since ", " s).",
                     "2 of 3 members ready: one more failure loses quorum; the cluster can lose no other."):
            expect(part in said, f"{part!r} is not in {said!r}")
        expect(seen["title"].startswith("2/3 ready"), seen["title"])
        expect("cp2" in seen["changes"][0] and "dead" in seen["changes"][0], seen["changes"])
        expect("without an answer" in seen["servers"][1]["chart"], seen["servers"][1])
        expect(seen["servers"][0]["chart"].startswith("last "), seen["servers"][0])
        expect(seen["servers"][0]["expiry"].startswith("in 29 days"), seen["servers"][0])
    return said


@check
def trial(stage):
    """observe mode and external etcd are said; so is panic, when every server is down"""
    options = ("failover: {mode: observe}", "cluster: {etcd: external}")
    with stage.serving(More(stage, options=options)) as lane, contextlib.ExitStack() as down:
        wait_until(lambda: page.read(stage.browser)["self"].get("Mode") == "observe: closes nothing", "it is said", 3)
        seen = page.read(stage.browser)
        for part in ("etcd is external", "Observe mode: "):
            expect(any(part in sentence for sentence in seen["headline"]), f"{part!r}: {seen['headline']}")
        expect(seen["quorum"] == {"Topology": "external: its members are not seen from here"}, seen["quorum"])
        agree(stage.browser, lane)
        for server in stage.rack.servers:
            down.enter_context(faults.killed(server))
        wait_until(lambda: page.read(stage.browser)["self"]["Panic mode"].startswith("on"), "panic is shown", 4)
        expect("every one is tried" in page.read(stage.browser)["headline"][0], page.read(stage.browser)["headline"])
        agree(stage.browser, lane)
    return "observe, external, panic"


class Fallen(More):
    """Its configuration is broken, the last good one is kept."""

    def configuration(self):
        state = self.site.folder / "state"
        state.mkdir(exist_ok=True)
        (state / "last-good.yaml").write_text(super().configuration())
        return "version: 1\nupstreams: [\n"

    def command(self):
        return ["env", f"STATE_DIRECTORY={self.site.folder / 'state'}", *super().command()]


@check
def fallback(stage):
    """a configuration that cannot be used is said, with its name"""
    with stage.serving(Fallen(stage)) as lane:
        wait_until(lambda: "cannot be used" in page.read(stage.browser)["self"].get("Configuration", ""), "it is said", 3)
        seen = page.read(stage.browser)
        expect(str(lane.config) in seen["self"]["Configuration"], seen["self"])
        expect(any("The configuration file cannot be used" in s for s in seen["headline"]), seen["headline"])
    return seen["self"]["Configuration"].partition(":")[0]


@check
def stopped_and_started(stage):
    """kubelane stopped: the page says since when, and is live again when kubelane is"""
    with stage.serving(More(stage)):
        wait_until(lambda: page.read(stage.browser)["body"] == "fresh", "the page is live", 3)
    began = time.monotonic()
    wait_until(lambda: page.read(stage.browser)["body"] == "stale", "the page says that it is stale", 5)
    took = time.monotonic() - began
    seen = page.read(stage.browser)
    expect("kubelane has not answered since " in seen["trouble"], seen["trouble"])
    expect("not live since" in seen["live"], seen["live"])
    expect(stage.browser.run("return getComputedStyle(document.querySelector('main')).filter") == "grayscale(1)",
           "what is old is not grey")
    with stage.serving(More(stage)):
        wait_until(lambda: page.read(stage.browser)["body"] == "fresh", "the page is live again", 2)
    return f"said so after {took:.1f} s"


@check
def frozen(stage):
    """kubelane hangs: the page says so"""
    with stage.serving(More(stage)) as lane:
        wait_until(lambda: page.read(stage.browser)["body"] == "fresh", "the page is live", 3)
        lane.process.signal(signal.SIGSTOP)
        began = time.monotonic()
        wait_until(lambda: page.read(stage.browser)["body"] == "stale", "the page says that it is stale", 5)
        took = time.monotonic() - began
        lane.process.signal(signal.SIGCONT)
        wait_until(lambda: page.read(stage.browser)["body"] == "fresh", "the page is live again", 4)
    return f"said so after {took:.1f} s"


@check
def hidden(stage):
    """in a tab that is not seen nothing is asked; seen again, it is live at once"""
    with stage.serving(More(stage)):
        wait_until(lambda: page.read(stage.browser)["body"] == "fresh", "the page is live", 3)
        before = stage.browser.new_tab()
        time.sleep(1.5)  # what was under way
        stage.browser.collect()
        time.sleep(3)
        asked = [address for address in stage.browser.collect()[0] if address.startswith(ADDRESS)]
        stage.browser.close_tab()
        stage.browser.show_tab(before)
        stage.browser.devtools("Page.bringToFront")
        expect(not asked, f"asked while hidden: {asked}")
        wait_until(lambda: page.read(stage.browser)["body"] == "fresh", "the page is live", 2)
        stage.browser.collect()
        wait_until(lambda: stage.browser.collect()[0], "the page asks again", 2)
    return "0 questions in 3 s"


@check
def keyboard(stage):
    """everything that can be used is reached by Tab, seen when it is, and used by Enter or Space"""
    browser = stage.browser
    with stage.serving(More(stage)):
        for server in stage.rack.servers:  # more changes than are shown at first
            with faults.killed(server):
                wait_until(lambda: stage.lane.states().get(server.name) == "refused", f"{server.name} refuses", 10)
            wait_until(stage.lane.serves, "all are ready again", 20)
        browser.open(ADDRESS)
        wait_until(lambda: page.read(browser)["body"] == "fresh", "the page is live", 3)
        reached = []
        for _ in range(12):
            browser.press("Tab")
            focus = browser.run(FOCUS)
            if not focus["what"]:
                break
            reached.append(focus["what"])
            expect(focus["outline"] >= 2 and focus["size"] > 0, f"not to be seen when focused: {focus}")
            if focus["what"] == "pause":
                browser.press("Space")
                expect(page.read(browser)["body"] == "paused", "Space does not pause")
                browser.press("Enter")
                expect(page.read(browser)["body"] == "fresh", "Enter does not go on")
            if focus["what"] == "more":
                few = len(page.read(browser)["changes"])
                browser.press("Enter")
                expect(len(page.read(browser)["changes"]) > few, "Enter does not show more")
        wanted = ["pause", "servers-title", "Last state changes", "more", "/status", "/events", "/metrics", "/readyz", "/livez"]
        expect(reached == wanted, f"reached {reached}")
    return " → ".join(reached)


@check
def screen_reader(stage):
    """tables, headers, images and live regions are what they look like"""
    with stage.serving(More(stage)), faults.etcd_failed(stage.rack.servers[:1]):
        wait_until(lambda: stage.lane.states().get("cp1") == "not_ready", "cp1 is not ready", 10)
        wait_until(lambda: "not ready" in " ".join(page.read(stage.browser)["headline"]), "it is shown", 2)
        nodes = stage.browser.devtools("Accessibility.getFullAXTree")["nodes"]
        announced = page.read(stage.browser)["announced"]
    expect("cp1 is not ready: etcd" in announced, f"announced: {announced}")
    found = {}
    for node in nodes:
        if not node.get("ignored"):
            found.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    for role, name in (("table", "API servers as this node sees them"), ("rowheader", "cp1"),
                       ("columnheader", "State"), ("status", ""), ("main", ""), ("banner", ""),
                       ("navigation", "Other pages"), ("button", "Pause"), ("heading", "API servers")):
        expect(any(name in each for each in found.get(role, [])), f"no {role} {name!r}: {found.get(role)}")
    charts = [name for name in found.get("image", []) + found.get("img", []) if name.startswith("last ")]
    expect(len(charts) == 3, f"charts: {charts}")
    nameless = [role for role in ("image", "img", "button", "link", "table", "region") for name in found.get(role, []) if not name]
    expect(not nameless, f"without a name: {nameless}")
    return f"{len(nodes)} nodes"


@check
def contrast(stage):
    """text stands out from its ground by 4.5 or more, in both themes, live and not"""
    worst = 99
    with stage.serving(More(stage)) as lane, faults.etcd_failed(stage.rack.servers[:1]), \
            faults.slow_answers(stage.rack.servers[2:], 3), stage.rack.load(stage.worker.name):
        wait_until(lambda: lane.states().get("cp1") == "not_ready" and lane.states().get("cp3") in ("slow", "hung"),
                   "cp1 is not ready, cp3 late", 20)
        time.sleep(1.5)
        for theme in ("light", "dark"):
            stage.browser.media(prefers_color_scheme=theme)
            worst = min(worst, *contrasts(stage.browser, theme))
    wait_until(lambda: page.read(stage.browser)["body"] == "stale", "the page says that it is stale", 5)
    for theme in ("dark", "light"):
        stage.browser.media(prefers_color_scheme=theme)
        worst = min(worst, *contrasts(stage.browser, theme + ", stale"))
    return f"worst {worst:.1f}"


def contrasts(browser, where):
    found = browser.run(CONTRASTS)
    expect(len(found) > 40, f"{where}: {len(found)} texts")
    low = [text for text in found if text[0] < 4.5]
    expect(not low, f"{where}: {low}")
    return [text[0] for text in found]


@check
def motion_and_size(stage):
    """no motion for who wants none; nothing runs out of a telephone's width"""
    browser = stage.browser
    animation = "return getComputedStyle(document.querySelector('#live'), '::before').animationName"
    with stage.serving(More(stage)):
        wait_until(lambda: page.read(browser)["body"] == "fresh", "the page is live", 3)
        expect(browser.run(animation) == "beat", browser.run(animation))
        browser.media(prefers_reduced_motion="reduce")
        expect(browser.run(animation) == "none", "it moves")
        browser.media()
        browser.size(390, 844)
        wide = browser.run("return document.documentElement.scrollWidth")
        browser.devtools("Emulation.clearDeviceMetricsOverride")
        expect(wide <= 390, f"{wide} of 390 pixels")
    return f"{wide} of 390 pixels"


# Every text that the page is told becomes HTML; a configuration could not say that, so the page is given it.
POISON = r"""
const genuine = window.fetch, nasty = arguments[0];
const poison = (value, key) => typeof value === "string" && !["state", "from", "to", "tone", "membership", "since", "at", "now",
    "started", "certificate_expiry"].includes(key) ? value + nasty
  : Array.isArray(value) ? value.map((each) => poison(each, key))
  : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, poison(v, k)])) : value;
window.fetch = async (...asked) => {
  const answer = await genuine(...asked);
  return {ok: true, json: async () => poison(await answer.json(), "")};
};
"""


def inert(browser, where):
    """Nothing that was told has become an element, let alone run."""
    expect(browser.run("return document.querySelectorAll('img, main script').length") == 0, f"{where} became HTML")
    expect(browser.run("return window.pwned") is None, f"{where} ran")


@check
def injection(stage):
    """what is told is text, whatever it holds; and the page's policy would not let HTML in it run"""
    browser = stage.browser
    with stage.serving(More(stage)) as lane:
        body = "[-]<img/src=x/onerror=window.pwned=1> failed: reason withheld\nreadyz check failed\n"
        with faults.told(stage.rack.servers[1:2], ready=(500, body)):
            wait_until(lambda: lane.states().get("cp2") == "not_ready", "it is not ready", 10)
            wait_until(lambda: "img/src?x/onerror" in "".join(page.read(browser)["headline"]), "it is shown", 2)
            inert(browser, "what an API server said")
        browser.run(POISON, NASTY)
        wait_until(lambda: NASTY in page.read(browser)["servers"][0]["name"], "it is shown", 3)
        seen = page.read(browser)
        for part in (seen["title"], seen["changes"][0], seen["headline"][0], seen["self"]["Version"], seen["announced"]):
            expect("<script>" in part, f"not there as text: {part}")
        inert(browser, "what kubelane said")
        complaints = [c for c in browser.collect()[1] if not is_expected(c)]
        expect(not complaints, f"{complaints}")
        browser.run("document.body.insertAdjacentHTML('beforeend', arguments[0])", NASTY)
        time.sleep(0.5)
        expect(browser.run("return window.pwned") is None, "the policy lets it run")
        refused = browser.collect()[1]
        expect(any("Content Security Policy" in c for c in refused), f"the policy is silent: {refused}")
        del browser.complaints[-len(refused):]  # which are wanted
        browser.open(ADDRESS)
    return "inert"


@check
def quiet(stage):
    """in all of this it asked nobody else, and its console stayed clean"""
    stage.browser.collect()
    others = sorted({address for address in stage.browser.requests if not address.startswith((ADDRESS, "data:"))})
    expect(not others, f"asked {others}")
    errors = [c for c in stage.browser.complaints if not is_expected(c)]
    expect(not errors, f"complained: {errors}")
    return f"{len(stage.browser.requests)} requests"


def is_expected(complaint):
    """That a kubelane that was stopped does not answer is told by the browser itself."""
    return "/status" in complaint and "net::ERR_" in complaint
