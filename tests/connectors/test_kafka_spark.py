"""From topic to topic on Spark: restarted, every window is there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from topics import Topic

import caesura as cz
from caesura.errors import StreamError

ROWS = pa.schema([(name, pa.int64()) for name in ("ts", "n", "id")])


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    made = cz.session("caesura-kafka", master="local[2]", buckets=2)
    yield made
    made.stop()


def test_windows_of_a_topic_reach_another_topic_once_across_restarts(
    make_topic: Callable[..., Topic], spark: Any, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic(partitions=2)
    commits = tmp_path / "checkpoint" / "commits"
    options: dict[str, Any] = {"value": cz.json(ROWS), "time": "ts", "punctuate": cz.delay(0)}
    for first in (0, 20):
        for partition in (0, 1):
            source.put(
                *({"ts": t, "n": t * 10, "id": t % 3} for t in range(first, first + 20)), partition=partition
            )
        source.put(b"nonsense")
        read = cz.read.kafka(source.servers, source.name, **options)
        stream = read.group_by("id").tumbling(10).agg(total=cz.sum("n"))
        for _ in range(
            2
        ):  # the second time the last epoch runs again: its buckets have committed, Spark has not
            sink = cz.kafka(target.servers, target.name, key="id", punctuation=True)
            stream.start(spark, sink=sink, checkpoint=tmp_path / "checkpoint", trigger="available").wait()
            last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
            (commits / str(last)).unlink()
            (commits / f".{last}.crc").unlink(missing_ok=True)
    target.settle()
    back = (
        cz.read.kafka_changes(target.servers, target.name, stream.schema, time=pa.int64(), until="latest")
        .group_by()
        .tumbling(10)
        .agg(total=cz.sum("total"))
    )
    found = sorted((row["LE"], row["total"]) for row in back.run(output="final").table().to_pylist())
    assert found == [(first, 2 * sum(range(first, first + 10)) * 10) for first in (0, 10, 20)]
    with pytest.raises(StreamError, match="was written from another checkpoint"):
        stream.start(spark, sink=sink, checkpoint=tmp_path / "other", trigger="available").wait()


def test_the_last_rows_of_each_partition_are_read_again(
    make_topic: Callable[..., Topic], spark: Any, tmp_path: Path
) -> None:
    source = make_topic(partitions=2)
    for partition, first in ((0, 0), (1, 100)):
        some = ({"ts": t, "n": first + t, "id": partition} for t in range(20))
        source.put(*some, partition=partition)
    read = cz.read.kafka(source.servers, source.name, value=cz.json(ROWS), time="ts", punctuate=cz.delay(0))
    stream = read.group_by("id").tumbling(10).agg(total=cz.sum("n"))
    options: dict[str, Any] = {"sink": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    with stream.start(spark, **options) as query:
        query.drain()
        stretch, whole = query.replay(rows=5), query.replay()
        told = query.progress()["observedMetrics"]["caesura"]
    read_again = [raw for raws in stretch.raws.values() for raw in raws]
    found = {n for raw in read_again for n in raw.batch.column("n").to_pylist()}
    assert found == {*range(15, 20), *range(115, 120)}
    assert [*dict(whole.rows).values()] == [40] and told["rows_in"] == 40
    assert whole.trace_back("total = 45, LE = 0").verdict.startswith("needed: 9 of 40 rows")
