"""A query at work, whatever runs it: pages in, answers out, state that can be saved.

There is a machine for each way to run a query (`choice` picks one): a compiled pattern, a compiled map,
maps inside a pattern, a sketch over pieces, plain Python, and two machines in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from caesura.expr import Column
from caesura.kernels.hashing import I64
from caesura.punctuation import Pattern
from caesura.qre.checking.inference import value_type
from caesura.qre.engine.map_columns import Maps
from caesura.qre.engine.outputs import as_rows, output_schema
from caesura.qre.engine.ticks import woven
from caesura.qre.language.query import Query
from caesura.qre.language.types import MapOf, Record
from caesura.qre.reference.oracle import UNDEFINED

Answered = tuple[I64, pa.RecordBatch]
"""By answer the row of the page that brought it, and the output row."""
Timed = tuple[I64, pa.RecordBatch, Callable[[], I64]]
"""By output row its time, the row, and, when it is asked for, the number of the answer that it is part of."""


class Machine(Protocol):
    """A query at work on pages, in order; each kind gives values, and output rows where that is faster."""

    query: Query
    schema: pa.Schema
    compiled: bool
    reason: str = ""
    """Why it runs in plain Python, if it does."""
    departed: I64
    """The events of the last page at which the stream, or a key's, left the rate's language for ever."""
    never_departs: bool = False
    """Whether every item is known to lead on."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.schema = output_schema(query)
        self.departed = np.zeros(0, np.int64)

    def values(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> list[Any]:
        """The value at each item, or UNDEFINED."""

    def run(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        """Every answer, in order; a map is as many rows as it has keys."""
        return as_rows(self.query, self.values(batch, le, re), batch, self.schema)

    def items(self, batch: pa.RecordBatch, le: I64 | None = None, re: I64 | None = None) -> Answered:
        """The answers as items of the next query."""
        t = value_type(self.query)
        if not isinstance(t, MapOf) and not self.query.partitioned_by:
            return self.run(batch, le, re)
        found = [(row, v) for row, v in enumerate(self.values(batch, le, re)) if v is not UNDEFINED]
        made = [v if isinstance(t, Record) else {"value": v} for _, v in found]
        rows = np.array([row for row, _ in found], np.int64)
        return rows, pa.RecordBatch.from_pylist(made, output_schema(self.query.per_key))

    def timed(self, batch: pa.RecordBatch, le: I64, ticks: I64 | None = None) -> Timed:
        """The answers to events in order, with ticks between them, which are items among them."""
        if ticks is not None:
            batch, le = woven(batch, le, ticks)
        rows, out = self.run(batch, le)
        if ticks is not None and len(self.departed):
            events = ~batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
            self.departed = np.maximum(np.cumsum(events)[self.departed] - 1, 0)
        return le[rows], out, lambda: rows

    def close(self, pattern: Pattern) -> None:
        """Lets go of the keys of a partition that a promise on their columns covers.

        All items of such keys must have been read.
        """

    @property
    def key_columns(self) -> list[str | None]:
        """Per part of a partition's key the column that it is; None for what is computed."""
        return [e.name if isinstance(e, Column) else None for _, e in self.query.partitioned_by]

    def save(self) -> bytes:
        """Everything that must survive a restart."""

    def load(self, saved: bytes) -> None:
        """Takes back what `save` gave."""

    @property
    def nbytes(self) -> int:
        """Bytes of state."""

    @property
    def held(self) -> int:
        """How many keys and values are held besides a fixed number of registers."""

    @property
    def keys(self) -> int:
        """How many keys hold state."""

    @property
    def departures(self) -> int:
        """How many items led out of the rate's language."""

    @property
    def operations(self) -> int:
        """The most instructions that one item took so far, counted by the table-driven kernel."""
        return 0

    def always_rests(self, *, again: bool) -> bool:
        """Whether every item of a key is known to end its pattern, or, ``again``, to leave it."""
        return False

    @property
    def as_maps(self) -> MapMachine | None:
        """The machine itself, if its maps may be had before anything is applied to them."""
        return None

    def explain(self) -> str:
        """How the query runs, and why where it runs in plain Python."""


class MapMachine(Protocol):
    """A query that gives maps, which may be had before anything is applied to them."""

    departed: I64
    collected: bool
    """Whether one automaton takes care of all keys, and knows when no map can come any more."""

    def maps(self, batch: pa.RecordBatch, le: I64) -> Maps:
        """The maps as they are before anything is applied."""

    def ticked_maps(self, batch: pa.RecordBatch, le: I64, ticks: I64) -> tuple[Maps, I64]:
        """The same, with ticks between the events; and the times of the maps."""

    def of_maps(self, maps: Maps, batch: pa.RecordBatch, count: int) -> Answered:
        """What the query makes of so many maps."""


def counted(count: int, what: str) -> str:
    """So many of a thing, in words."""
    return f"{count} {what}" + ("" if count == 1 else "s")
