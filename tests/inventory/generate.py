"""Inventories made at random, of shapes that people write and some that they should not."""

import json
import random

GROUPS = ["kube_control_plane", "etcd", "kube_node", "k8s_cluster", "calico_rr", "rack_a", "rack-b"]
HOSTS = ["cp1", "cp2", "cp3", "w1", "w2", "node.example.internal", "10.0.0.9", "fd00::9"]
PATTERNS = ["n[1:3]", "n[01:03]", "m[a:c]", "k[1:9:4]", "x[1:2]-[a:b]", "p[1:2]:2222", "h7:22"]
KEYS = ["ip", "access_ip", "zone", "port", "flag", "labels", "ansible_port", "text"]
LITERALS = ["10.20.0.1", "6443", "-5", "1.5", "True", "false", "None", "010", "0x1f", "'a b'",
            "\"quoted\"", "[1,2]", "{'a':1}", "a=b", "1e3", "1_0", "x#y", "{{v}}", "yes", "", "fd00::1",
            "(1,)", "'unclosed-not'", "v1.30.4", "1,2", "~", "b'x'", "'a' 'b'"]
SCALARS = ["10.20.0.1", 6443, 1.5, True, None, "yes", "010", "text # no", "", [1, "b"], {"k": [None]},
           "{{ v }}", "0x1f", "1:30", "2026-08-01", "~", "fd00::1", "- a"]
YAML_WORDS = ["yes", "off", "010", "0x1F", "1:30", "1_000", "1.5e+3", "1e3", ".inf", "~", "null", "''",
              "'on'", "\"a\\tb\"", "2026-08-01", "[a, b]", "{a: 1}", "10.0.0.1", "fd00::1", "!!str 5", "=x",
              "|\n      block", "", "08", "0o17", "+1", "-.5", "1."]


def quoted(random_, literal):
    if any(c in literal for c in " \"'") and random_.random() < 0.8:
        return '"' + literal.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return literal


def ini_line(r, kind, lower):
    if kind == ":children":
        return r.choice(lower if r.random() < 0.97 else GROUPS) + r.choice(["", "", "  # note"])
    if kind == ":vars":
        return (r.choice(KEYS) + r.choice(["=", " = "]) + r.choice(LITERALS) +
                r.choice(["", "", " # note"]))
    words = [r.choice(HOSTS + PATTERNS)]
    for _ in range(r.randint(0, 3)):
        words.append(r.choice(KEYS) + "=" + quoted(r, r.choice(LITERALS)))
    return r.choice(["", "", "  "]) + r.choice([" ", "  "]).join(words) + r.choice(["", "", " # note", "\t"])


def ini(r):
    """Sections in any order; a group's children are later in `groups`, so mostly without a loop."""
    groups = r.sample(GROUPS, r.randint(2, 5))
    sections = [(group, "") for group in groups if r.random() < 0.8] or [(groups[-1], "")]
    declared = [group for group, _ in sections]
    for i, group in enumerate(groups):
        lower = [g for g in groups[i + 1:] if g in declared]
        if lower and r.random() < 0.4:
            sections.append((group, ":children"))
        if group in declared and r.random() < 0.4:
            sections.append((group, ":vars"))
    r.shuffle(sections)
    lines = r.sample(HOSTS, r.randint(0, 2))
    for group, kind in sections:
        lines.append(f"[{group}{kind}]" + r.choice(["", "", "  # note"]))
        lower = [g for g in groups[groups.index(group) + 1:] if g in declared]
        lines += [ini_line(r, kind, lower) for _ in range(r.randint(0, 4))]
        if r.random() < 0.2:
            lines.append(r.choice(["", "# note", "; note"]))
    if r.random() < 0.08:
        lines.insert(r.randint(0, len(lines)), r.choice(["[bad group]", "h1 x", "a b = c", "[g:odd]",
                                                         "x[1:", "h 'a", "y[5:1]", "[1:2]"]))
    return "\n".join(lines) + "\n"


def yaml_group(r, depth):
    group = {}
    if r.random() < 0.8:
        hosts = r.sample(HOSTS[:6] + PATTERNS[:4], r.randint(1, 4))
        group["hosts"] = {h: r.choice([None, {r.choice(KEYS): r.choice(SCALARS)}]) for h in hosts}
    if r.random() < 0.4:
        group["vars"] = {k: r.choice(SCALARS) for k in r.sample(KEYS, 2)}
    if depth > 0 and r.random() < 0.6:
        below = GROUPS[3 - depth:][:4]  # mostly without a loop
        group["children"] = {g: yaml_group(r, depth - 1) for g in r.sample(below, r.randint(1, 2))}
    return group or r.choice([None, {}])


def plain(r, value, indent):
    """YAML text of a value; words that YAML 1.1 reads in its own way among it."""
    blanks = " " * indent
    if isinstance(value, dict) and value:
        return "\n" + "".join(f"{blanks}{k}:{plain(r, v, indent + 2)}" for k, v in value.items())
    if value is None:
        return r.choice(["", " ", " ~"]) + "\n"
    if isinstance(value, dict):
        return " {}\n"
    if r.random() < 0.01:
        return " " + r.choice(["a: b", "&a 1", "*a", "[1", "%x", "!odd 1"]) + "\n"
    if r.random() < 0.4 and indent > 4:
        return " " + r.choice(YAML_WORDS).replace("\n      ", "\n" + blanks + "  ") + "\n"
    return " " + json.dumps(value) + "\n"


def yaml(r):
    data = {g: yaml_group(r, 2) for g in r.sample(["all"] + GROUPS, r.randint(1, 3))}
    if r.random() < 0.2:
        return json.dumps(data)
    return r.choice(["", "---\n", "# note\n"]) + plain(r, data, 0).lstrip("\n")


def generate(seed):
    r = random.Random(seed)
    files, sources = {}, []
    for number in range(r.choice([1, 1, 1, 2])):
        folder = f"s{number}/"
        name = folder + r.choice(["hosts.ini", "hosts.yml", "hosts", "hosts.yaml"])
        is_yaml = name.endswith(("yml", "yaml")) or (name.endswith("hosts") and r.random() < 0.5)
        files[name] = yaml(r) if is_yaml else ini(r)
        sources.append(name if r.random() < 0.8 or name.endswith(".ini") else folder.rstrip("/"))
        for kind, of in (("group_vars", GROUPS + ["all", "ungrouped"]), ("host_vars", HOSTS)):
            for target in r.sample(of, r.randint(0, 3)):
                ending = r.choice([".yml", ".yaml", ".json", "", "/a.yml"])
                files[f"{folder}{kind}/{target}{ending}"] = json.dumps(
                    {k: r.choice(SCALARS) for k in r.sample(KEYS, 2)})
    return sources, files
