"""What a query's sink holds, as a table: by key, or the history of its changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from depth import examples
from hypothesis import given, settings

import caesura as cz
from caesura import StreamError
from caesura.events import History
from caesura.io.sinks.rows import changed_page, rows_table
from caesura.runtime.sinks.delta import DeltaSink
from caesura.runtime.sinks.memory import CallbackSink, MemorySink
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

LOG = InputSpec({"id": "key", "n": "int", "s": "str"}, key="id")
ROWS = [{"t": t, "id": t % 3, "s": "ab"[t % 2]} for t in range(8)]


@settings(max_examples=examples(30), deadline=None)
@given(streams(LOG))
def test_rows_of_changes_make_the_history_that_they_were_made_from(stream):
    _, items = stream
    page = changed_page(rows_table(items, LOG.schema, pa.int64()), LOG.schema, pa.int64())
    assert History.of([page], LOG.schema) == History.of(items, LOG.schema)


def latest() -> cz.Stream:
    return cz.from_rows(ROWS, time="t", punctuate=cz.delay(1), batch_size=3).latest("id")


def text(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def logs(folder: Path) -> list[Any]:
    lake = {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}/w"}
    iceberg = cz.iceberg("db.log", catalog=lake)
    return [str(folder / "files"), DeltaSink(str(folder / "delta")), iceberg, MemorySink()]


def test_of_changes_a_query_gives_the_history(tmp_path: Path) -> None:
    plain = text(latest().run().table())
    for number, sink in enumerate(logs(tmp_path)):
        query = latest().query(checkpoint=tmp_path / str(number), sink=sink, every="1h")
        query.run()
        assert text(query.table()) == plain


def test_of_a_table_with_a_key_a_query_gives_the_table(tmp_path: Path) -> None:
    current = [{"id": n % 3, "s": "ab"[n % 2]} for n in (5, 6, 7)]
    sinks = [cz.duckdb(tmp_path / "now.db"), cz.delta(tmp_path / "d"), cz.parquet(tmp_path / "p")]
    for number, sink in enumerate(sinks):
        query = latest().upserts("id").query(checkpoint=tmp_path / str(number), sink=sink, every="1h")
        query.run()
        assert text(query.table()) == sorted(map(str, current))


def test_without_a_sink_a_query_gives_what_was_not_taken() -> None:
    query = latest().query()
    query.run()
    assert text(query.table()) == text(latest().run().table())
    query.take("out")
    with pytest.raises(StreamError, match="was taken"):
        query.table()


def test_a_sink_that_holds_nothing_is_named(tmp_path: Path) -> None:
    query = latest().query(checkpoint=tmp_path, sink=CallbackSink(lambda epoch: None))
    with pytest.raises(StreamError, match="CallbackSink gives rows away"):
        query.table()
