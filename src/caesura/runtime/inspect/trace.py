"""What became of some rows: the plan runs with them and without them, and every step shows the difference.

Rows are read one at a time, so that each item that leaves a step names the row that caused it.

Law: a step's trace is empty exactly when its output would be the same, item for item, without the rows.

>>> import caesura as cz
>>> rows = [{"ts": 3, "id": 7}, {"ts": 4, "id": 8}, {"ts": 5, "id": 7}]
>>> both = cz.from_rows(rows, time="ts").where(cz.col("id") > 7).tumbling(10).agg(n=cz.count())
>>> print(both.trace("ts = 3"))
chosen: 1 row with ts = 3
step 'read': emits 1 event because of them
  3  4  | 7 | +   by row 0 of 'read'
step 'where' (id > 7): drops them
step 'tumbling' (10; n=count()): receives none of them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from caesura.errors import looked_up
from caesura.events import Item, Page
from caesura.io.ingress.late import lifetimes
from caesura.io.sources.protocol import Offsets, Reader
from caesura.io.sources.source import Source
from caesura.misuse import checked_methods
from caesura.plan import Node, Raw
from caesura.plan.labelled import labelled
from caesura.plan.node import rebuilt
from caesura.punctuation import Pattern
from caesura.punctuation.parsing import parse_punctuation
from caesura.runtime.inspect.choice import MatchingRows, RowChoice, refuse_unknown
from caesura.runtime.query.query import Query
from caesura.runtime.query.result import query_of

Fed = tuple[str, Item]
"""An item, and the label of the input that is fed with it."""
SHOWN = 8
"""So many items of a step are printed; of more, the first, and what they come to."""
MAX_ROWS = 10_000
"""So many rows of each source are read, unless more are asked for."""


@dataclass(frozen=True)
class TracedEvent:
    """One event that left a step, and the row that caused it."""

    kind: str
    start: Any
    end: Any
    new_end: Any
    payload: tuple[Any, ...]
    by: str = ""

    @property
    def content(self) -> tuple[Any, ...]:
        """The event, whoever caused it, in a form that can be counted."""
        return self.kind, self.start, self.end, self.new_end, repr(self.payload)

    def rows(self) -> list[tuple[int, TracedEvent]]:
        """What it does to the history: rows that come, and rows that go."""
        row = replace(self, kind="+", new_end=None, by="")
        if self.kind == "+":
            return [(1, row)]
        removed = [(-1, row)]
        return removed if self.new_end == self.start else [*removed, (1, replace(row, end=self.new_end))]

    def to_json(self, names: list[str]) -> dict[str, Any]:
        times = {"kind": self.kind, "LE": self.start, "RE": self.end, "RE_new": self.new_end}
        return times | {"row": dict(zip(names, self.payload, strict=True)), "by": self.by}


@dataclass(frozen=True)
class StepTrace:
    """One step: what left it because of the rows, and what would have left it without them."""

    step: str
    does: str
    place: str
    fate: str
    columns: list[str]
    caused: list[TracedEvent]
    otherwise: list[TracedEvent]
    late: list[dict[str, Any]] = field(default_factory=list)
    """Rows that a source refused because of the chosen ones, or they themselves."""

    @property
    def ends(self) -> list[TracedEvent]:
        """What it comes to: '+' for rows that are there because of them, '-' for rows that are not."""
        net: Counter[tuple[Any, ...]] = Counter()
        rows: dict[tuple[Any, ...], TracedEvent] = {}
        for sign, some in ((1, self.caused), (-1, self.otherwise)):
            for event in some:
                for weight, row in event.rows():
                    rows[row.content] = row
                    net[row.content] += sign * weight
        signed = [(n, rows[content]) for content, n in net.items() for _ in range(abs(n))]
        return [replace(row, kind="+" if n > 0 else "-") for n, row in sorted(signed, key=lambda s: s[0])]

    def to_json(self) -> dict[str, Any]:
        both = {"caused": self.caused, "otherwise": self.otherwise, "ends": self.ends}
        events = {name: [e.to_json(self.columns) for e in some] for name, some in both.items()}
        whole = {
            "step": self.step,
            "does": self.does,
            "place": self.place,
            "fate": self.fate,
            "late": self.late,
        }
        return {**whole, **events}

    def lines(self) -> Iterator[str]:
        does = f" ({self.does})" if self.does else ""
        yield f"step '{self.step}'{does}: {self.fate}"
        for row in self.late:
            yield f"  refused: {row['reason']}" + (f", row {row['offset']}" if _read(row) else "")
        if len(self.caused) <= SHOWN:
            yield from drawn(self.caused)
            if self.otherwise:
                yield "  without them instead:"
                yield from drawn(self.otherwise)
            return
        yield from drawn(self.caused[: SHOWN // 2])
        yield f"  ... {len(self.caused) - SHOWN // 2} more; in the end:"
        yield from drawn(self.ends)


@checked_methods
@dataclass(frozen=True)
class Trace:
    """What became of the chosen rows, step by step."""

    chosen: str
    rows: int
    steps: list[StepTrace]

    def __getitem__(self, step: str) -> StepTrace:
        return looked_up({s.step: s for s in reversed(self.steps)}, step, "step")

    def __str__(self) -> str:
        head = f"chosen: {self.rows} row{'s' * (self.rows != 1)} with {self.chosen}"
        return "\n".join([head, *(line for step in self.steps for line in step.lines())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, Any]:
        """The trace as plain values, for programs.

        Returns
        -------
        dict
            The chosen rows, and by step what it said because of them.

        Examples
        --------
        >>> import caesura as cz
        >>> slow = cz.from_rows([{"ts": 3, "mph": 62}], time="ts").where("mph < 30")
        >>> sorted(slow.trace("mph = 62").to_json())
        ['chosen', 'rows', 'steps']
        """
        return {"chosen": self.chosen, "rows": self.rows, "steps": [s.to_json() for s in self.steps]}


class Now:
    """The row that is being worked on."""

    def __init__(self) -> None:
        self.row = ""

    def reach(self, row: str) -> None:
        """Another row is worked on from here on."""
        self.row = row


class OneByOne(Reader):
    """A source's reader, row by row; with or without the chosen ones."""

    in_memory = True

    def __init__(self, inner: Reader, label: str, chosen: RowChoice, now: Now, limit: int) -> None:
        self.schema, self.lanes, self.key = inner.schema, inner.lanes, inner.key
        self.punctuates = inner.punctuates
        self._inner, self._label, self._chosen = inner, label, chosen
        self._now, self._limit = now, limit
        self.keeps = True
        self.found = 0

    def describe(self) -> str:
        return self._inner.describe()

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        left = self._limit
        for raw in self._inner.sample(self._limit):
            whole = raw.batch.num_rows
            mine = self._chosen.read(self._label, raw)
            for at in range(whole + 1):
                marks = tuple((0, pattern) for place, pattern in raw.punctuations if place == at)
                if at == left or (at == whole and not marks):
                    break
                hit = at < whole and bool(mine[at])
                self.found += hit
                taken = at < whole and (self.keeps or not hit)
                self._now.reach(f"row {raw.offset_of(at)} of '{self._label}'")
                yield Raw(raw.lane, raw.offset_of(at), raw.batch.slice(at, 1 if taken else 0), marks)
            left -= whole
            if left <= 0:
                break
        self._now.reach(f"the end of '{self._label}'")


@dataclass
class EventTap:
    """Takes what leaves one step."""

    node: Node
    now: Now
    events: list[TracedEvent] = field(default_factory=list)

    def append(self, item: Item) -> None:
        if not isinstance(item, Page) or item.settled:
            return
        columns = [c.to_pylist() for c in lifetimes(item, self.node.time)]
        for at, (_, _, _, row) in enumerate(item.rows()):
            kind, start, end, new_end = (column[at] for column in columns)
            self.events.append(TracedEvent(kind, start, end, new_end, row, self.now.row))


@dataclass
class _Run:
    """A step of one run: what left it, what it refused, what guards stopped there."""

    label: str
    node: Node
    events: list[TracedEvent]
    late: list[dict[str, Any]]
    stopped: int


def trace(
    node: Node,
    rows: str | Pattern,
    *,
    assume: str | Pattern | None = None,
    limit: int = MAX_ROWS,
    fed: Sequence[Fed] = (),
) -> Trace:
    """Follows the rows of the sources that match through a plan; ``assume`` is feedback from the start.

    ``fed`` is what inputs are fed, with their labels, once the sources are read.
    """
    pattern = rows if isinstance(rows, Pattern) else parse_punctuation(rows).pattern
    refuse_unknown(node, pattern)
    return trace_rows(node, MatchingRows(pattern), str(pattern), assume=assume, limit=limit, fed=fed)


def trace_rows(
    node: Node,
    chosen: RowChoice,
    named: str,
    *,
    assume: str | Pattern | None = None,
    limit: int = MAX_ROWS,
    fed: Sequence[Fed] = (),
) -> Trace:
    """Follows chosen rows, under the name that they have."""
    ignored = parse_punctuation(assume).pattern if isinstance(assume, str) else assume
    found, present = _run(node, chosen, ignored, fed, keeps=True, limit=limit)
    _, absent = _run(node, chosen, ignored, fed, keeps=False, limit=limit)
    steps: list[StepTrace] = []
    changed: dict[str, bool] = {}
    for fingerprint, run in present.items():
        reached = any(changed.get(child.fingerprint, False) for child in run.node.inputs)
        step = _compared(run, absent[fingerprint], reached)
        changed[fingerprint] = bool(step.caused or step.otherwise)
        steps.append(step)
    return Trace(named, found, steps)


def _run(
    node: Node, chosen: RowChoice, ignored: Pattern | None, fed: Sequence[Fed], *, keeps: bool, limit: int
) -> tuple[int, dict[str, _Run]]:
    """How many rows were chosen, and every step by its place in the plan."""
    now = Now()
    plan, readers = read_one_by_one(node, chosen, now, limit)
    for reader in readers:
        reader.keeps = keeps
    query = query_of(plan, "changes", None, None)
    taps = {cell.label: EventTap(cell.node, now) for cell in query.graph.cells}
    for cell in query.graph.cells:
        cell.taps.append(taps[cell.label])
    if ignored is not None:
        query.assume(ignored)
    query.run()
    found = feed_one_by_one(query, chosen, fed, now, keeps=keeps)
    late, counted = query.late(), query.counters()
    runs: dict[str, _Run] = {}
    for cell in query.graph.cells:
        name = cell.node.fed or cell.label
        refused = late[name].to_pylist() if name in late else []
        stopped = sum(n for what, n in counted[cell.label].feedback.items() if what.startswith("stopped"))
        runs[cell.node.fingerprint] = _Run(cell.label, cell.node, taps[cell.label].events, refused, stopped)
    return found + sum(reader.found for reader in readers), runs


def feed_one_by_one(query: Query, chosen: RowChoice, fed: Sequence[Fed], now: Now, *, keeps: bool) -> int:
    """Feeds what was recorded, row by row, with or without the chosen ones; gives how many these are."""
    seen: Counter[str] = Counter()
    found = 0
    for label, item in fed:
        if label not in query.inputs:
            continue
        if not isinstance(item, Page):
            now.reach(f"punctuation of '{label}'")
            query.feed(label, item)
            query.run()
            continue
        hits = chosen.fed(label, seen[label], item)
        for at in range(len(item)):
            now.reach(f"row {seen[label]} of '{label}'")
            seen[label] += 1
            found += bool(hits[at])
            if keeps or not hits[at]:
                query.feed(label, item.slice(at, 1))
                query.run()
    return found


def read_one_by_one(node: Node, chosen: RowChoice, now: Now, limit: int) -> tuple[Node, list[OneByOne]]:
    """The plan over readers that give one row at a time."""
    readers: list[OneByOne] = []
    made: dict[str, Node] = {}
    for label, own in labelled({"out": node}).items():
        inputs = tuple(made[child.fingerprint] for child in own.inputs)
        fresh = rebuilt(own, inputs) if inputs else own
        if isinstance(fresh, Source):
            readers.append(OneByOne(fresh.reader, label, chosen, now, limit))
            fresh = replace(fresh, reader=readers[-1])
        made[own.fingerprint] = fresh
    return made[node.fingerprint], readers


def _compared(present: _Run, absent: _Run, reached: bool) -> StepTrace:
    caused, otherwise = _only(present.events, absent.events), _only(absent.events, present.events)
    before = [_refusal(row) for row in absent.late]
    late = [row for row in present.late if _refusal(row) not in before]
    node = present.node
    fate = _fate(present, absent, reached, len(caused), len(late))
    does = "" if isinstance(node, Source) else node.describe()
    columns = list(node.schema.names)
    return StepTrace(present.label, does, node.place, fate, columns, caused, otherwise, late)


def _fate(present: _Run, absent: _Run, reached: bool, caused: int, late: int) -> str:
    if late:
        return f"refuses {late}"
    if present.stopped > absent.stopped:
        return f"its guards stop {present.stopped - absent.stopped}"
    if caused:
        return f"emits {caused} event{'s' * (caused != 1)} because of them"
    if reached and present.node.row_wise:
        return "drops them"
    return "emits the same without them" if reached else "receives none of them"


def _refusal(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Which row it was; the reason may name another bound in the other run."""
    if _read(row):
        return row["lane"], row["offset"]
    return tuple(value for name, value in row.items() if name != "reason")


def _read(row: Mapping[str, Any]) -> bool:
    """Whether a row was refused where it is read, and not by a step behind."""
    return "RE_new" in row


def _only(some: list[TracedEvent], others: list[TracedEvent]) -> list[TracedEvent]:
    """What only one run emitted, in order."""
    matched = Counter(event.content for event in others)
    found: list[TracedEvent] = []
    for event in some:
        if matched[event.content] > 0:
            matched[event.content] -= 1
        else:
            found.append(event)
    return found


def drawn(some: list[TracedEvent]) -> Iterator[str]:
    for event in some:
        row = " ".join("null" if v is None else str(v) for v in event.payload)
        new = "" if event.new_end is None or event.new_end == event.start else f"->{event.new_end}"
        end = "inf" if event.end is None else event.end
        by = f"   by {event.by}" if event.by else ""
        yield f"  {event.start}  {end}{new}  | {row} | {event.kind}{by}"
