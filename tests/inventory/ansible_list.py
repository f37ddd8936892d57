"""Cases of the corpus, and what the installed ansible-inventory makes of them."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
ANSWERS = HERE / "answers"

# A home without settings: the answers are those of Ansible's defaults.
EMPTY = tempfile.TemporaryDirectory()
pathlib.Path(EMPTY.name, "ansible.cfg").touch()


def read_case(text):
    """A case: `sources: A B`, remarks, then files, each after a line `-- PATH --`."""
    sources, files, name = [], {}, None
    for line in text.splitlines(keepends=True):
        marker = re.fullmatch(r"-- (\S+) --\n", line)
        if marker:
            name = marker[1]
            files[name] = ""
        elif name is not None:
            files[name] += line
        elif line.startswith("sources:"):
            sources = line.split(":", 1)[1].split()
    return sources or [next(iter(files))], files


def unpack(files, directory):
    for name, text in files.items():
        path = pathlib.Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def ansible_list(sources, directory):
    """What ansible-inventory --list says: the JSON, the files it refuses, whether it gave up."""
    # Without a directory of playbooks it would read group_vars in the current directory too.
    command = ["ansible-inventory", "--list", "--playbook-dir", EMPTY.name]
    for source in sources:
        command += ["-i", source]
    environment = dict(os.environ, ANSIBLE_NOCOLOR="1", COLUMNS="10000", HOME=EMPTY.name,
                       ANSIBLE_CONFIG=EMPTY.name + "/ansible.cfg", LC_ALL="C.UTF-8")
    run = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    noise = " ".join(run.stderr.split())
    refused = re.findall(r"Unable to parse (\S+) as an inventory source", noise)
    prefix = os.path.realpath(directory) + "/"
    refused = sorted({r.removeprefix(prefix).removeprefix(str(directory) + "/") for r in refused})
    # A directory none of whose files can be read is named too; its files were before it.
    refused = [r for r in refused if not pathlib.Path(directory, r).is_dir()]
    failed = run.returncode != 0
    return {"refused": refused, "failed": failed,
            "list": None if failed else json.loads(run.stdout)}


def answer(text):
    sources, files = read_case(text)
    with tempfile.TemporaryDirectory() as directory:
        unpack(files, directory)
        return ansible_list(sources, directory)


def normalised(result):
    return json.dumps(result, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
