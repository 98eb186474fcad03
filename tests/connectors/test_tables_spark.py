"""Tables of versions as sources on Spark: a start reads what earlier ones have not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import caesura as cz
from caesura.events import History, Item

pytest.importorskip("pyspark")
from caesura.spark import MemorySink


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    made = cz.session("caesura-tables", master="local[2]", buckets=1)
    yield made
    made.stop()


ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})


def test_versions_of_a_delta_table_are_read_once_across_starts(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    deltalake.write_deltalake(place, ROWS, configuration={"delta.enableChangeDataFeed": "true"})
    items: list[Item] = []
    for change in (None, lambda table: table.update(updates={"v": "'z'"}, predicate="id = 1")):
        if change is not None:
            change(deltalake.DeltaTable(place))
        sink = MemorySink()
        now = cz.read.delta(place, key="id", punctuate=cz.delay("0s"))
        options: dict[str, Any] = {"checkpoint": str(tmp_path / "c"), "trigger": "available"}
        now.start(spark, sink=sink, allow_unbounded=True, **options).wait()
        items += sink.items()
    rows = History.of(items, now.schema).table().to_pylist()
    endless = [(row["v"], row["RE"] == cz.INFINITY) for row in rows]
    assert sorted(endless) == [("a", False), ("b", True), ("z", True)]
