"""A stretch of what a query takes in can be traced: rows that are read once, items that were fed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import caesura as cz
from caesura import col
from caesura.errors import CaesuraError
from caesura.events import parse

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
ROWS = [{"ts": t, "k": t % 3} for t in range(12)]


def once() -> cz.Stream:
    """Rows that can be read a single time."""
    batches = [pa.RecordBatch.from_pylist(ROWS[at : at + 5], SCHEMA) for at in range(0, 12, 5)]
    rows = cz.from_arrow(pa.RecordBatchReader.from_batches(SCHEMA, batches), time="ts")
    return rows.where(col("k") > 0).group_by("k").tumbling(6).agg(n=cz.count())


def test_rows_that_can_be_read_once_are_traced_as_they_were_read() -> None:
    plan = once()
    query = plan.query()
    recording = query.record()
    query.run()
    again = cz.from_rows(ROWS, time="ts", name="read").where(col("k") > 0).group_by("k").tumbling(6)
    wanted = again.agg(n=cz.count()).trace("k = 2")
    found = plan.trace("k = 2", recording=recording)
    assert found.rows == wanted.rows == 4
    assert [step.caused for step in found.steps[1:]] == [step.caused for step in wanted.steps[1:]]


def test_what_was_fed_is_traced_row_by_row() -> None:
    plan = cz.input_stream("a", pa.schema([("id", pa.int64())])).group_by("id").tumbling(10).agg(n=cz.count())
    query = plan.query()
    recording = query.record()
    for item in parse(" LE RE | id |\n 1 2 | 7 | +\n 2 3 | 8 | +\n-- 5 --\n 1 2 | 9 | +\n 6 7 | 7 | +"):
        query.feed("a", item)
    query.run()
    step = plan.trace("id = 7", recording=recording)["tumbling"]
    assert [(e.kind, e.payload, e.by) for e in step.caused] == [
        ("+", (7, 1), "row 0 of 'a'"),
        ("-", (7, 1), "row 3 of 'a'"),
        ("+", (7, 2), "row 3 of 'a'"),
    ]
    assert plan.trace("id = 9", recording=recording)["input"].fate == "refuses 1", "it came after the promise"


def test_a_recording_is_bounded_and_says_how_much_it_left_out() -> None:
    plan = once()
    query = plan.query()
    recording = query.record(limit=7)
    query.run()
    assert list(recording.rows.values()) == [12]
    assert [raw.batch.num_rows for [*raws] in recording.raws.values() for raw in raws] == [5, 2]
    assert plan.trace("k = 1", recording=recording).rows == 2


def test_a_recording_begins_where_it_is_asked_for() -> None:
    plan = once()
    query = plan.query()
    query.step()
    recording = query.record()
    query.run()
    assert plan.trace("k = 1", recording=recording).rows == 2, (
        "rows 7 and 10; those of the first batch came before"
    )


def test_an_unknown_output_is_named() -> None:
    with pytest.raises(CaesuraError, match="outt"):
        once().query().record(output="outt")
