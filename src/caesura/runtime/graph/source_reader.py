"""A source at work in a query: which rows come next, from where, and what the clock adds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from caesura.events.item import Item
from caesura.io.sources.pruning import Pruning
from caesura.io.sources.python_rows import LIVE_BATCH
from caesura.io.sources.row_groups import read_up_to
from caesura.io.sources.source import Source
from caesura.plan import Ingress, Raw, SourceNode
from caesura.punctuation import Pattern, Punctuation
from caesura.runtime.graph.cell import Cell


class SourceReader:
    """A source being read: its iterator, its offsets, its heartbeat."""

    def __init__(self, node: SourceNode, cell: Cell) -> None:
        assert isinstance(cell.operator, Ingress)
        self.ingress: Ingress = cell.operator
        self.node = node
        self.cell = cell
        self.offsets: dict[int, int] = {}
        self.done = False
        self.turns = 0
        self.last = 0
        """When it was last chosen, among all readers of the query."""
        self.most: int | None = None
        """How many rows it reads in a turn; None for whatever its source gives at once."""
        self._before: tuple[int, Punctuation | None] = (self.cti, None)
        self._raw: Iterator[Raw] | None = None
        self._left: Raw | None = None
        self._next_beat = 0
        self.pruning: Pruning | None = None
        self.reorders = True
        """Whether rows that are wanted may be read first; not where claims speak of a prefix."""

    @property
    def cti(self) -> int:
        return self.ingress.promises[-1].cti

    @property
    def timeless(self) -> bool:
        """Whether its last rows brought promises, and none on time: how far it is behind tells nothing."""
        cti, last = self._before
        return self.cti == cti and self.ingress.counters.punctuation_out is not last

    def seek(self, offsets: dict[int, int]) -> None:
        self.offsets = offsets
        self._raw = self._left = None

    def turn(self) -> None:
        """Reads one batch, or closes the stream."""
        self.cell.send(self.beats())
        raw = self.next(self.most)
        if raw is None:
            self.cell.send(self.cell.guarded(self.ingress.close))
        else:
            self.cell.send(self.cell.guarded(self.ingress.raw, raw))
        self.cell.feedback.settle()

    def next(self, most: int | None) -> Raw | None:
        """The next rows, at most so many; None at the end."""
        self.turns += 1
        self._before = (self.cti, self.ingress.counters.punctuation_out)
        if self._raw is None:
            self._raw = self._opened()
        raw = self._left if self._left is not None else next(self._raw, None)
        self._left = None
        if raw is None:
            self.done = True
            return None
        if most is not None and raw.batch.num_rows > most:
            raw, self._left = _split(raw, most)
        end = raw.offset + raw.batch.num_rows + raw.skipped
        if self.pruning is None:
            self.offsets[raw.lane] = end
        else:
            read_up_to(self.offsets, raw.lane, raw.offset, end)
            if self.pruning.moved:
                self.ingress.counters.feedback["rows read first"] = self.pruning.moved
        self.ingress.counters.rows_in += raw.batch.num_rows
        if raw.skipped and self.cell.responder is not None and raw.top is not None:
            guard = self.cell.responder.guards.output
            guard.until = max(guard.until, raw.top + 1)  # of points, which is all that is left unread
        if raw.skipped and self.pruning is not None:
            counts = self.ingress.counters.feedback
            counts["rows not read"], counts["bytes not read"] = self.pruning.rows, self.pruning.bytes
        return raw

    def _opened(self) -> Iterator[Raw]:
        if isinstance(self.node, Source):
            wanted = self._wanted if self.reorders else None
            self.pruning = self.node.pruned_by(self._ignored, wanted, self._top)
            return iter(self.node.read(self.offsets, self.pruning))
        return iter(self.node.read(self.offsets))

    def _wanted(self) -> list[Pattern]:
        return self.cell.feedback.desired

    def _top(self) -> int:
        return self.ingress.top

    def _ignored(self) -> list[Pattern]:
        guard = None if self.cell.responder is None else self.cell.responder.guards.output
        return guard.patterns if guard is not None and guard.active else []

    def beats(self) -> list[Item]:
        """What enters because of the clock, where a policy asks for it."""
        period = self.node.heartbeat
        now = time.time_ns() // 1000
        if period is None or now < self._next_beat:
            return []
        self._next_beat = now + period
        return self.cell.guarded(self.ingress.beat, now)


T = TypeVar("T", bound="ReadableSource")


class ReadableSource(Protocol):
    """A source that may be read next."""

    last: int

    @property
    def cti(self) -> int: ...
    @property
    def turns(self) -> int: ...
    @property
    def timeless(self) -> bool: ...


def next_of(live: Sequence[T]) -> T:
    """The source that is furthest behind in time; one that promises no time takes turns with all others."""
    chosen = min(live, key=lambda r: (r.cti, r.turns))
    if chosen.timeless:
        chosen = min(live, key=lambda r: r.last)
    chosen.last = 1 + max(r.last for r in live)
    return chosen


def share(readers: Sequence[SourceReader]) -> None:
    """Lets sources with punctuation in their data read few rows at a time, where others wait for it."""
    for reader in readers if len(readers) > 1 else ():
        if isinstance(reader.node, Source) and reader.node.declares == ("*",):
            reader.most = LIVE_BATCH


def refused_by(cells: Iterable[Cell]) -> dict[str, pa.Table]:
    """The rows that sources and pushed inputs have refused since the last call, by their names."""
    tables: dict[str, pa.Table] = {}
    for cell in cells:
        table = cell.operator.drain_late() if isinstance(cell.operator, Ingress) else None
        if table is not None:
            tables[cell.node.fed or cell.label] = table
    return tables


def _split(raw: Raw, rows: int) -> tuple[Raw, Raw]:
    """The first rows of a batch, and the rest."""
    early = tuple(mark for mark in raw.punctuations if mark[0] < rows)
    late = tuple((at - rows, pattern) for at, pattern in raw.punctuations if at >= rows)
    first = Raw(raw.lane, raw.offset, raw.batch.slice(0, rows), early)
    rest = raw.batch.slice(rows)
    return first, Raw(raw.lane, raw.offset + rows, rest, late, raw.skipped, raw.top)
