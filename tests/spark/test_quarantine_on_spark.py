"""Poison files and lines on Spark: the query goes on, and what is mended comes back, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import caesura as cz
from caesura.cli.late import listed, rejected
from caesura.io.places import Place
from caesura.io.sources.give_back import give_back
from caesura.io.sources.quarantine import FOLDER
from caesura.spark import ParquetSink

SCHEMA = pa.schema([("t", pa.int64()), ("id", pa.int64())])


def counts(folder: Path) -> cz.Stream:
    def never(id: int) -> int:
        while id == 13:
            pass
        return id

    slow = cz.udf(never, returns="bigint", name="slow", timeout="100ms")
    read = cz.read.csv(
        folder / "in", time="t", schema=SCHEMA, punctuate=cz.delay(100), on_bad="quarantine", name="in"
    )
    named = read.with_columns(id=slow(cz.col("id"))).on_bad("late")
    return named.group_by("id").tumbling(10).agg(n=cz.count())


def go(spark: Any, folder: Path, name: str) -> list[tuple[int, int]]:
    query = counts(folder).start(
        spark, sink=ParquetSink(str(folder / name)), checkpoint=folder / f"{name}-cp", trigger="available"
    )
    query.wait()
    return sorted((row["id"], row["n"]) for row in query.table().to_pylist())


def test_what_cannot_be_read_goes_aside_and_comes_back(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("t,id\n1,1\n2,x\n3,13\n4,2\n")
    (tmp_path / "in" / "b.csv").write_text("nothing,like,it\n5,1,2\n")
    assert go(spark, tmp_path, "out") == [(1, 1), (2, 1)]
    lines = "\n".join(listed(rejected(Place.of(tmp_path / "out")), 10))
    assert "a.csv', line 3: " in lines
    assert "b.csv' has no column 't'" in lines
    assert "no answer within 0.1 s" in lines
    (tmp_path / "in" / "b.csv").write_text("t,id\n5,1\n")
    for file in (tmp_path / "in" / FOLDER).glob("*.csv"):
        file.write_text("t,id\n2,2\n")
    assert sorted(back.some.given_back for back in give_back(Place.of(tmp_path / "in"))) == [
        "b.csv~0001.csv",
        "b.csv~0002.csv",
    ]
    assert go(spark, tmp_path, "out") == [(1, 2), (2, 2)]
    assert go(spark, tmp_path, "anew") == [(1, 2), (2, 2)]
    assert listed(rejected(Place.of(tmp_path / "anew")), 0) == ["select: 1 refused", "  and 1 more"]
