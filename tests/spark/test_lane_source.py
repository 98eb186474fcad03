"""A source of any kind on Spark, lane by lane between two offsets; lanes appear while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from restart_worlds import Delta, Topic, World

import caesura as cz
from caesura import Stream
from caesura.events import History, Page
from caesura.io import Offsets, Reader, Source
from caesura.io.ingress.shape import Shape
from caesura.plan import Raw
from caesura.plan.cut import cut

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


@pytest.mark.parametrize(
    "fate", ["made anew, smaller", "made anew, equal", "made anew, larger", "fewer partitions"]
)
def test_an_offset_of_a_topic_never_goes_back_and_is_never_another_topics(fate: str, tmp_path: Path) -> None:
    _refused_after(fate, Topic(tmp_path, Random(7)))


@pytest.mark.parametrize("fate", ["made anew, smaller", "made anew, equal", "made anew, larger"])
def test_a_table_that_is_replaced_under_a_running_query_is_not_read_on(fate: str, tmp_path: Path) -> None:
    _refused_after(fate, Delta(tmp_path / "in", Random(7)))


def _refused_after(fate: str, world: World) -> None:
    """A driver that asks for more is refused, alive or started anew; and so is a replay."""
    with world.broker.served() if isinstance(world, Topic) else nullcontext():
        first, live = lane_reader(world), lane_reader(world)
        begin = first.latestOffset(first.initialOffset(), None)
        world.grow()
        end = first.latestOffset(begin, None)
        assert all(end["lanes"][lane] >= at for lane, at in begin["lanes"].items())
        world.fates[fate]()
        for reader in (live, lane_reader(world)):
            with pytest.raises(RuntimeError, match=r"CAESURA<<StreamError\|.*made anew"):
                reader.latestOffset(end, None)
        with pytest.raises(RuntimeError, match=r"CAESURA<<StreamError\|.*made anew"):
            lane_reader(world).partitions(begin, end)
        del end["passed"]  # as a version that knew no ids took it down
        if fate in ("made anew, smaller", "fewer partitions"):
            with pytest.raises(RuntimeError, match=r"is to be read on from .* and it ends at"):
                lane_reader(world).latestOffset(end, None)


def lane_reader(world: World) -> LaneReader:
    """What Spark asks of a source, without Spark."""
    from pyspark.cloudpickle import dumps

    node = world.stream().node
    assert isinstance(node, Source)
    text = SourceText(node.reader.describe(), node.reader.put_back)
    job = ShippedJob.of(Job("q", cut({"out": node}, 2), 2, "arrival", closes=False))
    return LaneReader(job, node.fingerprint, dumps(node.reader.lane_bounds), text)


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
