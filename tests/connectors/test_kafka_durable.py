"""From topic to topic in this process, with a checkpoint: every row is there once, whatever is killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from topics import Topic

import caesura as cz

TICKS = pa.int64()
ROWS = pa.schema([("ts", pa.int64()), ("n", pa.int64())])
OUT = pa.schema([("kind", pa.string()), ("LE", pa.int64()), ("n", pa.int64())])


def test_a_query_that_is_made_again_goes_on_from_its_checkpoint(
    make_topic: Callable[..., Topic], tmp_path: Path
) -> None:
    source, target = make_topic(), make_topic()

    def start() -> Any:
        rows = cz.read.kafka(
            source.servers, source.name, value=cz.json(ROWS), time="ts", punctuate=cz.delay(0, closes=False)
        )
        sink = cz.kafka(target.servers, target.name)
        return rows.query(checkpoint=tmp_path / "checkpoint", sink=sink, every="1h")

    def read(query: Any) -> int:
        [reader] = query.runner._readers
        return int(reader.position.get("0", 0))

    source.rows([1, 2])
    killed = start()
    while read(killed) < 2:
        killed.step()
    killed.save()
    source.rows([3])
    while read(killed) < 3:
        killed.step()
    killed.close()  # the third row was read, and not saved
    again = start()
    while read(again) < 3:
        again.step()
    again.save()
    again.close()
    target.settle()
    found = cz.read.kafka(target.servers, target.name, value=cz.json(OUT), time="LE", until="latest").run()
    assert sorted(found.table().column("n").to_pylist()) == [10, 20, 30]


def test_two_queries_chain_by_a_topic_and_what_is_final_is_that_of_one(
    make_topic: Callable[..., Topic], tmp_path: Path
) -> None:
    source, between = make_topic(partitions=2), make_topic(partitions=3)

    def rows() -> cz.Stream:
        value = cz.json(ROWS)
        policy = cz.delay(3, closes=False)
        options: Any = {"value": value, "time": "ts", "punctuate": policy, "until": "latest"}
        return cz.read.kafka(source.servers, source.name, **options).with_columns(id=cz.col("n") % 3)

    def windows(stream: cz.Stream) -> cz.Stream:
        return stream.group_by("id").tumbling(4).agg(n=cz.count())

    def totals(stream: cz.Stream) -> cz.Stream:
        return stream.tumbling(8).agg(n=cz.sum("n"))

    for begin in (0, 20):  # the first query is made again, and so is the second
        for partition in (0, 1):
            source.rows([*range(begin, begin + 15), begin + 14, begin + 12], partition=partition)
        sink = cz.kafka(between.servers, between.name, key="id", punctuation=True)
        windows(rows()).query(checkpoint=tmp_path / "first", sink=sink, every="0s").run()
        between.settle()
        like = windows(rows())
        read = cz.read.kafka_changes(between.servers, between.name, like.schema, time=TICKS, until="latest")
        second = totals(read).query(checkpoint=tmp_path / "second", sink=tmp_path / "out", output="final")
        second.run()
        second.close()
    found = (
        cz.read.parquet(tmp_path / "out" / "out", time="LE", end="RE", kind="kind", new_end="RE_new")
        .run()
        .history
    )
    assert found == totals(windows(rows())).run(output="final").history
