"""A query that is fed and never run works off what waits by itself, and gives the same history."""

from __future__ import annotations

import pyarrow as pa
import pytest

import caesura as cz
from caesura.events import History, Page
from caesura.punctuation import cti
from caesura.runtime.query import query as module

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])


def page(number: int) -> Page:
    times = list(range(100 * number, 100 * number + 100))
    rows = pa.record_batch({"id": [t % 3 for t in times], "v": times}, schema=SCHEMA)
    return Page.of(rows, le=times, re=[t + 1 for t in times])


def fed(pages: int) -> tuple[cz.Stream, object, int]:
    """A query that got so many pages; and how many bytes waited at most."""
    stream = cz.input_stream("in", SCHEMA).group_by("id").tumbling(50).agg(v=cz.sum("v"))
    query, most = stream.query(), 0
    for number in range(pages):
        query.feed("in", page(number))
        query.feed("in", cti(100 * number + 100))
        waiting = query.parts.inputs["in"].items
        most = max(most, sum(item.nbytes for item in waiting if isinstance(item, Page)))
    return stream, query, most


def test_what_waits_at_an_input_is_bounded_and_the_history_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, free, much = fed(60)
    bound = 5 * page(0).nbytes
    monkeypatch.setattr(module, "FEED_BYTES", bound)
    _, held, little = fed(60)
    assert much > 10 * bound and little <= bound + page(0).nbytes
    histories = []
    for query in (free, held):
        query.run()  # type: ignore[attr-defined]
        histories.append(History.of(query.take("out"), stream.schema))  # type: ignore[attr-defined]
    assert histories[0] == histories[1] and len(histories[0]) == 360
