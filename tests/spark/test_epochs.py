"""How epochs run on Spark: each stage once, every file once, and a status that people and programs read."""

from __future__ import annotations

import io
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import spark_plans as given
from rich.console import Console

import caesura as cz
from caesura import col
from caesura.console import panel
from caesura.events import History
from caesura.runtime.status import COUNTS
from caesura.spark import MemorySink, start


class Counting(MemorySink):
    """Counts how often each stage of each bucket reported in each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Counter[str]] = []

    def write(self, epoch: int, packets: Any) -> None:
        kept = packets.persist()
        rows = kept.filter(f"label = '{COUNTS}'").collect()
        self.calls.append(Counter(row.origin for row in rows))
        super().write(epoch, kept)
        kept.unpersist()


def test_a_diamond_with_three_views_runs_each_stage_once_per_bucket_and_epoch(
    spark: Any, tmp_path: Path
) -> None:
    given.write(given.readings(), tmp_path / "readings", [130, 170])
    points = cz.read.parquet(tmp_path / "readings", time="ts", punctuate=cz.delay(4), name="readings")
    slow = points.where(col("mph") < 20).group_by("seg").tumbling(10).agg(slow=cz.count())
    fast = points.where(col("mph") >= 20).group_by("seg").tumbling(10).agg(fast=cz.count())
    both = slow.join(fast, on="seg", how="full")
    total = both.group_by("slow").tumbling(10).agg(n=cz.count())
    sink = Counting()
    outputs = {"slow": slow.node, "both": both.node, "total": total.node}
    query = start(outputs, spark, sink=sink, trigger="available", files_per_epoch=1)
    query.wait()
    assert len(sink.calls) >= 3
    for calls in sink.calls:
        assert set(calls.values()) <= {1}
    assert set(sink.calls[0]) == {"1:0", "1:1", "2:0", "2:1"}
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


def test_files_that_appear_out_of_name_order_are_read_once(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    seen: list[int] = []
    for step, name in enumerate(("m", "z", "a", "k")):
        partial = tmp_path / f"{name}.partial"
        pq.write_table(pa.table({"ts": [10 * step], "id": [step]}), partial)
        os.utime(partial, (1_700_000_000 + step,) * 2)
        partial.rename(tmp_path / "in" / f"{name}.parquet")
        stream = cz.read.parquet(tmp_path / "in", time="ts", name="ids")
        sink = MemorySink()
        start({"out": stream.node}, spark, sink=sink, checkpoint=tmp_path / "cp", trigger="available").wait()
        history = History.of(sink.items("out"), stream.schema)
        seen += [row[2][0] for row in history.rows()]
    assert seen == [0, 1, 2, 3]
