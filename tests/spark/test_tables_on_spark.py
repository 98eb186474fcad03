"""Tables on Spark: in memory, in files, as DataFrames; looked up, and as streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from spark_plans import readings as drawn
from spark_plans import write

import caesura as cz
from caesura import Stream
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
    start(nodes, spark, sink=sink, trigger="available", files_per_epoch=1).wait()
    for name, node in nodes.items():
        ours = Result(sink.items(name), node, {}, {}).history
        assert ours == run(node).history, name
