"""Where some rows of a step came from: the rows of the input without which they would not be there.

The plan runs over the stretch again and again, each time without some of its rows. A half of which nothing is
needed is set aside at once, so that few needed rows among n take about log n runs each.

Law: without any one of the groups that are named, some of the chosen rows are missing. A group is one row, or
several of which any one would do: the same click, counted once.

>>> import caesura as cz
>>> rows = [{"ts": 3, "id": 7}, {"ts": 4, "id": 8}, {"ts": 5, "id": 9}]
>>> both = cz.from_rows(rows, time="ts").where(cz.col("id") > 7).tumbling(10).agg(n=cz.count())
>>> print(both.trace_back("n = 2"))
chosen: 1 row of step 'tumbling' with n = 2
needed: 2 of 3 rows of the input; they alone give it
  row 1 of 'read': 4 8
  row 2 of 'read': 5 9
step 'tumbling' (10; n=count()): emits 3 events because of them
  0  10  | 1 | +   by row 1 of 'read'
  0  10  | 1 | -   by row 2 of 'read'
  0  10  | 2 | +   by row 2 of 'read'
step 'where' (id > 7): emits 2 events because of them
  4  5  | 8 | +   by row 1 of 'read'
  5  6  | 9 | +   by row 2 of 'read'
step 'read': emits 2 events because of them
  4  5  | 8 | +   by row 1 of 'read'
  5  6  | 9 | +   by row 2 of 'read'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from caesura.errors import looked_up
from caesura.events import History, Page
from caesura.events.draw import shown_value
from caesura.events.history import Row
from caesura.misuse import checked_methods
from caesura.plan import walk
from caesura.punctuation import Pattern
from caesura.punctuation.parsing import parse_punctuation
from caesura.runtime.graph.edge import wanted
from caesura.runtime.inspect.choice import InputRow, ListedRows
from caesura.runtime.inspect.subset import input_rows, outcome
from caesura.runtime.inspect.trace import StepTrace, trace_rows
from caesura.runtime.query.recording import Recording
from caesura.runtime.query.result import query_of

MAX_RUNS = 400
"""So often the plan runs at most; what is not told apart by then stays together."""
SHOWN = 20
"""So many groups are printed; of more, the first."""


@dataclass(frozen=True)
class NeededRow:
    """A row of the input, with its values."""

    row: InputRow
    values: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.row}: {' '.join(shown_value(value) for value in self.values.values())}"

    def to_json(self) -> dict[str, Any]:
        name = {"step": self.row.step, "lane": self.row.lane, "offset": self.row.offset}
        return name | {"row": self.values}


@checked_methods
@dataclass(frozen=True)
class RowOrigin:
    """The rows of the input that some rows of a step came from."""

    step: str
    chosen: str
    rows: int
    """How many rows were chosen."""
    of: int
    """How many rows the input has."""
    needed: list[list[NeededRow]]
    """Groups, without any of which some of the chosen rows are missing; most are one row."""
    alone: bool
    """Whether the needed rows alone give the chosen ones."""
    complete: bool
    """Whether all rows were told apart, or the runs that are allowed did not suffice."""
    steps: list[StepTrace] = field(default_factory=list)
    """What each step said because of the needed rows, from the chosen one back to the sources."""

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        yield f"chosen: {self.rows} row{'s' * (self.rows != 1)} of step '{self.step}' with {self.chosen}"
        if not self.rows:
            return
        yield self.verdict
        for group in self.needed[:SHOWN]:
            if len(group) > 1:
                yield f"  {'any' if self.complete else 'some'} of these {len(group)}:"
            yield from (("    " if len(group) > 1 else "  ") + str(row) for row in group[:SHOWN])
        if len(self.needed) > SHOWN:
            yield f"  ... {len(self.needed) - SHOWN} more"
        yield from (line for step in self.steps for line in step.lines())

    @property
    def verdict(self) -> str:
        """How many rows are needed, in words."""
        count = sum(map(len, self.needed))
        alone = "they alone give it" if self.alone else "others take part"
        more = "" if self.complete else f"; not told apart further after {MAX_RUNS} runs"
        return f"needed: {count} of {self.of} rows of the input; {alone}{more}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, Any]:
        """What was found as plain values, for programs.

        Returns
        -------
        dict
            The chosen rows, the groups of needed ones, and by step what it said because of them.

        Examples
        --------
        >>> import caesura as cz
        >>> slow = cz.from_rows([{"ts": 3, "mph": 12}], time="ts").where("mph < 30")
        >>> slow.trace_back("mph = 12").to_json()["needed"]
        [[{'step': 'read', 'lane': 0, 'offset': 0, 'row': {'ts': 3, 'mph': 12}}]]
        """
        needed = [[row.to_json() for row in group] for group in self.needed]
        own = {"step": self.step, "chosen": self.chosen, "rows": self.rows, "of": self.of}
        found = {"needed": needed, "alone": self.alone, "complete": self.complete}
        return own | found | {"steps": [step.to_json() for step in self.steps]}


def trace_back(recording: Recording, rows: str | Pattern, *, step: str | None = None) -> RowOrigin:
    """The rows of a recording that those rows of a step came from which match."""
    asked = rows if isinstance(rows, Pattern) else parse_punctuation(rows).pattern
    query = query_of(recording.plan(), "changes", None, None)
    label = query.parts.ends["out"].label if step is None else step
    cell = looked_up({cell.label: cell for cell in query.graph.cells}, label, "step")
    pattern = asked.check(cell.node.schema, ticks=("LE", "RE"))
    chosen = _matching(outcome(recording, step=label), pattern)
    everything = input_rows(recording)
    search = _NeededRows(recording, label, chosen)
    if not chosen:
        return RowOrigin(label, str(asked), 0, len(everything), [], alone=False, complete=True)
    groups = search.needed(everything)
    rows_needed = frozenset(row for group in groups for row in group)
    others = frozenset(everything) - rows_needed
    behind = {own.fingerprint for own in walk(cell.node)}
    labels = {c.label for c in query.graph.cells if c.node.fingerprint in behind}
    traced = trace_rows(recording.plan(), ListedRows(rows_needed), "needed", fed=recording.fed)
    return RowOrigin(
        label,
        str(asked),
        chosen.total(),
        len(everything),
        _with_values(recording, groups),
        alone=not others or not search.missing(others),
        complete=search.complete,
        steps=[one for one in reversed(traced.steps) if one.step in labels],
    )


def _matching(history: History, pattern: Pattern) -> Counter[Row]:
    page = history.page
    return History.of([page.filter(wanted(page, [pattern]))], history.schema).bag


@dataclass
class _NeededRows:
    """Runs the plan without some rows, and sees whether the chosen ones are still there."""

    recording: Recording
    step: str
    chosen: Counter[Row]
    runs: int = 0
    complete: bool = True

    def missing(self, rows: frozenset[InputRow]) -> bool:
        """Whether some of the chosen rows are not there without these."""
        self.runs += 1
        left = outcome(self.recording, without=ListedRows(rows), step=self.step)
        return bool(self.chosen - left.bag)

    def needed(self, rows: Sequence[InputRow]) -> list[list[InputRow]]:
        """The groups among these rows that the chosen ones need."""
        if rows and self._spent:
            self.complete = False
            return [list(rows)]
        if not rows or not self.missing(frozenset(rows)):
            return []
        if len(rows) == 1:
            return [list(rows)]
        half = len(rows) // 2
        found = [*self.needed(rows[:half]), *self.needed(rows[half:])]
        return found or [self._smallest(list(rows))]

    @property
    def _spent(self) -> bool:
        return self.runs >= MAX_RUNS

    def _smallest(self, rows: list[InputRow]) -> list[InputRow]:
        """Rows of which none is needed by itself, and all together are: as few as can be."""
        size = max(1, len(rows) // 2)
        while size:
            for start in range(0, len(rows), size):
                fewer = rows[:start] + rows[start + size :]
                if self._spent:
                    self.complete = False
                    return rows
                if fewer and self.missing(frozenset(fewer)):
                    rows = fewer
                    break
            else:
                size //= 2
        return rows


def _with_values(recording: Recording, groups: list[list[InputRow]]) -> list[list[NeededRow]]:
    wanted_rows = frozenset(row for group in groups for row in group)
    values: dict[InputRow, dict[str, Any]] = {}
    steps = recording.sources
    for source, raws in recording.raws.items():
        for raw in raws:
            for at in np.flatnonzero(ListedRows(wanted_rows).read(steps[source], raw)):
                name = InputRow(steps[source], raw.lane, raw.offset_of(int(at)))
                values[name] = raw.batch.slice(int(at), 1).to_pylist()[0]
    seen: dict[str, int] = {}
    for label, item in recording.fed:
        if isinstance(item, Page):
            first = seen.get(label, 0)
            for at in np.flatnonzero(ListedRows(wanted_rows).fed(label, first, item)):
                values[InputRow(label, 0, first + int(at))] = item.payload.slice(int(at), 1).to_pylist()[0]
            seen[label] = first + len(item)
    return [[NeededRow(row, values[row]) for row in group] for group in groups]
