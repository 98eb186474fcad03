"""What goes wrong in the middle of a run stops it with a message, and a restart loses nothing."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caesura as cz
from caesura import Stream
from caesura.errors import CaesuraError, StreamError
from caesura.events import History
from caesura.io.places import Place, local
from caesura.io.places.lease import Lease
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.query.result import run
from caesura.spark import CallbackSink, MemorySink, ParquetSink, SparkQuery, start
from caesura.spark.loop_log.log import LoopLog


class Run:
    """A query over a folder that is started again and again with the same checkpoint."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        (folder / "in").mkdir()
        self.items: list[Any] = []

    def put(self, number: int, rows: dict[str, list[int]] | bytes) -> Path:
        file = self.folder / f"{number}.parquet"
        if isinstance(rows, bytes):
            file.write_bytes(rows)
        else:
            pq.write_table(pa.table(rows), file)
        os.utime(file, (1_700_000_000 + number,) * 2)
        return file.rename(self.folder / "in" / file.name)

    def stream(self) -> Stream:
        return (
            cz.read.parquet(self.folder / "in", time="ts", punctuate=cz.delay(5), name="points")
            .group_by("id")
            .tumbling(10)
            .agg(n=cz.count())
        )

    def go(self, sink: MemorySink | CallbackSink | ParquetSink) -> SparkQuery:
        outputs = {"out": self.stream().node}
        place = self.folder / "checkpoint"
        return start(outputs, self.spark, sink=sink, checkpoint=place, trigger="available", files_per_epoch=1)

    def fails(self, match: str) -> None:
        sink = MemorySink()
        with pytest.raises(CaesuraError, match=match):
            self.go(sink).wait()
        self.items += sink.items("out")

    def ends(self) -> None:
        sink = MemorySink()
        self.go(sink).wait()
        self.items += sink.items("out")


def rows(start: int) -> dict[str, list[int]]:
    return {"ts": list(range(start, start + 20)), "id": [n % 3 for n in range(20)]}


def test_a_broken_file_and_a_failing_sink_stop_the_run_and_a_restart_goes_on(
    spark: Any, tmp_path: Path
) -> None:
    run_ = Run(spark, tmp_path)
    run_.put(0, rows(0))
    broken = run_.put(1, b"this is no Parquet file")
    run_.fails(r"1\.parquet")
    broken.unlink()
    run_.put(1, rows(20))
    run_.put(2, rows(40))
    run_.put(3, rows(60))
    seen: list[Epoch] = []

    def half_way(epoch: Epoch) -> None:
        seen.append(epoch)
        if len(seen) == 2:
            raise OSError("the database is away")

    with pytest.raises(StreamError, match="the database is away"):
        run_.go(CallbackSink(half_way)).wait()
    run_.items += [item for epoch in seen[:1] for item in epoch.items.get("out", [])]
    named = (tmp_path / "in" / "2.parquet").rename(tmp_path / "away")  # the epoch that failed names it
    run_.fails(r"2\.parquet', which belongs to epoch 2, is gone")
    named.rename(tmp_path / "in" / "2.parquet")
    run_.ends()
    stream = run_.stream()
    wanted = run(stream.node).history
    got = History.of(run_.items, stream.schema)
    bound = max(i.pattern.time_bound or 0 for i in run_.items if not hasattr(i, "le"))
    assert bound == 70
    assert got.before(bound) == wanted.before(bound)


def test_a_full_disk_stops_the_run_with_the_cause_and_a_restart_goes_on(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_ = Run(spark, tmp_path)
    run_.put(0, rows(0))
    write = local._write

    def full(file: Path, data: bytes, mode: int) -> None:
        """Writes a commit to a device that has no room."""
        if "000000.json" in file.name:
            Path("/dev/full").write_bytes(data)
        write(file, data, mode)

    monkeypatch.setattr(local, "_write", full)
    with pytest.raises(StreamError, match=r"a disk is full: .*No space left(.|\n)*Make room"):
        run_.go(ParquetSink(str(tmp_path / "out"))).wait()
    monkeypatch.undo()
    run_.go(ParquetSink(str(tmp_path / "out"))).wait()
    assert pq.read_table(tmp_path / "out" / "out").num_rows > 0


def test_whatever_spark_stumbles_on_a_query_that_was_taken_over_from_says_that(
    spark: Any, tmp_path: Path
) -> None:
    run_ = Run(spark, tmp_path)
    run_.put(0, rows(0))
    first = run_.go(ParquetSink(str(tmp_path / "out")))
    first.wait()
    first._lease = Lease.take(Place.of(tmp_path / "checkpoint"), take_over=True)  # as if it ran on
    other = Lease.take(Place.of(tmp_path / "checkpoint"), take_over=True)
    told = first._ours(RuntimeError("Concurrent update to the log. Multiple streaming jobs detected for 7."))
    assert re.search(r"was taken over by .*\nLet that one run", str(told)), told
    other.release()
    assert first._ours(RuntimeError("again")) is told


def test_a_loop_log_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "loop").write_text("a file where the folder should be")
    with pytest.raises(StreamError, match="cannot be written") as caught:
        LoopLog(str(tmp_path / "loop")).write(1, 0, pa.record_batch({"n": [1]}))
    assert "the epoch runs again from the checkpoint" in str(caught.value)
