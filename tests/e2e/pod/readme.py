"""The commands of deploy/static-pod/README.md: each block below a `<!-- run: NAME -->`, as it is printed there."""

import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "deploy/static-pod"
FENCED = r"(?:<!-- run: ([a-z-]+) -->\n)?^```[a-z]*\n(.*?)^```$"


class Readme:
    def __init__(self):
        self.text = (FOLDER / "README.md").read_text()
        self.blocks, self.done = {}, set()
        for name, commands in re.findall(FENCED, self.text, re.DOTALL | re.MULTILINE):
            if name:
                self.blocks[name] = commands
            elif not all(re.match(r"[A-Z]+=", line) for line in commands.splitlines()):
                raise RuntimeError(f"README.md: no test runs these commands:\n{commands}")

    def command(self, name, **variables):
        """What runs that block, in a shell that ends at the first failure."""
        self.done.add(name)
        return ["env", *(f"{key}={value}" for key, value in variables.items()),
                "bash", "-euo", "pipefail", "-c", self.blocks[name]]

    def mentions(self, words):
        return words in self.text

    def left_out(self):
        return sorted(set(self.blocks) - self.done)
