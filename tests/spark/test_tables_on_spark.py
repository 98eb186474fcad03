"""Tables on Spark: in memory, in files, as DataFrames; looked up, and as streams."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_plans import readings as drawn
from spark_plans import write

import caesura as cz
from caesura import Stream
from caesura.errors import PlanError
from caesura.events import History, Page
from caesura.runtime.query.result import Result, run
from caesura.spark import MemorySink, start
from caesura.spark.host.table_files import SMALL

NAMES = pa.table({"seg": pa.array([n % 5 for n in range(9000)]), "town": [f"town {n}" for n in range(9000)]})


def plans(folder: Path, spark: Any) -> dict[str, Stream]:
    """Joins with tables of every kind."""
    whole = cz.read.parquet(folder / "readings", time="ts", punctuate=cz.delay(4))
    readings, events = whole.where(cz.col("car").is_not_null()), whole.where(cz.col("car") == "a")
    large = cz.table(NAMES, name="large").where(cz.col("town") <= "town 100")
    filed = cz.table(folder / "towns", name="filed")
    framed = cz.table(spark.createDataFrame([(1, "one"), (3, "three")], "seg long, word string"))
    return {
        "in memory": events.join(large, on="seg"),
        "in files": events.join(filed, on="seg", how="left"),
        "a frame": events.join(framed, on="seg", how="anti"),
        "behind a stage": events.group_by("seg").tumbling(20).agg(n=cz.count()).join(filed, on="seg"),
        "latest": readings.latest("seg", order="mph"),
        "changelog": readings.changelog("seg", op="car", insert=("a", "b"), delete="long name", order="mph"),
        "as a stream": events.join(framed, on="seg", how="full"),
    }


def test_tables_join_on_spark_as_they_do_embedded(spark: Any, tmp_path: Path) -> None:
    assert NAMES.nbytes > SMALL
    write(drawn(120), tmp_path / "readings", [40, 80])
    (tmp_path / "towns").mkdir()
    pq.write_table(pa.table({"seg": [0, 1, 2], "town": ["a", "b", "c"]}), tmp_path / "towns" / "0.parquet")
    streams = plans(tmp_path, spark)
    nodes = {name: stream.node for name, stream in streams.items()}
    sink = MemorySink()
    start(nodes, spark, sink=sink, trigger="available", files_per_epoch=1, allow_unbounded=True).wait()
    for name, node in nodes.items():
        ours = Result(sink.items(name), node, {}, {}).history
        assert ours == run(node).history, name


def test_a_table_that_changes_gives_each_version_its_time_and_an_epoch_again_the_same(
    spark: Any, tmp_path: Path
) -> None:
    for name in ("names", "visits"):
        (tmp_path / name).mkdir()
    visits = cz.read.parquet(
        tmp_path / "visits",
        schema=pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64())]),
        time="ts",
        punctuate=cz.delay("5s", future=None),
    )
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    options = {"reload": "changed", "schema": schema, "format": "parquet"}
    names = cz.table(tmp_path / "names", history=tmp_path / "history", **options)  # type: ignore[arg-type]
    plan = visits.join(names, on="id")
    runs: list[list[Any]] = []
    for number, name in enumerate(("Ada", "Eve", "Eve")):
        if number < 2:
            pq.write_table(pa.table({"id": [7], "name": [name]}), tmp_path / "names" / "a.parquet")
            at = pa.array([datetime(1999 + 100 * number, 1, 1)], pa.timestamp("us"))
            pq.write_table(pa.table({"ts": at, "id": [7]}), tmp_path / "visits" / f"{number}.parquet")
        else:
            commits = tmp_path / "cp" / "commits"
            (commits / max(f.name for f in commits.iterdir() if f.name.isdigit())).unlink()
        sink = MemorySink()
        start({"out": plan.node}, spark, sink=sink, checkpoint=tmp_path / "cp", trigger="available").wait()
        runs.append(sink.items("out"))
    assert [row[2] for row in History.of(runs[0] + runs[1], plan.schema).rows()] == [(7, "Eve")]
    first, again = ([row for i in items if isinstance(i, Page) for row in i.rows()] for items in runs[1:])
    assert first[-len(again) :] == again != []
    unseen = cz.table(tmp_path / "names", **options)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="history="):
        start({"out": visits.join(unseen, on="id").node}, spark, sink=MemorySink(), trigger="available")
