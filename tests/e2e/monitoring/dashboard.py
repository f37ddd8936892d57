"""The dashboard: is it one that Grafana takes, and does every query of it return data?"""

import json
import math
import re

VARIABLES = {"cluster": ".*", "upstream": ".*", "instance": ".*", "__rate_interval": "3m"}  # dials are rare
KINDS = {"row", "stat", "timeseries", "table", "state-timeline"}
WIDTH = 24


def load(path):
    return json.loads(path.read_text())


def expect(claim, why):
    if not claim:
        raise AssertionError(why)


def check_form(path):
    board = load(path)
    names = {each["name"] for each in board["templating"]["list"]}
    expect(board["schemaVersion"] >= 39 and board["title"] and board["id"] is None, "it is not one to import")
    ids = [panel["id"] for panel in board["panels"]]
    expect(len(set(ids)) == len(ids), "two panels have one id")
    taken = set()
    for panel in board["panels"]:
        expect(panel["type"] in KINDS, f"{panel['title']}: no panel of Grafana's is called {panel['type']}")
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        expect(place["x"] + place["w"] <= WIDTH and not cells & taken, f"{panel['title']}: is not where it has room")
        taken |= cells
        if panel["type"] == "row":
            continue
        expect(panel["description"].endswith("."), f"{panel['title']}: has no description")
        expect(panel["targets"], f"{panel['title']}: asks nothing")
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            expect(used <= names, f"{panel['title']}: {used - names} are no variables of it")
    return f"{len(ids)} panels"


def fill_in(expression):
    return re.sub(r"\$(\w+)", lambda found: VARIABLES[found[1]], expression)


def check(path, server):
    board, asked, empty = load(path), 0, []
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            asked += 1
            result = server.query(fill_in(target["expr"]))
            if not any(not math.isnan(float(sample["value"][1])) for sample in result):
                empty.append(f"{panel['title']}: {target['expr']}")
    for variable in board["templating"]["list"]:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", ""))
        if found and found[2] != "cluster":
            asked += 1
            if not server.values_of(found[2], fill_in(found[1])):
                empty.append(f"variable {variable['name']}")
    expect(not empty, "no data: " + "; ".join(empty))
    return f"{asked} queries"
