"""From topic to topic on Spark: restarted, every window is there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from topics import Topic

import caesura as cz

ROWS = pa.schema([("ts", pa.int64()), ("n", pa.int64())])
OUT = pa.schema([(name, pa.int64()) for name in ("LE", "RE", "total")])


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    made = cz.session("caesura-kafka", master="local[2]", buckets=1)
    yield made
    made.stop()


def test_windows_of_a_topic_reach_another_topic_once_across_restarts(
    make_topic: Callable[..., Topic], spark: Any, tmp_path: Path
) -> None:
    source, target = make_topic(partitions=2), make_topic()
    options: dict[str, Any] = {"value": cz.json(ROWS), "time": "ts", "punctuate": cz.delay(0)}
    for first in (0, 20):
        for partition in (0, 1):
            source.rows(range(first, first + 20), partition=partition)
        source.put(b"nonsense")
        stream = cz.read.kafka(source.servers, source.name, **options).tumbling(10).agg(total=cz.sum("n"))
        sink = cz.kafka(target.servers, target.name)
        stream.start(
            spark, sink=sink, checkpoint=tmp_path / "checkpoint", output="final", trigger="available"
        ).wait()
    read = cz.read.kafka(target.servers, target.name, value=cz.json(OUT), time="LE", end="RE", until="latest")
    found = sorted((row["LE"], row["total"]) for row in read.run().table().to_pylist())
    assert found == [(first, 2 * sum(range(first, first + 10)) * 10) for first in (0, 10, 20)]
