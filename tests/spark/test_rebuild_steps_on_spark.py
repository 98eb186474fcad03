"""A rebuild on Spark lets clock and feedback in again where they came first, and loops come to rest."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import Stream, col
from caesura.errors import StreamError
from caesura.events import History
from caesura.io.places import Place
from caesura.io.sinks.rows import changed_page
from caesura.punctuation import Intent
from caesura.runtime.sinks.parquet import ParquetSink
from caesura.spark import start
from caesura.spark.host import stepping
from caesura.spark.host.feedback import CheckpointFeedback
from caesura.spark.host.part import SparkPart

HOUR = 3600 * 10**6
BEGIN = 1_700_000_000 * 10**6 // HOUR * HOUR
FUTURE = 4_000_000_000 * 10**6 // HOUR * HOUR
"""Long past, and long to come: no clock that a test meets reads either."""
Row = dict[str, int]


def put(folder: Path, name: str, number: int, rows: list[Row], time: pa.DataType | None = None) -> None:
    """A file of rows; its name sorts before those of earlier files."""
    (folder / name).mkdir(exist_ok=True, parents=True)
    kinds = {"t": time or pa.int64()}
    columns = {c: pa.array([row[c] for row in rows], kinds.get(c, pa.int64())) for c in rows[0]}
    partial = folder / f"{name}.partial"
    pq.write_table(pa.table(columns), partial)
    os.utime(partial, (1_700_000_000 + number,) * 2)
    partial.rename(folder / name / f"{9 - number}.parquet")


def run(folder: Path, spark: Any, plan: dict[str, Stream], **options: Any) -> None:
    nodes = {name: stream.node for name, stream in plan.items()}
    given = {"checkpoint": folder / "cp", "sink": folder / "out", "files_per_epoch": 1, **options}
    start(nodes, spark, trigger="available", **given).wait()


def held(folder: Path, plan: dict[str, Stream], name: str = "out") -> History:
    nodes = {name: stream.node for name, stream in plan.items()}
    sink = ParquetSink(str(folder / "out"))
    sink.open(nodes)
    node = nodes[name]
    return History.of([changed_page(sink.read_back(name), node.schema, node.time)], node.schema)


def late(folder: Path) -> Counter[tuple[Any, ...]]:
    """The late rows of a folder that all plans let through to where they are late."""
    tables = [pq.read_table(file) for file in (folder / "_late").glob("*.parquet")]
    rows = [row for table in tables for row in table.to_pylist()]
    return Counter((str(row["LE"]), row["v"]) for row in rows if row["v"] > 1)


def clocked(folder: Path, least: int, *, more: bool = False) -> dict[str, Stream]:
    """Hours by a clock that promises, and rows with the time at which they came."""
    beat = cz.heartbeat("1s", future=None)
    beats = cz.read.parquet(folder / "beats", time="t", punctuate=beat, name="beats")
    came = cz.read.parquet(
        folder / "came", schema=pa.schema([("v", pa.int64())]), time=cz.ingestion_time(), name="came"
    )
    counted = {"n": cz.count(), **({"most": cz.max("v")} if more else {})}
    return {
        "hours": beats.where(col("v") > least).group_by("v").tumbling("1h").agg(**counted),
        "came": came.where(col("v") > least).select("v"),
    }


def hours(number: int) -> tuple[list[Row], list[Row]]:
    """Rows that are late in all files but the first, and rows that are not."""
    old = [{"t": BEGIN + (number + v) * HOUR, "v": v} for v in range(4)]
    new = [{"t": FUTURE + number * HOUR, "v": v} for v in range(4)]
    return old, new


def come(folder: Path, number: int) -> None:
    put(folder, "beats", number, [row for rows in hours(number) for row in rows], pa.timestamp("us"))
    put(folder, "came", number, [{"v": 10 * number + v} for v in range(4)])


def check_hours(folder: Path, plan: dict[str, Stream], least: int, files: int) -> None:
    """The history is that of the rows that were not late when they came first."""
    entered = hours(0)[0] + [row for number in range(files) for row in hours(number)[1]]
    wanted = Counter((row["t"] // HOUR * HOUR, row["v"]) for row in entered if row["v"] > least)
    assert {(le, row[0]): row[1] for le, _, row in held(folder, plan, "hours").rows()} == wanted


def pull_the_plug(*_: Any) -> Any:
    raise OSError("the plug was pulled")


def test_the_clock_reads_again_on_spark_what_it_read_first(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    come(tmp_path, 0)
    old, new = clocked(tmp_path, 0), clocked(tmp_path, 1)
    run(tmp_path, spark, old)
    come(tmp_path, 1)
    come(tmp_path, 2)
    run(tmp_path, spark, old)
    check_hours(tmp_path, old, 0, 3)
    times = {row[0]: le for le, _, row in held(tmp_path, old, "came").rows()}
    assert len(set(times.values())) > 1 and len(late(tmp_path / "out")) == 4

    def once(packets: Any) -> bytes:
        return pull_the_plug() if (tmp_path / "cp" / "plan-2" / "commits").exists() else kept(packets)

    kept, before = stepping.rows_bytes, held(tmp_path, old, "came")
    with monkeypatch.context() as patched:
        patched.setattr(stepping, "rows_bytes", once)  # in the second epoch that is run again
        with pytest.raises(StreamError, match="the plug was pulled"):
            run(tmp_path, spark, new, on_change="rebuild")
    assert SparkPart.of(Place.of(tmp_path / "cp")) == SparkPart(*[Place.of(tmp_path / "cp")] * 2)
    with monkeypatch.context() as patched:
        patched.setattr(ParquetSink, "commit", pull_the_plug)  # behind the switch
        with pytest.raises(StreamError, match="the plug was pulled"):
            run(tmp_path, spark, new, on_change="rebuild")
    assert held(tmp_path, old, "came") == before
    come(tmp_path, 3)
    run(tmp_path, spark, new)
    check_hours(tmp_path, new, 1, 4)
    now = {row[0]: le for le, _, row in held(tmp_path, new, "came").rows()}
    assert {v: le for v, le in now.items() if v < 30} == {v: le for v, le in times.items() if v > 1}
    assert len(late(tmp_path / "out")) == 6

    if not os.environ.get("CAESURA_SEARCH"):
        return  # four more epochs, one start each, are for make soak
    wide = clocked(tmp_path, 0, more=True)
    run(tmp_path, spark, wide, on_change="rebuild", final_rows="new_generation")
    check_hours(tmp_path, wide, 0, 4)
    assert late(tmp_path / "out" / "_generation-2") == late(tmp_path / "out")
    again = {row[0]: le for le, _, row in held(tmp_path, wide, "came").rows()}
    assert {v: le for v, le in again.items() if v > 1} == now


def windows(rows: Stream, size: int) -> dict[str, Stream]:
    counts = rows.group_by("id").tumbling(size).agg(n=cz.count())
    return {"out": counts.group_by("n").tumbling(2 * size).agg(id=cz.max("id"), of=cz.count())}


def points(number: int) -> list[Row]:
    return [{"t": 7 * number + at // 3, "id": at % 3} for at in range(24)]


def spoken_to(folder: Path, spark: Any, sizes: list[int]) -> dict[str, Stream]:
    """Files, and what a consumer says between them, through plans of these sizes."""
    plan: dict[str, Stream] = {}
    for number, size in enumerate(sizes):
        if number == 1:
            CheckpointFeedback.at(folder / "cp").give(Intent.ASSUMED, col("n") == 7, None)
        if number == 2:
            CheckpointFeedback.at(folder / "cp").withdraw(1)
            CheckpointFeedback.at(folder / "cp").give(Intent.ASSUMED, col("n") == 4, None)
        put(folder, "in", number, points(number))
        rows = cz.read.parquet(folder / "in", time="t", punctuate=cz.delay(4), name="in")
        plan, how = windows(rows, size), "rebuild" if size != sizes[number - 1] and number else "refuse"
        run(folder, spark, plan, feedback=True, on_change=how)
    return plan


def test_feedback_comes_again_on_spark_where_it_came_first(spark: Any, tmp_path: Path) -> None:
    changed, fresh = tmp_path / "changed", tmp_path / "fresh"
    plan = spoken_to(changed, spark, [10, 10, 6])
    spoken_to(fresh, spark, [6, 6, 6])
    rows = cz.from_rows([row for number in range(3) for row in points(number)], time="t")
    silent = windows(rows, 6)["out"].run().history
    assert held(changed, plan) == held(fresh, plan)
    assert held(changed, plan).bag - silent.bag or silent.bag - held(changed, plan).bag
    lines = [sorted(CheckpointFeedback.at(folder / "cp").standing()) for folder in (changed, fresh)]
    assert lines[0] == lines[1] and len(lines[0]) > 1
