"""Punctuation that lies between rows: objects that a reader found, and texts in a column of the data.

>>> batch = pa.record_batch({"t": [1, None, 5], "punct": [None, "time < 4", None]})
>>> marks = find_marks(Raw(0, 0, batch), "punct", pa.schema([]))
>>> marks.batch.num_rows, marks.offsets.tolist(), marks.patterns
(2, [0, 2], [(1, Pattern(time < 4))])
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from caesura.errors import CaesuraError
from caesura.events import parse_punctuation, take_rows
from caesura.events.columns import validity
from caesura.kernels.hashing import I64
from caesura.plan import Raw
from caesura.punctuation import Intent, Pattern


class Marks(NamedTuple):
    """A batch without its punctuation rows, and the punctuation by the event row that it precedes."""

    batch: pa.RecordBatch
    offsets: I64
    patterns: list[tuple[int, Pattern]]
    unreadable: list[tuple[str, int]]
    """(reason, row) of texts that are no definite punctuation."""


def find_marks(raw: Raw, column: str | None, schema: pa.Schema) -> Marks:
    """Tells the punctuation of a batch from its events."""
    rows = raw.batch.num_rows
    patterns = sorted(raw.punctuations, key=lambda mark: mark[0])
    offsets = np.arange(raw.offset, raw.offset + rows)
    if column is None or raw.batch.column(column).null_count == rows:
        return Marks(raw.batch, offsets, patterns, [])
    texts = raw.batch.column(column)
    valid = validity(texts)
    at = np.flatnonzero(valid) if len(valid) else np.arange(rows)
    unreadable: list[tuple[str, int]] = []
    for place, text in zip(at.tolist(), texts.take(pa.array(at)).to_pylist(), strict=True):
        read = _read(text, schema)
        if isinstance(read, Pattern):
            patterns.append((place, read))
        else:
            unreadable.append((read, place))
    patterns.sort(key=lambda mark: mark[0])
    events = np.setdiff1d(np.arange(rows), at, assume_unique=True)
    before = np.searchsorted(events, [place for place, _ in patterns])
    moved = [(int(n), pattern) for n, (_, pattern) in zip(before, patterns, strict=True)]
    return Marks(take_rows(raw.batch, events), offsets[events], moved, unreadable)


_MOMENT = re.compile(r"(\btime\s*(?:<=|>=|<|>|=)\s*)'?(\d{4}-\d\d-\d\d[^,']*)'?")


def _in_ticks(found: re.Match[str]) -> str:
    """A condition such as ``time < 2024-05-01 12:00`` in microseconds."""
    moment = datetime.fromisoformat(found[2].strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return f"{found[1]}{(moment - _EPOCH) // timedelta(microseconds=1)}"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _read(text: object, schema: pa.Schema) -> Pattern | str:
    try:
        punctuation = parse_punctuation(_MOMENT.sub(_in_ticks, str(text).strip()))
        if punctuation.intent is not Intent.DEFINITE:
            return f"punctuation '{text}': a source gives definite punctuation only"
        return punctuation.pattern.check(schema)
    except CaesuraError as error:
        return f"punctuation '{text}': {error.problem}"
    except (ValueError, KeyError):
        return f"punctuation '{text}': cannot be read"
