"""A source of any kind on Spark, lane by lane between two offsets; lanes appear while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import caesura as cz
from caesura import Stream
from caesura.events import History, Page
from caesura.io import Offsets, Reader, Source
from caesura.io.ingress.shape import Shape
from caesura.plan import Raw

pytest.importorskip("pyspark")
from caesura.spark import MemorySink, start
from caesura.spark.host.lane_source import LanePart, LaneReader, SourceText
from caesura.spark.worker.job import Job
from caesura.spark.worker.shipped import ShippedJob

SCHEMA = pa.schema([("t", pa.int64()), ("v", pa.int64())])


class Files(Reader):
    """Lanes as files of numbers, one file per lane."""

    schema, spark_form, lanes = SCHEMA, "lanes", 1

    def __init__(self, folder: str) -> None:
        self.key = self.folder = folder

    def latest(self) -> Offsets:
        return {int(f.stem): len(f.read_text().split()) for f in sorted(Path(self.folder).glob("*.txt"))}

    def read(self, offsets: Offsets) -> Iterator[Raw]:
        files = sorted(Path(self.folder).glob("*.txt"))
        for file in files:  # every lane appears before one of them is far ahead
            lane = int(file.stem)
            yield Raw(lane, offsets.get(lane, 0), pa.RecordBatch.from_pylist([], SCHEMA))
        for file in files:
            lane, times = int(file.stem), [int(text) for text in file.read_text().split()]
            for at in range(offsets.get(lane, 0), len(times)):
                yield Raw(lane, at, pa.record_batch({"t": [times[at]], "v": [at]}, schema=SCHEMA))

    def describe(self) -> str:
        return "numbers"


def source(folder: Path) -> Source:
    reader = Files(str(folder))
    return Source(reader=reader, shape=Shape.of(time="t"), policy=cz.delay(1), name="numbers")


def test_an_epoch_reads_each_lane_to_where_it_ended_when_the_driver_asked(tmp_path: Path) -> None:
    from pyspark.cloudpickle import dumps

    from caesura.plan.cut import cut

    (tmp_path / "0.txt").write_text("1 2 3")
    node = source(tmp_path)
    job = ShippedJob.of(Job("q", cut({"out": node}, 2), 2, "arrival", closes=False))
    reader = LaneReader(job, node.fingerprint, dumps(node.reader.lane_bounds), SourceText("numbers", ""))
    first = reader.latestOffset(reader.initialOffset(), None)
    (tmp_path / "0.txt").write_text("1 2 3 4")
    (tmp_path / "1.txt").write_text("")
    second = reader.latestOffset(first, None)
    assert (first, second) == ({"lanes": {"0": 3}}, {"lanes": {"0": 4, "1": 0}})
    parts = [part for part in reader.partitions(first, second) if isinstance(part, LanePart)]
    assert [(p.lane, p.start, p.end) for p in parts] == [(0, 3, 4), (1, 0, 0)], "a lane appears without rows"


def test_a_source_is_read_lane_by_lane_and_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    from pyspark.cloudpickle import register_pickle_by_value

    register_pickle_by_value(sys.modules[__name__])
    (tmp_path / "in").mkdir()
    stream = Stream(source(tmp_path / "in")).group_by("v").tumbling(10).agg(n=cz.count())
    items = []
    for texts in ({"0": "1 12"}, {"0": "1 12 23 44", "1": "20 41"}):
        for name, text in texts.items():
            (tmp_path / "in" / f"{name}.txt").write_text(text)
        sink = MemorySink()
        start({"out": stream.node}, spark, sink=sink, checkpoint=tmp_path / "cp", trigger="available").wait()
        items += sink.items("out")
    bound = max(i.pattern.time_bound or 0 for i in items if not isinstance(i, Page))
    assert bound == 40, "the slower lane holds the stream"
    assert History.of(items, stream.schema).before(bound) == stream.run().history.before(bound)
