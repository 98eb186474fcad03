"""The times of a query in this process: taps while somebody looks, late rows where they wait."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from caesura.console.web.charts import bins_of, bounds_of, counted
from caesura.console.web.sink_folder import SinkFolder
from caesura.console.web.times import MAX_CHANGES, Arrival, Bin, LateExcerpt, OutputRows, SeenEpoch
from caesura.console.web.written_times import written_epochs
from caesura.events.item import Item
from caesura.events.page import Page
from caesura.io.ingress.ingress import SourceIngress
from caesura.io.ingress.refusals import behind_bound
from caesura.punctuation import MIN_TIME
from caesura.runtime.metrics.status import Board

if TYPE_CHECKING:
    from caesura.consistency import Claim
    from caesura.kernels.hashing import I64
    from caesura.runtime.graph.cell import Cell
    from caesura.runtime.metrics.errands import Errands
    from caesura.runtime.query.query import Query

MAX_MOMENTS = 1_200
LOOKS_FOR = 10.0
"""Seconds for which rows are kept and counted after the last look."""
LATE_SEEN = 20_000
"""So many of the late rows that wait can be seen."""
MAX_CHUNKS = 64


class LastItems:
    """A tap that keeps the last changes of an output, and how far it is definite."""

    def __init__(self, before: Sequence[Item] = (), *, rows: int = MAX_CHANGES) -> None:
        self.items: deque[Item] = deque()
        self._limit, self._rows = rows, 0
        self.definite = MIN_TIME
        self.looked = time.monotonic()
        for one in before:
            self.append(one)

    @property
    def stale(self) -> bool:
        """Whether nobody looks any more; then nothing is kept."""
        return time.monotonic() - self.looked > LOOKS_FOR

    def append(self, item: Item, /) -> None:
        if self.stale:
            self.items.clear()
            return
        if not isinstance(item, Page):
            bound = item.pattern.time_bound if set(item.pattern.attributes) <= {"time"} else None
            self.definite = max(self.definite, MIN_TIME if bound is None else bound)
            return
        page = item if len(item) <= self._limit else item.slice(len(item) - self._limit, self._limit)
        self.items.append(page)
        self._rows += len(page)
        while self._rows > self._limit:
            first = self.items.popleft()
            assert isinstance(first, Page)
            self._rows -= len(first)
            if (over := self._limit - self._rows) > 0:
                self.items.appendleft(first.slice(len(first) - over, over))
                self._rows += over


class Disorder:
    """A tap that counts how far rows come behind the latest before them."""

    def __init__(self, top: int) -> None:
        self._top = top
        self.counts: I64 | None = None
        self.bounds: tuple[int, ...] = ()
        self.looked = time.monotonic()

    @property
    def stale(self) -> bool:
        """Whether nobody looks any more; then nothing is counted."""
        return time.monotonic() - self.looked > LOOKS_FOR

    def append(self, item: Item, /) -> None:
        if not isinstance(item, Page) or len(item) == 0 or self.stale:
            return
        tops = np.maximum(np.maximum.accumulate(item.le), self._top)
        self._top = int(tops[-1])
        if self.counts is None:
            self.bounds = bounds_of(self._top)
            self.counts = np.zeros(len(self.bounds) + 2, np.int64)
        self.counts += counted(tops - item.le, self.bounds)


class SeenLate:
    """The late rows of a source that wait to be asked for, as of the last look; at most the last so many."""

    def __init__(self, ingress: SourceIngress) -> None:
        self._table, self.time = ingress.table, ingress.rules.time
        self.rows: pa.Table | None = None
        self.kept = self.refused = 0

    def look(self) -> None:
        """Takes what has come since the last look; all of it again, where rows were taken out."""
        table, before = self._table, self.kept
        if table.count == self.refused and table.kept == before:
            return
        grown = table.kept - before == table.count - self.refused
        first = before if grown and self.rows is not None else max(0, table.kept - LATE_SEEN)
        fresh = table.peek(first, table.kept - first)
        known = self.rows if grown and self.rows is not None else None
        both = [some for some in (known, fresh) if some is not None]
        whole = pa.concat_tables(both) if both else None
        if whole is not None and whole.num_rows > LATE_SEEN:
            whole = whole.slice(whole.num_rows - LATE_SEEN)
        if whole is not None and whole.column(0).num_chunks > MAX_CHUNKS:
            whole = whole.combine_chunks()
        self.rows, self.kept, self.refused = whole, table.kept, table.count


class EmbeddedTimes:
    """Answers the page of time for a query in this process: what its own thread saw last."""

    def __init__(self, query: Query, errands: Errands) -> None:
        self._query, self._errands = query, errands
        fed = (
            cell for cell in query.graph.cells if isinstance(cell.operator, SourceIngress) or cell.node.fed
        )
        self._sources: dict[str, Cell] = {cell.node.fed or cell.label: cell for cell in fed}
        self._late = {
            name: SeenLate(cell.operator)
            for name, cell in self._sources.items()
            if isinstance(cell.operator, SourceIngress)
        }
        self._taps: dict[str, LastItems] = {}
        self._disorder: dict[str, Disorder] = {}
        self._moments: dict[str, deque[Arrival]] = {}
        self._changes: dict[str, OutputRows] = {}
        self._claims: Sequence[Claim] = ()
        self._folder = SinkFolder(query.folder) if query.folder else None
        self.see()

    def outputs(self) -> Sequence[str]:
        return list(self._query.outputs)

    def sources(self) -> Sequence[str]:
        return list(self._sources)

    def changes(self, output: str) -> OutputRows:
        self._errands.ask("times", self._tap)
        return self._changes[output]

    def arrivals(self, source: str) -> Sequence[Arrival]:
        self._errands.ask("times", self._tap)
        return tuple(self._moments.get(source, ()))

    def lateness(self, source: str) -> Sequence[Bin]:
        seen, moments = self._disorder.get(source), self._moments.get(source)
        bounds = bounds_of(moments[-1].latest) if moments else ()
        if seen is not None and seen.counts is not None:
            bounds = seen.bounds
        late = np.zeros(len(bounds) + 2, np.int64)
        admitted = late if seen is None or seen.counts is None else seen.counts
        rows = self._late[source].rows if source in self._late else None
        if rows is not None:
            late = counted(behind_bound(rows, self._late[source].time), bounds)
            late[0] = 0  # malformed ones lie behind nothing
        return bins_of(admitted.tolist(), late.tolist(), bounds) if bounds else ()

    def late(self, source: str, first: int, count: int) -> LateExcerpt:
        self._errands.ask("times", self._tap)
        seen = self._late.get(source)
        if seen is None:
            return LateExcerpt(None, note="Items that are fed are taken as they are.")
        rows = 0 if seen.rows is None else seen.rows.num_rows
        note = ""
        if rows < seen.kept:
            note = f"The last {rows:,} of {seen.kept:,} that wait to be asked for."
        elif seen.kept < seen.refused:
            note = "Rows that the program, a sink or a checkpoint has taken are not here any more."
        return LateExcerpt(
            None if seen.rows is None else seen.rows.slice(first, count), rows, seen.refused, note
        )

    def epochs(self) -> Sequence[SeenEpoch]:
        return [] if self._folder is None else written_epochs(Board(), self._folder, {})

    def claims(self) -> Sequence[Claim]:
        self._errands.ask("times", self._tap)
        return self._claims

    # -- by the thread that runs the query -----------------------------------------------------------

    def _tap(self) -> None:
        """Somebody looks: changes are kept and arrivals counted from now on."""
        now = time.monotonic()
        for output, cell in self._query.parts.ends.items():
            tap = self._taps.get(output)
            if tap is None or tap.stale:
                self._take_down(self._taps, output, cell)
                tap = self._taps[output] = LastItems(self._query.untaken(output)[-MAX_CHANGES:])
                cell.taps.append(tap)
            tap.looked = now
        for source, cell in self._sources.items():
            seen = self._disorder.get(source)
            if seen is None or seen.stale:
                self._take_down(self._disorder, source, cell)
                top = cell.operator.top if isinstance(cell.operator, SourceIngress) else MIN_TIME
                seen = self._disorder[source] = Disorder(top)
                cell.taps.append(seen)
            seen.looked = now
        self.see()

    def see(self) -> None:
        """Notes how the query stands: when somebody looks, and when it stops working for a while."""
        query = self._query
        for output, node in query.outputs.items():
            tap = self._taps.get(output)
            if tap is None or tap.stale:
                tap = LastItems(query.untaken(output)[-MAX_CHANGES:])
            fixed = node.properties.fixed_ends
            self._changes[output] = OutputRows(tuple(tap.items), node.schema, node.time, tap.definite, fixed)
        for source, late in self._late.items():
            late.look()
            ingress = self._sources[source].operator
            assert isinstance(ingress, SourceIngress)
            now = Arrival(time.time(), ingress.counters.rows_in, late.refused, ingress.top, ingress.bound)
            moments = self._moments.setdefault(source, deque(maxlen=MAX_MOMENTS))
            if len(moments) > 1 and moments[-2][1:] == moments[-1][1:] == now[1:]:
                moments.pop()  # it stands still: its first and last moment say so
            moments.append(now)
        self._claims = query.claims[:]

    def rest(self) -> None:
        """Takes down the taps that nobody looks at any more, and notes how the query stands."""
        for taps, cells in ((self._taps, self._query.parts.ends), (self._disorder, self._sources)):
            for name, tap in [*taps.items()]:
                if tap.stale:
                    self._take_down(taps, name, cells[name])
        self.see()

    @staticmethod
    def _take_down(taps: dict[str, Any], name: str, cell: Cell) -> None:
        if name in taps:
            cell.taps.remove(taps.pop(name))
