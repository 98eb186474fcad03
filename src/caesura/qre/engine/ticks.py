"""Ticks woven into a stream: a synchronisation item at every multiple of a period, driven by progress.

The tick at T stands before the events that start at T and behind all that start earlier. The first
comes at the end of the period of the first event; then they come without a gap, empty periods
included, as far as progress has come, and at the end of the stream one more, behind the last event.

>>> weave = Weaver(10)
>>> [weave.due(5, [3]).tolist(), weave.due(31, []).tolist(), weave.due(INFINITY, [33]).tolist()]
[[], [10, 20, 30], [40]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from caesura.errors import StreamError
from caesura.kernels.hashing import I64
from caesura.punctuation import INFINITY
from caesura.qre.language.items import TICK

MAX_TICKS = 20_000_000


class Weaver:
    """When ticks fall due; `next` is the first that has not come, None before the first event.

    `end` is where the last event's period ends.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self.next: int | None = None
        self.end = 0

    @property
    def state(self) -> list[int | None]:
        """What must survive a restart."""
        return [self.next, self.end]

    @state.setter
    def state(self, saved: list[Any]) -> None:
        self.next, self.end = saved

    def due(self, bound: int, le: Sequence[int] | I64) -> I64:
        """The ticks up to a CTI, given the starts of the events before it (in order)."""
        if self.next is None and len(le):
            self.next = (int(le[0]) // self.every + 1) * self.every
        if self.next is None:
            return np.zeros(0, np.int64)
        if len(le):
            self.end = (int(le[-1]) // self.every + 1) * self.every
        until = self.end if bound == INFINITY else bound
        count = max(0, (until - self.next) // self.every + 1)
        if count > MAX_TICKS:
            raise StreamError(
                f"{count:,} ticks of {self.every} fall due at once.",
                remedy="Take a longer period, or check the times: one event lies far from the others.",
            )
        ticks = self.next + self.every * np.arange(count, dtype=np.int64)
        self.next += self.every * count
        return ticks


class Received(Weaver):
    """Ticks that another step has made: they are due when they are there.

    >>> given = Received()
    >>> given.take(np.array([10, 20]))
    >>> [given.due(15, []).tolist(), given.due(20, []).tolist()]
    [[10], [20]]
    """

    def __init__(self) -> None:
        super().__init__(1)
        self.waiting: I64 = np.zeros(0, np.int64)

    @property
    def state(self) -> list[int | None]:
        return list(self.waiting.tolist())

    @state.setter
    def state(self, saved: list[Any]) -> None:
        self.waiting = np.array(saved, np.int64)

    def take(self, ticks: I64) -> None:
        """Ticks that have come."""
        self.waiting = np.sort(np.append(self.waiting, ticks))

    def due(self, bound: int, le: Sequence[int] | I64) -> I64:
        count = int(np.searchsorted(self.waiting, bound, side="right"))
        out, self.waiting = self.waiting[:count], self.waiting[count:]
        return out


def woven(batch: pa.RecordBatch, le: I64, ticks: I64) -> tuple[pa.RecordBatch, I64]:
    """Events in order with ticks between them: all columns of a tick are null but TICK."""
    flags = np.zeros(len(le), np.bool_)
    places = np.searchsorted(le, ticks, side="left")
    order = np.insert(np.arange(len(le)), places, -1)
    rows = pa.array(order, mask=order < 0)
    columns = [c.take(rows) for c in batch.columns]
    marks = np.insert(flags, places, True)
    names = [*batch.schema.names, TICK]
    return pa.RecordBatch.from_arrays([*columns, pa.array(marks)], names=names), np.insert(le, places, ticks)
