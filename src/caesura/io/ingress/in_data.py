"""Punctuation that lies between rows: objects that a reader found, and texts in a column of the data.

>>> batch = pa.record_batch({"t": [1, None, 5], "punct": [None, "time < 4", None]})
>>> marks = find_marks(Raw(0, 0, batch), "punct", pa.schema([]))
>>> marks.batch.num_rows, marks.offsets.tolist(), marks.patterns
(2, [0, 2], [(1, Pattern(time < 4))])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from caesura.errors import CaesuraError
from caesura.events import take_rows
from caesura.events.nested import validity
from caesura.kernels.hashing import I64
from caesura.plan import Raw
from caesura.punctuation import Intent, Pattern
from caesura.punctuation.parsing import parse_punctuation
from caesura.punctuation.scheme import Scheme
from caesura.punctuation.writers import GivenPromise, WriterPromise


class Consecutive:
    """Offsets one behind the other, in place of an array of them, for they are seldom asked for.

    >>> some = Consecutive(range(5, 9))
    >>> some[np.array([0, 2])].tolist(), len(some[1:])
    ([5, 7], 3)
    """

    __slots__ = ("numbers",)

    def __init__(self, numbers: range) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return Consecutive(self.numbers[which])
        return self.numbers.start + which

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> I64:
        return np.arange(self.numbers.start, self.numbers.stop, dtype=np.int64)

    def tolist(self) -> list[int]:
        return list(self.numbers)


class InDataPunctuation(NamedTuple):
    """A batch without its punctuation rows, and the punctuation by the event row that it precedes."""

    batch: pa.RecordBatch
    offsets: I64
    patterns: list[tuple[int, GivenPromise]]
    unreadable: list[tuple[str, int]]
    """(reason, row) of texts that are no definite punctuation."""


def find_marks(
    raw: Raw, column: str | None, schema: pa.Schema, given: Scheme | None = None
) -> InDataPunctuation:
    """Tells the punctuation of a batch from its events; what a source does not declare is told, not taken."""
    rows = raw.batch.num_rows
    marks: list[tuple[int, GivenPromise | str]] = list(raw.punctuations)
    offsets: Any = Consecutive(range(raw.offset, raw.offset + rows)) if raw.offsets is None else raw.offsets
    within = column is not None and raw.batch.column(column).null_count < rows
    if not marks and not within:
        return InDataPunctuation(raw.batch, offsets, [], [])
    batch, events = raw.batch, np.arange(rows)
    if within:
        texts = raw.batch.column(column)
        valid = validity(texts)
        at = np.flatnonzero(valid) if len(valid) else np.arange(rows)
        read = [_read(text, schema) for text in texts.take(pa.array(at)).to_pylist()]
        marks += zip(at.tolist(), read, strict=True)
        events = np.setdiff1d(events, at, assume_unique=True)
        batch = take_rows(raw.batch, events)
    declared = [(place, _declared(mark, given)) for place, mark in sorted(marks, key=lambda mark: mark[0])]
    taken = [(place, mark) for place, mark in declared if not isinstance(mark, str)]
    before = np.searchsorted(events, [place for place, _ in taken])
    patterns = [(int(n), pattern) for n, (_, pattern) in zip(before, taken, strict=True)]
    unreadable = [(mark, place) for place, mark in declared if isinstance(mark, str)]
    return InDataPunctuation(batch, offsets[events], patterns, unreadable)


def _declared(mark: GivenPromise | str, given: Scheme | None) -> GivenPromise | str:
    """The punctuation, or why it is not taken."""
    if isinstance(mark, str) or given is None:
        return mark
    pattern = mark.pattern if isinstance(mark, WriterPromise) else mark
    if given.admits(pattern):
        return mark
    return f"punctuation '{pattern}': the source declares {given} only"


def _read(text: object, schema: pa.Schema) -> Pattern | str:
    try:
        punctuation = parse_punctuation(str(text), schema)
        if punctuation.intent is not Intent.DEFINITE:
            return f"punctuation '{text}': a source gives definite punctuation only"
        return punctuation.pattern.check(schema)
    except CaesuraError as error:
        return f"punctuation '{text}': {error.problem}"
