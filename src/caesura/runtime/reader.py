"""A source at work in a query: which rows come next, from where, and what the clock adds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pyarrow as pa

from caesura.events.item import Item
from caesura.io.pruning import Pruning
from caesura.io.row_groups import read_up_to
from caesura.io.source import Source
from caesura.ops.input import Input
from caesura.plan import Ingress, Raw, SourceNode
from caesura.punctuation import Pattern
from caesura.runtime.graph import Cell


class Reader:
    """A source being read: its iterator, its offsets, its heartbeat."""

    def __init__(self, node: SourceNode, cell: Cell) -> None:
        assert isinstance(cell.operator, Ingress)
        self.ingress: Ingress = cell.operator
        self.node = node
        self.cell = cell
        self.offsets: dict[int, int] = {}
        self.done = False
        self.turns = 0
        self._raw: Iterator[Raw] | None = None
        self._left: Raw | None = None
        self._next_beat = 0
        self.pruning: Pruning | None = None
        self.wishes = True
        """Whether rows that are wanted may be read first; not where claims speak of a prefix."""

    @property
    def cti(self) -> int:
        return self.ingress.promises[-1].cti

    def seek(self, offsets: dict[int, int]) -> None:
        self.offsets = offsets
        self._raw = self._left = None

    def turn(self) -> None:
        """Reads one batch, or closes the stream."""
        self.cell.send(self.beats())
        raw = self.next(None)
        if raw is None:
            self.cell.send(self.cell.guarded(self.ingress.close))
        else:
            self.cell.send(self.cell.guarded(self.ingress.raw, raw))
        self.cell.settle()

    def next(self, most: int | None) -> Raw | None:
        """The next rows, at most so many; None at the end."""
        self.turns += 1
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
            lost = self.cell.responder.output
            lost.until = max(lost.until, raw.top + 1)  # of points, which is all that is left unread
        if raw.skipped and self.pruning is not None:
            told = self.ingress.counters.feedback
            told["rows not read"], told["bytes not read"] = self.pruning.rows, self.pruning.bytes
        return raw

    def _opened(self) -> Iterator[Raw]:
        if isinstance(self.node, Source):
            wanted = self._wanted if self.wishes else None
            self.pruning = self.node.pruned_by(self._told, wanted, self._top)
            return iter(self.node.read(self.offsets, self.pruning))
        return iter(self.node.read(self.offsets))

    def _wanted(self) -> list[Pattern]:
        return self.cell.desired

    def _top(self) -> int:
        return self.ingress.top

    def _told(self) -> list[Pattern]:
        responder = self.cell.responder
        return responder.output.patterns if responder is not None and responder.output.active else []

    def beats(self) -> list[Item]:
        """What enters because of the clock, where a policy asks for it."""
        period = self.node.heartbeat
        now = time.time_ns() // 1000
        if period is None or now < self._next_beat:
            return []
        self._next_beat = now + period
        return self.cell.guarded(self.ingress.beat, now)


def refused_by(cells: Iterable[Cell]) -> dict[str, pa.Table]:
    """The rows that sources and pushed inputs have refused since the last call, by their names."""
    tables: dict[str, pa.Table] = {}
    for cell in cells:
        table = cell.operator.drain_late() if isinstance(cell.operator, Ingress) else None
        if table is not None:
            tables[cell.node.label if isinstance(cell.node, Input) else cell.label] = table
    return tables


def _split(raw: Raw, rows: int) -> tuple[Raw, Raw]:
    """The first rows of a batch, and the rest."""
    early = tuple(mark for mark in raw.punctuations if mark[0] < rows)
    late = tuple((at - rows, pattern) for at, pattern in raw.punctuations if at >= rows)
    first = Raw(raw.lane, raw.offset, raw.batch.slice(0, rows), early)
    rest = raw.batch.slice(rows)
    return first, Raw(raw.lane, raw.offset + rows, rest, late, raw.skipped, raw.top)
