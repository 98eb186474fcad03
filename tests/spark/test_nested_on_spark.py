"""Lists, maps and structs on Spark: functions answer as Spark's own, rows come in and go out as they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import col
from caesura.expr import RowError, evaluate, sql
from caesura.expr import functions as f
from caesura.spark import ParquetSink, run_all, start
from caesura.testing.oracles.rows import canonical

sys.path.insert(0, str(Path(__file__).parents[1] / "expr"))

from nested_expressions import EXPRESSIONS, SCHEMA, rows


def test_functions_answer_as_sparks_do(spark: Any) -> None:
    batch = rows(200, 3)
    frame = spark.createDataFrame(pa.Table.from_batches([batch]))
    answered, refused = [], []
    for expr in EXPRESSIONS:
        try:
            answered.append((expr, evaluate(expr, batch).to_pylist()))
        except RowError:
            refused.append(expr)
    assert len(refused) == 8, [str(e) for e in refused]
    names = [f"c{i}" for i in range(len(answered))]
    theirs = frame.selectExpr(*(f"{sql(e)} AS {n}" for (e, _), n in zip(answered, names, strict=True)))
    wanted = theirs.toArrow()
    wrong = []
    for name, (expr, ours) in zip(names, answered, strict=True):
        pairs = zip(wanted.column(name).to_pylist(), ours, batch.to_pylist(), strict=True)
        bad = [(w, o, r) for w, o, r in pairs if canonical(w) != canonical(o)]
        wrong += [f"{expr}: Spark {w!r}, here {o!r}, of {r}" for w, o, r in bad[:2]]
    assert wrong == [], "\n".join(wrong)
    for expr in refused:
        with pytest.raises(
            Exception, match=r"INVALID_ARRAY_INDEX|NULL_MAP_KEY|INVALID_PARAMETER_VALUE|INVALID_INDEX"
        ):
            frame.selectExpr(sql(expr)).collect()


def plans(source: cz.Stream) -> dict[str, cz.Stream]:
    """What rows with nested columns go through."""
    by = source.group_by("a").tumbling(20)
    return {
        "carried": source.where(col("i") > 0),
        "grouped": by.agg(n=cz.count(), all=cz.collect("st"), last=cz.last("m"), most=cz.max("n")),
        "exploded": source.explode("ss", as_="each").select("i", "each.x", "m", y=col("each")["y"]),
        "keys": source.explode("m").group_by("key").tumbling(20).agg(values=cz.collect_set("value")),
        "once": source.select("t", "m").distinct(),
        "joined": source.select("a", "n").join(source.select("a", f.size("t").alias("k")), on="a"),
    }


def test_nested_rows_go_in_and_out(spark: Any, buckets: Any, tmp_path: Path) -> None:
    buckets(3)
    table = pa.Table.from_batches([rows(60, 5)]).add_column(0, "ts", pa.array(range(60)))
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    wanted = {name: s.run().history for name, s in plans(cz.from_arrow(table, time="ts")).items()}
    assert all(len(history) for history in wanted.values())
    for source in (
        cz.read.parquet(tmp_path / "in", time="ts"),
        cz.from_spark(spark.createDataFrame(table), time="ts"),
    ):
        got = run_all({name: s.node for name, s in plans(source).items()}, spark)
        for name, history in wanted.items():
            assert got[name].history == history, (name, got[name].history.difference(history))
    carried = plans(cz.read.parquet(tmp_path / "in", time="ts"))["carried"]
    sink = ParquetSink(tmp_path / "out")
    start({"out": carried.node}, spark, sink=sink, trigger="available").wait()
    back = sink.read_back("out").select(SCHEMA.names).to_pylist()
    assert canonical(sorted(back, key=str)) == canonical(
        sorted((dict(zip(SCHEMA.names, row, strict=True)) for _, _, row in wanted["carried"].rows()), key=str)
    )
    shown = carried.to_spark(spark).schema
    assert shown["m"].dataType.simpleString() == "map<string,bigint>"
    assert shown["n"].dataType.simpleString() == "array<array<bigint>>"
