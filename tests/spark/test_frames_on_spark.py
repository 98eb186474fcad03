"""DataFrames in and out: types and names come through, and what comes out is a DataFrame like others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura import PlanError
from caesura.spark.host.frames import gathered

TYPES = {
    "a.b": "id % 3",
    "exact": "CAST(id AS DECIMAL(20, 4))",
    "local": "timestamp_ntz '2024-01-01 00:00:00'",
    "span": "make_dt_interval(0, 0, 0, id)",
    "list": "array(id, NULL)",
    "named": "map('k', id)",
    "pair": "named_struct('x.y', id)",
    "bytes": "X'00FF'",
    "day": "date '2024-02-29'",
    "small": "CAST(1 AS TINYINT)",
    "nothing": "CAST(NULL AS STRING)",
    "it's `odd`": "CAST(id AS DOUBLE)",
}


def frame(spark: Any) -> Any:
    from pyspark.sql import functions as f

    columns = [f.expr(text).alias(name) for name, text in TYPES.items()]
    return spark.range(20).select(f.timestamp_micros(f.col("id") * 1_000_000).alias("ts"), *columns)


def test_types_and_names_come_through_and_what_comes_out_is_used_as_any_dataframe(
    spark: Any, tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    rows = frame(spark)
    rows.write.parquet(str(tmp_path / "in"))
    live = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    source = cz.from_spark(
        live.withColumn("upper", f.upper(f.lit("x"))).where(f.col("exact") >= 4),
        time="ts",
        punctuate=cz.delay("5s"),
        name="frame",
    )
    given = source.to_spark(spark)
    wanted = {field.name: field.dataType.simpleString() for field in live.schema if field.name != "ts"}
    assert {s.name: s.dataType.simpleString() for s in given.schema[4:]} == {**wanted, "upper": "string"}

    found: list[Any] = []
    writing = given.writeStream.foreachBatch(lambda batch, number: found.extend(batch.collect()))
    writing.option("checkpointLocation", str(tmp_path / "one")).trigger(
        availableNow=True
    ).start().awaitTermination()
    before = rows.where("exact >= 4").withColumn("upper", f.upper(f.lit("x"))).drop("ts").collect()
    assert sorted(map(str, (tuple(row)[4:] for row in found))) == sorted(map(str, map(tuple, before)))

    names = spark.createDataFrame([(0, "zero"), (1, "one")], ["k", "name"])
    counted = source.group_by("a.b").tumbling("1h").agg(n=cz.count()).to_spark(spark, output="changes")
    joined = counted.join(names, counted["`a.b`"] == names["k"]).select("kind", "name", "n")
    writing = joined.writeStream.option("checkpointLocation", str(tmp_path / "two")).trigger(
        availableNow=True
    )
    spark.sql(
        f"CREATE TABLE counted (kind STRING, name STRING, n LONG) USING parquet LOCATION '{tmp_path / 'out'}'"
    )
    try:
        writing.toTable("counted").awaitTermination()
        net: Counter[str] = Counter()
        for kind, name, n in spark.table("counted").collect():
            net[name] += n if kind == "+" else -n
        assert net == {"zero": 5, "one": 6}
    finally:
        spark.sql("DROP TABLE counted")


def test_types_that_arrow_lacks_are_refused_by_name(spark: Any) -> None:
    from pyspark.sql import functions as f

    months = frame(spark).select("ts", f.expr("make_ym_interval(1, 2)").alias("every"))
    with pytest.raises(PlanError, match="'every' is of type interval year to month"):
        cz.from_spark(months, time="ts")
    variants = frame(spark).select("ts", f.array(f.parse_json(f.lit('{"a": 1}'))).alias("v"))
    with pytest.raises(PlanError, match=r"'v' is of type array<variant>.*\n.*F.to_json"):
        cz.from_spark(variants, time="ts")


@pytest.mark.parametrize("live", [False, True])
def test_rows_of_a_frame_are_traced_by_a_stretch_that_is_collected(
    spark: Any, tmp_path: Path, live: bool
) -> None:
    rows = spark.createDataFrame([(t, t % 3) for t in range(12)], "ts long, k long").coalesce(1)
    if live:
        rows.write.parquet(str(tmp_path / "in"))
        rows = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    plan = cz.from_spark(rows, time="ts", name="framed").group_by("k").tumbling(6).agg(n=cz.count())
    found = plan.trace("k = 2")
    assert found.rows == 4
    assert [e.payload for e in found["tumbling"].ends] == [(2, 2), (2, 2)]
    assert plan.trace("k = 2", limit=6).rows == 2


def test_small_batches_are_gathered_up_to_a_number_of_rows_or_of_bytes() -> None:
    batches = [pa.record_batch({"v": pa.array([n] * 3, pa.int64())}) for n in range(5)]
    batches.insert(2, batches[0].slice(0, 0))
    by_rows = [*gathered(iter(batches), 6, 1 << 20)]
    by_bytes = [*gathered(iter(batches), 1 << 20, 49)]
    assert [b.num_rows for b in by_rows] == [6, 6, 3]
    assert [b.num_rows for b in by_bytes] == [9, 6]
    for some in (by_rows, by_bytes):
        assert pa.Table.from_batches(some) == pa.Table.from_batches(batches).combine_chunks()
    assert [*gathered(iter([]), 6, 49)] == []
