"""What was measured, as a table: medians, kubelane's ratio to the better of the others, the target."""

import statistics
from dataclasses import dataclass, field

from .proxies import ORDER, WORDS

PEERS = tuple(name for name in ORDER if name != "kubelane")
COLUMNS = ("direct", *ORDER)


@dataclass
class Figure:
    """One line: a figure of one row of the table, with the samples of every round."""
    row: str
    label: str
    digits: int = 1
    better: str = "lower"
    ratio: float | None = None  # the target, against the better of the others
    absolute: float | None = None  # or by itself
    samples: dict = field(default_factory=dict)

    def add(self, name, value):
        self.samples.setdefault(name, []).append(value)

    def median(self, name):
        return statistics.median(self.samples[name])

    def against_the_better(self):
        peers = [self.median(name) for name in PEERS if name in self.samples]
        if not peers or "kubelane" not in self.samples:
            return None
        best = min(peers) if self.better == "lower" else max(peers)
        return self.median("kubelane") / best if best > 0 else None

    def target(self):
        sign = "<=" if self.better == "lower" else ">="
        if self.ratio is not None:
            return f"{sign} {self.ratio:.2f} x"
        return f"{sign} {self.absolute:g}" if self.absolute is not None else ""

    def met(self):
        """None if there is no target."""
        if self.ratio is None and self.absolute is None:
            return None
        seen = self.median("kubelane") if self.absolute is not None else self.against_the_better()
        limit = self.absolute if self.absolute is not None else self.ratio
        if seen is None:
            return False
        return seen <= limit if self.better == "lower" else seen >= limit

    def cells(self):
        def cell(name):
            return f"{self.median(name):,.{self.digits}f}" if name in self.samples else ""

        ratio = self.against_the_better()
        verdict = {None: "", True: "met", False: "MISSED"}[self.met()]
        return [self.row, self.label, *(cell(name) for name in COLUMNS),
                "" if ratio is None else f"{ratio:.2f}", self.target(), verdict]


def render(figures):
    """Plain text that is a Markdown table too."""
    lines = [["work", "figure", *(WORDS[name] for name in COLUMNS), "ratio", "target", ""]]
    lines += [figure.cells() for figure in figures if figure.samples]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]

    def row(cells):
        parts = [cell.ljust(width) if i < 2 or i > len(COLUMNS) + 2 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(cells, widths))]
        return "| " + " | ".join(parts) + " |"

    rule = "|" + "|".join("-" * (width + 1) + (":" if 2 <= i <= len(COLUMNS) + 2 else "-")
                          for i, width in enumerate(widths)) + "|"
    return "\n".join([row(lines[0]), rule, *(row(line) for line in lines[1:])])
