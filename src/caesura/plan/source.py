"""What enters a plan: raw rows in lanes, and the operator that makes a legal stream of them.

A lane is what keeps order (a file folder in listing order, a Kafka partition). Offsets count a
lane's rows. An ingress is a pure function of its raw rows, beats and imported punctuation, so a
replay gives the same stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from caesura.events.item import Item
from caesura.plan.node import Node
from caesura.plan.operator import Operator
from caesura.punctuation import MIN_TIME, Pattern


@dataclass(frozen=True)
class Raw:
    """Rows of one lane as the outside gave them, and punctuation found between them."""

    lane: int
    offset: int
    batch: pa.RecordBatch
    punctuations: tuple[tuple[int, Pattern], ...] = ()
    """(position, pattern): nothing matching comes from this row of the batch on."""
    skipped: int = 0
    """How many rows behind the batch were not read, because all of them will be ignored."""
    top: int | None = None
    """The latest time among those."""


class Ingress(Operator):
    """Turns raw rows into a legal stream; what may not enter goes to the late table."""

    @property
    def top(self) -> int:
        """The latest time of any row so far."""
        return MIN_TIME

    def raw(self, raw: Raw) -> Iterable[Item]:
        """What enters because a lane gave rows."""
        raise NotImplementedError

    def beat(self, clock: int) -> Iterable[Item]:
        """What enters because the heartbeat's clock reads this (microseconds)."""
        raise NotImplementedError

    def close(self) -> Iterable[Item]:
        """What enters because the input is at its end."""
        raise NotImplementedError

    def drain_late(self) -> pa.Table | None:
        """Rows refused since the last call, with reason, lane and offset."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceNode(Node):
    """A step that reads. Its operator is an `Ingress`."""

    shows_all = True

    def read(self, offsets: Mapping[int, int]) -> Iterator[Raw]:
        """Raw rows from these offsets on (per lane; 0 where none is given)."""
        raise NotImplementedError

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
