"""Chunks of a table are read as larger batches where a run allows it; rows and offsets stay."""

from __future__ import annotations

import random

import pyarrow as pa

import caesura as cz
from caesura.io.sources.memory import BATCH, TableReader


def chunked(draw: random.Random, rows: int) -> pa.Table:
    """Whole numbers and times in chunks of any size, some of them empty."""
    parts, begin = [], 0
    while begin < rows:
        end = min(rows, begin + draw.choice((0, 1, 7, 40)))
        parts.append(
            pa.record_batch({"t": list(range(begin, end)), "v": [None] * (end - begin)}, schema=SCHEMA)
        )
        begin = end
    return pa.Table.from_batches(parts, schema=SCHEMA)


SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])


def test_batches_that_were_put_together_have_the_rows_and_offsets_of_the_chunks() -> None:
    for seed in range(20):
        draw = random.Random(seed)
        table = chunked(draw, 200)
        for skip in (0, 3, 120, 200):
            given = list(TableReader(table).batched(BATCH).read({0: skip}))
            assert len(given) == (1 if skip < 200 else 0), seed
            assert [raw.offset for raw in given] == [skip] * len(given)
            rows = [row for raw in given for row in raw.batch.column(0).to_pylist()]
            assert rows == list(range(skip, 200)), seed


def test_chunks_stay_batches_where_a_size_was_asked_for_or_texts_would_be_copied() -> None:
    table = pa.Table.from_batches([pa.record_batch({"t": [i], "s": ["a"]}) for i in range(3)])
    assert len(list(TableReader(table).batched(BATCH).read({}))) == 3
    numbers = table.select(["t"])
    assert len(list(TableReader(numbers, batch_size=2).batched(BATCH).read({}))) == 3
    assert len(list(TableReader(numbers).batched(BATCH).read({}))) == 1


def test_a_run_over_chunks_gives_what_a_run_over_the_whole_table_gives() -> None:
    table = chunked(random.Random(1), 150)
    some, whole = (
        cz.from_arrow(t, time="t", punctuate=cz.delay(5)).tumbling(20).agg(n=cz.count()).run(output="final")
        for t in (table, table.combine_chunks())
    )
    assert some.history == whole.history
    assert len(some.history.page) == 8
