"""What enters a plan: raw rows in lanes, and the operator that makes a legal stream of them.

A lane is what keeps order (a file folder in listing order, a Kafka partition). Offsets count a
lane's rows. An ingress is a pure function of its raw rows, clock readings and imported punctuation, so a
replay gives the same stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from caesura.events.item import Item
from caesura.kernels.hashing import I64
from caesura.plan.node import Node
from caesura.plan.operator import Operator
from caesura.punctuation import MIN_TIME
from caesura.punctuation.writers import GivenPromise


@dataclass(frozen=True)
class Raw:
    """Rows of one lane as the outside gave them, and punctuation found between them."""

    lane: int
    offset: int
    batch: pa.RecordBatch
    punctuations: tuple[tuple[int, GivenPromise], ...] = ()
    """(position, promise): nothing matching comes from this row of the batch on."""
    skipped: int = 0
    """How many rows behind the batch were not read, because all of them will be ignored."""
    top: int | None = None
    """The latest time among those."""
    gap: int = 0
    """How many offsets behind or between all of these stand for no row, as in a log that was compacted."""
    offsets: I64 | None = None
    """The offset of each row, where they do not follow each other from the first on."""
    refused: tuple[tuple[int, str], ...] = ()
    """(offset, reason) of rows that could not be read."""

    @property
    def end(self) -> int:
        """Where the lane is read on."""
        return self.offset + int(self.batch.num_rows) + self.skipped + self.gap

    def offset_of(self, row: int) -> int:
        """The offset of a row; behind the last one, where the lane is read on."""
        if row >= self.batch.num_rows:
            return self.end
        return self.offset + row if self.offsets is None else int(self.offsets[row])

    def first(self, span: int) -> Raw | None:
        """The rows of the first so many offsets; the same if it has no more, None of none."""
        if span <= 0:
            return None
        rows = span if self.offsets is None else int((self.offsets < self.offset + span).sum())
        return self if rows >= self.batch.num_rows else self.split(rows)[0]

    def split(self, rows: int) -> tuple[Raw, Raw]:
        """The first rows of a batch, and the rest."""
        cut, behind = self.offset_of(rows), self.batch.num_rows - rows
        early = tuple(mark for mark in self.punctuations if mark[0] < rows)
        late = tuple((at - rows, pattern) for at, pattern in self.punctuations if at >= rows)
        places = (None, None) if self.offsets is None else (self.offsets[:rows], self.offsets[rows:])
        first = Raw(
            self.lane,
            self.offset,
            self.batch.slice(0, rows),
            early,
            gap=cut - self.offset - rows,
            offsets=places[0],
            refused=tuple(pair for pair in self.refused if pair[0] < cut),
        )
        return first, replace(
            self,
            offset=cut,
            batch=self.batch.slice(rows),
            punctuations=late,
            gap=self.end - cut - behind - self.skipped,
            offsets=places[1],
            refused=tuple(pair for pair in self.refused if pair[0] >= cut),
        )


class NothingNow:
    """What a source answers that has no rows at the moment, and may have some later."""

    def __repr__(self) -> str:
        return "NOTHING_NOW"


NOTHING_NOW = NothingNow()
SourceBatch = Raw | NothingNow


class Ingress(Operator):
    """Turns raw rows into a legal stream; what may not enter goes to the late table."""

    entered: I64 | None = None
    """The offsets of the rows of the page that entered last, where they are known."""

    @property
    def top(self) -> int:
        """The latest time of any row so far."""
        return MIN_TIME

    def raw(self, raw: Raw) -> Iterable[Item]:
        """What enters because a lane gave rows."""
        raise NotImplementedError

    def on_clock(self, clock: int) -> Iterable[Item]:
        """What enters because the heartbeat's clock reads this (microseconds)."""
        raise NotImplementedError

    def close(self, *, ends: bool = True) -> Iterable[Item]:
        """What enters because the input is at its end; ``ends``: it cannot grow, unless its policy knows."""
        raise NotImplementedError

    def drain_late(self) -> pa.Table | None:
        """Rows refused since the last call, with reason, lane and offset."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceNode(Node):
    """A step that reads. Its operator is an `Ingress`."""

    shows_all = True

    def read(self, offsets: Mapping[int, int]) -> Iterator[SourceBatch]:
        """Raw rows from these offsets on (per lane; 0 where none is given)."""
        raise NotImplementedError

    @property
    def stamped(self) -> bool:
        """Whether rows get their times where they enter, from the clock."""
        return False

    @property
    def holds_always(self) -> bool:
        """Whether every row holds over all time, so that a join with it looks at one row at a time."""
        return False

    @property
    def in_memory(self) -> bool:
        """Whether its rows lie in memory, and would go with the plan."""
        return False

    @property
    def known_bytes(self) -> int:
        """How large such rows are, as far as that is known before they are read."""
        return 0

    def refuse_large(self, size: int) -> None:
        """Refuses so many bytes, where every process would hold them."""

    def timed(self, time: pa.DataType) -> SourceNode:
        """The same rows in a stream that counts time so, where they have no time of their own."""
        return self

    @property
    def punctuated(self) -> bool:
        """Whether punctuation may lie between the rows, so that a page is not all of a batch."""
        return True

    @property
    def promised(self) -> tuple[str, ...]:
        """The columns that definite punctuation may speak of, by which rows are refused behind it."""
        return ()

    @property
    def heartbeat(self) -> int | None:
        """The period of the clock that a policy asks for, in microseconds, or None."""
        return None

    @property
    def unguarded(self) -> bool:
        """Whether one row with a time far ahead would make all behind it late."""
        return False

    def operator(self) -> Ingress:
        raise NotImplementedError
