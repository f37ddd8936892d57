"""A table: rows are faults, columns are proxies, a cell is the worst of its runs, kubelane's is held to bounds."""

import threading
from dataclasses import dataclass, field

KUBELANE = "kubelane"


@dataclass
class Cell:
    runs: int = 0
    worst: dict = field(default_factory=dict)  # measure -> number

    def add(self, measures):
        self.runs += 1
        for name, value in measures.items():
            self.worst[name] = max(self.worst.get(name, value), value)


@dataclass
class Row:
    name: str  # as it is asked for
    title: str
    bounds: dict  # measure -> the most that kubelane's cell may show
    cells: dict = field(default_factory=dict)  # column -> Cell
    problems: list = field(default_factory=list)  # what kept it from being measured

    def misses(self):
        cell = self.cells.get(KUBELANE)
        if not cell:
            return [*self.problems, "not measured"]
        return self.problems + [f"{measure} {show(cell.worst[measure])}, more than {show(bound)}"
                                for measure, bound in self.bounds.items() if cell.worst[measure] > bound]


class Table:
    """`measures` are those that are shown, in their order; `columns` are names of proxies -> headings."""

    def __init__(self, title, measures, columns, rows):
        self.title, self.measures, self.columns = title, measures, columns
        self.rows = {row.name: row for row in rows}
        self.lock = threading.Lock()

    def add(self, row, column, measures):
        with self.lock:
            self.rows[row].cells.setdefault(column, Cell()).add(measures)

    def problem(self, row, text):
        with self.lock:
            self.rows[row].problems.append(text)

    def failed(self):
        return sum(bool(row.misses()) for row in self.rows.values())

    def print(self, versions):
        """As Markdown, so that docs/benchmark.md shows what was printed."""
        print(f"\n### {self.title}\n\n{' / '.join(self.measures)}: the worst of (so many) runs.\n")
        print("| fault | " + " | ".join(self.columns.values()) + " | bound for kubelane | |")
        print("|---" * (len(self.columns) + 3) + "|")
        for row in self.rows.values():
            cells = [self._text(row.cells.get(column)) for column in self.columns]
            print(f"| {row.title} | {' | '.join(cells)} | {self._bounds(row)} | {'MISSED' if row.misses() else 'met'} |")
        print("\n" + "; ".join(versions))
        for row in self.rows.values():
            for miss in row.misses():
                print(f"missed: {row.name}: {miss}")

    def _text(self, cell):
        if not cell:
            return "–"
        return " / ".join(show(cell.worst[m]) for m in self.measures) + f" ({cell.runs})"

    def _bounds(self, row):
        return " / ".join("–" if m not in row.bounds else "0" if row.bounds[m] == 0 else f"≤ {show(row.bounds[m])}"
                          for m in self.measures)


def show(value):
    """Seconds are floats, everything else is counted."""
    return f"{value:.2f} s" if isinstance(value, float) else str(value)
