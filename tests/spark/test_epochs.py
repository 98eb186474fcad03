"""How epochs run on Spark: each stage once, every file once, and a status that people and programs read."""

from __future__ import annotations

import io
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spark_plans as given
from rich.console import Console

import caesura as cz
from caesura import col
from caesura.console.live import panel
from caesura.events import History
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.buckets.labels import COUNTS
from caesura.runtime.query.result import run
from caesura.spark import MemorySink, start
from caesura.spark.sinks.epochs import EpochWriter


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[Counter[str]]:
    """How often each stage of each bucket reported in each epoch."""
    calls: list[Counter[str]] = []
    write = EpochWriter.write

    def counting(self: EpochWriter, epoch: int, packets: Any) -> None:
        kept = packets.persist()
        rows = kept.filter(f"label = '{COUNTS}'").collect()
        calls.append(Counter(row.origin for row in rows))
        write(self, epoch, kept)
        kept.unpersist()

    monkeypatch.setattr(EpochWriter, "write", counting)
    return calls


def test_a_diamond_with_three_views_runs_each_stage_once_per_bucket_and_epoch(
    spark: Any, tmp_path: Path, reported: list[Counter[str]]
) -> None:
    given.write(given.readings(), tmp_path / "readings", [130, 170])
    points = cz.read.parquet(tmp_path / "readings", time="ts", punctuate=cz.delay(4), name="readings")
    slow = points.where(col("mph") < 20).group_by("seg").tumbling(10).agg(slow=cz.count())
    fast = points.where(col("mph") >= 20).group_by("seg").tumbling(10).agg(fast=cz.count())
    both = slow.join(fast, on="seg", how="full")
    total = both.group_by("slow").tumbling(10).agg(n=cz.count())
    outputs = {"slow": slow.node, "both": both.node, "total": total.node}
    query = start(outputs, spark, sink=MemorySink(), trigger="available", bytes_per_epoch=1)
    query.wait()
    assert len(reported) >= 3
    for calls in reported:
        assert set(calls.values()) <= {1}
    assert set(reported[0]) == {"1:0", "1:1", "2:0", "2:1"}
    _check_status(query)


def _check_status(query: Any) -> None:
    status = query.status()
    assert status.sources["readings"].rows == 400
    assert status.sources["readings"].late > 0
    assert status.epoch >= 2
    assert status.seconds > 0
    assert status.steps["join"].rows_in > 0
    assert status.steps["join"].state_bytes >= 0
    assert status.lag("join") is not None
    assert query.status().to_json()["steps"]["join"]["lag"] == status.lag("join")
    out = Console(file=io.StringIO(), width=140)
    out.print(panel(status))
    drawn = out.file.getvalue()  # type: ignore[attr-defined]
    assert "readings" in drawn
    assert "2 tumbling@2" in drawn


def test_files_out_of_name_order_and_long_after_their_time_are_read_once(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    seen: list[int] = []
    for step, name in enumerate(("m", "z", "a", "k")):
        partial = tmp_path / f"{name}.partial"
        pq.write_table(pa.table({"ts": [10 * step], "id": [step]}), partial)
        age = 90 * 86_400 if name == "a" else 0  # beyond what Spark passes over by itself
        os.utime(partial, (1_700_000_000 + step - age,) * 2)
        partial.rename(tmp_path / "in" / f"{name}.parquet")
        stream = cz.read.parquet(tmp_path / "in", time="ts", name="ids")
        sink = MemorySink()
        start({"out": stream.node}, spark, sink=sink, checkpoint=tmp_path / "cp", trigger="available").wait()
        history = History.of(sink.items("out"), stream.schema)
        seen += [row[2][0] for row in history.rows()]
    assert seen == [0, 1, 2, 3]


def test_rows_of_a_streaming_frame_are_late_by_earlier_epochs_only(spark: Any, tmp_path: Path) -> None:
    for number, times in enumerate(([0, 50, 10], [60, 20, 47])):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"ts": times, "id.n": [t // 10 for t in times]}), file)
        os.utime(file, (1_700_000_000 + number,) * 2)
    frame = (
        spark.readStream.schema("ts long, `id.n` long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path))
    )
    stream = cz.from_spark(frame, time="ts", punctuate=cz.delay(5), name="ids")
    before = spark.conf.get(BATCH_BYTES)
    sink = MemorySink()
    start({"out": stream.node}, spark, sink=sink, trigger="available").wait()
    rows = History.of(sink.items("out"), stream.schema).rows()
    assert sorted(row[0] for row in rows) == [0, 10, 47, 50, 60]
    assert stream.schema.names == ["id.n"]
    assert sink.late()["ids"]["LE"].to_pylist() == [20]
    assert spark.conf.get(BATCH_BYTES) == before


BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"


class Distances(MemorySink):
    """Notes after every epoch how far each source has come."""

    def __init__(self) -> None:
        super().__init__()
        self.latest: list[dict[str, int]] = []

    def take(self, epoch: Epoch) -> None:
        super().take(epoch)
        self.latest.append({name: s.latest for name, s in self.board.status().sources.items()})


def test_a_backfill_is_not_read_further_ahead_than_told(spark: Any, tmp_path: Path) -> None:
    for name, step in (("fast", 100), ("slow", 20)):
        (tmp_path / name).mkdir()
        for number in range(6):
            times = [step * number + n for n in range(0, step, step // 10)]
            table = pa.table({"ts": times, "id": [n % 3 for n in range(10)], name: times})
            file = tmp_path / name / f"{number}.parquet"
            pq.write_table(table, file)
            os.utime(file, (1_700_000_000 + number,) * 2)
    fast, slow = (
        cz.read.parquet(tmp_path / name, time="ts", punctuate=cz.delay(0), name=name).set_duration(30)
        for name in ("fast", "slow")
    )
    stream = fast.join(slow, on="id")
    sink = Distances()
    query = stream.start(
        spark, sink=sink, checkpoint=tmp_path / "cp", trigger="available", files_per_epoch=1, ahead=100
    )
    query.wait()
    while_both = [seen for seen in sink.latest if seen["slow"] < 110]
    assert len(while_both) >= 3
    assert (
        max(seen["fast"] - seen["slow"] for seen in while_both) <= 200
    )  # the bound, and the file it falls in
    reads = [seen["fast"] for seen in sink.latest]
    assert reads[-1] == 590
    assert max(b - a for a, b in pairwise(reads)) <= 100  # one file at a time
    wanted = run(stream.node).history
    bound = max(i.pattern.time_bound or 0 for i in sink.items("out") if not hasattr(i, "le"))
    got = History.of(sink.items("out"), stream.node.schema)
    assert [r for r in got.rows() if r[0] < bound] == [r for r in wanted.rows() if r[0] < bound]
    assert not list((tmp_path / "cp" / "loop").glob("*.partial"))
