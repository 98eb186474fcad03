"""What goes wrong between two topics of a real broker: nothing is lost, nothing is there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition
from local_kafka import Broker
from topics import Topic

import caesura as cz
from caesura.errors import CaesuraError, StreamError
from caesura.events import Page
from caesura.io.kafka.transactions import TopicWriter
from caesura.runtime.sinks.memory import MemorySink

ROWS = pa.schema([("ts", pa.int64()), ("n", pa.int64())])
Make = Callable[..., Topic]


def rows(topic: Topic, **options: Any) -> cz.Stream:
    given = {"value": cz.json(ROWS), "time": "ts", "punctuate": cz.delay(0, closes=False), "until": "latest"}
    return cz.read.kafka(topic.servers, topic.name, **given | options)


def copied(source: Topic, target: Topic, checkpoint: Path, **options: Any) -> Any:
    sink = cz.kafka(target.servers, target.name, **options)
    return rows(source, **options).query(checkpoint=checkpoint, sink=sink, every="1h")


def numbers(topic: Topic) -> list[int]:
    topic.settle()
    out = pa.schema([("LE", pa.int64()), ("n", pa.int64())])
    read = cz.read.kafka(topic.servers, topic.name, value=cz.json(out), time="LE", until="latest")
    return sorted(read.run().table().column("n").to_pylist())


def test_a_broker_that_goes_away_in_the_middle_of_an_epoch_leaves_no_half_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker() as broker:
        source, target = Topic(broker.servers, 2, {}), Topic(broker.servers, 2, {})
        source.rows([1, 2])
        copied(source, target, tmp_path).run()
        source.rows([3, 4], partition=1)
        put = TopicWriter.put

        def cut_off(writer: TopicWriter, *given: Any) -> None:
            put(writer, *given)
            writer.flush()
            broker.stop()

        cut = copied(source, target, tmp_path, timeout="5s")
        with monkeypatch.context() as patched, pytest.raises(StreamError, match="no Kafka broker answers"):
            patched.setattr(TopicWriter, "put", cut_off)
            cut.run()
        with pytest.raises(StreamError, match="no Kafka broker answers"):
            cut.step()
        cut.close()
        broker.start()
        copied(source, target, tmp_path).run()
        assert numbers(target) == [10, 20, 30, 40]


def test_a_sink_whose_rows_cannot_be_written_aborts_its_epoch_and_goes_on_when_it_is_mended(
    make_topic: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = make_topic(), make_topic()
    source.rows([1, 2])

    def half(writer: TopicWriter, topic: str, records: Any) -> None:
        writer._produce(writer._producer, topic, next(iter(records)))
        raise OSError("the rest is gone")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="the rest is gone"):
        patched.setattr(TopicWriter, "put", half)
        copied(source, target, tmp_path).run()
    assert numbers(target) == []
    copied(source, target, tmp_path).run()
    assert numbers(target) == [10, 20]


def test_of_two_queries_that_write_to_one_topic_one_stops(make_topic: Make, tmp_path: Path) -> None:
    source, target = make_topic(), make_topic()
    source.rows([1])
    early, later = copied(source, target, tmp_path / "one"), copied(source, target, tmp_path / "one")
    later.run()
    with pytest.raises(CaesuraError, match=r"another (process|start)"):
        early.run()
    with pytest.raises(StreamError, match="was written from another checkpoint"):
        copied(source, target, tmp_path / "two")
    source.rows([2])
    copied(source, target, tmp_path / "one").run()
    assert numbers(target) == [10, 20]


def test_records_of_another_schema_are_told_and_the_others_are_read(make_topic: Make, tmp_path: Path) -> None:
    source, target = make_topic(), make_topic()
    source.put({"ts": 1, "n": 1}, {"ts": 2, "n": "two"}, {"ts": 3}, {"ts": 4, "n": 4, "more": [1]}, b"\xff")
    late = make_topic()
    sink = cz.kafka(target.servers, target.name, late=late.name)
    rows(source).query(checkpoint=tmp_path, sink=sink).run()
    out = pa.schema([("LE", pa.int64()), ("n", pa.int64())])
    read = cz.read.kafka(target.servers, target.name, value=cz.json(out), time="LE", until="latest")
    target.settle()
    assert [r["n"] for r in read.run().table().to_pylist()] == [1, None, 4]
    told = cz.json(pa.schema([("offset", pa.int64()), ("reason", pa.string())]))
    told_rows = cz.read.kafka(late.servers, late.name, value=told, time="offset", until="latest").run()
    reasons = told_rows.table().column("reason").to_pylist()
    assert [f"offset {n}: its value cannot be read" in why for n, why in zip((1, 4), reasons, strict=True)]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    made = cz.session("caesura-kafka-faults", master="local[2]", buckets=1)
    yield made
    made.stop()


def test_partitions_that_are_added_or_idle_and_records_that_retention_took_on_spark(
    make_topic: Make, spark: Any, tmp_path: Path
) -> None:
    source, before = make_topic(partitions=2), set[tuple[int, int]]()

    def start(trigger: str, sink: MemorySink, **options: Any) -> Any:
        policy = cz.delay(0, idle="100ms", closes=False)
        stream = rows(source, until=None, punctuate=policy, **options).tumbling(10).agg(n=cz.count())
        return stream.start(spark, sink=sink, checkpoint=tmp_path, output="final", trigger=trigger)

    def counts(**options: Any) -> tuple[list[tuple[int, int]], MemorySink]:
        """The first windows that became final; an epoch cut off before its end gives its own again."""
        sink, found = MemorySink(), list[tuple[int, int]]()
        query = start("continuous", sink, **options)
        while not found and not query.wait(1):
            pages = [item for item in sink.items() if isinstance(item, Page)]
            every = [(le, values[0]) for page in pages for le, _, _, values in page.rows()]
            found = [window for window in every if window not in before]
        query.stop()
        before.update(found)
        return found, sink

    source.rows([1, 2, 15])  # the other partition is idle
    assert counts()[0] == [(0, 2)]
    source.widen(3)
    source.rows([16, 25], partition=2)
    assert counts()[0] == [(10, 2)]
    source.rows([26, 27, 35])
    ends = source.admin.delete_records([TopicPartition(source.name, 0, 5)])
    next(iter(ends.values())).result()
    with pytest.raises(StreamError, match=r"begins at 5 now"):
        start("available", MemorySink()).wait()
    found, skipped = counts(on_gap="skip")
    assert found == [(20, 1)]
    [late] = skipped.late().values()
    assert "2 offsets are gone" in late.column("reason")[0].as_py()
    source.admin.delete_topics([source.name])[source.name].result()
    with pytest.raises(CaesuraError, match=r"no topic|no longer there"):
        start("available", MemorySink()).wait()
