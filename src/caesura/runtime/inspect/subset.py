"""A plan over what was recorded, whole or without some rows, and what a step's output comes to.

>>> import caesura as cz
>>> from caesura.runtime.inspect.choice import ListedRows
>>> stream = cz.from_rows([{"ts": n, "id": n} for n in range(4)], time="ts").where("id > 1")
>>> recording = stream.replay()
>>> len(outcome(recording)), len(outcome(recording, without=ListedRows(frozenset({InputRow("read", 0, 3)}))))
(2, 1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from caesura.errors import looked_up
from caesura.events import History, Item, Page
from caesura.kernels.hashing import Mask
from caesura.plan import Raw
from caesura.runtime.inspect.choice import InputRow, RowChoice
from caesura.runtime.query.query import Query
from caesura.runtime.query.recording import Recording
from caesura.runtime.query.result import query_of


def without_rows(raw: Raw, gone: Mask) -> Raw:
    """A batch without some rows; it covers the same offsets, and punctuation stays where it was."""
    if not gone.any():
        return raw
    kept = ~gone
    before = np.concatenate(([0], np.cumsum(kept)))
    count = raw.batch.num_rows
    offsets = raw.offset + np.arange(count, dtype=np.int64) if raw.offsets is None else raw.offsets
    rows = int(before[-1])
    return replace(
        raw,
        batch=raw.batch.filter(pa.array(kept)),
        offsets=offsets[kept],
        punctuations=tuple((int(before[at]), promise) for at, promise in raw.punctuations),
        gap=raw.end - raw.offset - rows - raw.skipped,
    )


def reduced(recording: Recording, without: RowChoice | None) -> Recording:
    """What was recorded, without some rows."""
    if without is None:
        return recording
    made = Recording(recording.node, recording.limit)
    steps = recording.sources
    for source, raws in recording.raws.items():
        made.raws[source] = [without_rows(raw, without.read(steps[source], raw)) for raw in raws]
    seen: dict[str, int] = {}
    for label, item in recording.fed:
        if isinstance(item, Page):
            gone = without.fed(label, seen.get(label, 0), item)
            seen[label] = seen.get(label, 0) + len(item)
            item = item.filter(~gone) if gone.any() else item
        made.fed.append((label, item))
    return made


def replayed(recording: Recording, prepare: Callable[[Query], None] = lambda query: None) -> Query:
    """The query of what was recorded, run to its end."""
    query = query_of(recording.plan(), "changes", None, None)
    prepare(query)
    query.run()
    for label, item in recording.fed:
        if label in query.inputs:
            query.feed(label, item)
            query.run()
    return query


def outcome(recording: Recording, *, without: RowChoice | None = None, step: str | None = None) -> History:
    """What a step, the last one by default, has given in the end."""
    given: list[Item] = []
    schema: list[pa.Schema] = []

    def listen(query: Query) -> None:
        cells = {cell.label: cell for cell in query.graph.cells}
        cell = query.parts.ends["out"] if step is None else looked_up(cells, step, "step")
        cell.taps.append(given)
        schema.append(cell.node.schema)

    replayed(reduced(recording, without), listen)
    changes = [item for item in given if isinstance(item, Page) and not item.settled and not item.partial]
    return History.of(changes, schema[0])


def input_rows(recording: Recording) -> list[InputRow]:
    """Every row that was recorded, in the order in which it came."""
    steps = recording.sources
    rows = [
        InputRow(steps[source], raw.lane, raw.offset_of(at))
        for source, raws in recording.raws.items()
        for raw in raws
        for at in range(raw.batch.num_rows)
    ]
    seen: dict[str, int] = {}
    for label, item in recording.fed:
        if isinstance(item, Page):
            first = seen.get(label, 0)
            rows += [InputRow(label, 0, first + at) for at in range(len(item))]
            seen[label] = first + len(item)
    return rows
