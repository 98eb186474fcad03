"""A topic of a real Kafka broker as a sink: every epoch once, whoever is killed where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from topics import Topic

import caesura as cz
from caesura.errors import StreamError
from caesura.events import History, Item, Page, parse
from caesura.io.kafka.epoch_notes import EpochNote
from caesura.io.kafka.transactions import TopicWriter
from caesura.io.kafka.written import OutRecord
from caesura.plan import Node
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.sinks.kafka import WRITERS, KafkaSink

Make = Callable[..., Topic]
STREAM = cz.from_items(" LE RE | id n |\n 1 2 | 7 1 | +")
OUTPUTS: dict[str, Node] = {"out": STREAM.node}
FIRST = parse(" LE RE | id n |\n 1 inf | 7 1 | +\n 2 inf | 8 2 | +")
SECOND = parse(" LE RE | id n |\n 1 inf->5 | 7 1 | -\n 5 inf | 7 3 | +\n 2 inf->6 | 8 2 | -")


def sink(topic: Topic, query: str = "q", **options: Any) -> KafkaSink:
    made: KafkaSink = cz.kafka(topic.servers, topic.name, key="id", **options)
    made.open(OUTPUTS)
    made.attach(query)
    return made


def epoch(number: int, items: list[Item]) -> Epoch:
    return Epoch(number, {"out": items}, {})


def records(topic: Topic) -> list[tuple[str, Any]]:
    """What a reader of what is committed finds, to the end."""
    topic.settle()
    options = {"isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": topic.servers, "group.id": "none", **options})
    consumer.assign([TopicPartition(topic.name, 0, 0)])
    found = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        value = message.value()
        found.append((message.key().decode(), None if value is None else orjson.loads(value)))
    consumer.close()
    return found


def test_changes_are_envelopes_that_a_source_reads_back(make_topic: Make) -> None:
    topic = make_topic()
    written = sink(topic)
    written.take(epoch(0, FIRST))
    written.take(epoch(1, SECOND))
    assert records(topic)[0] == ("7", {"kind": "+", "LE": 1, "RE": None, "RE_new": None, "id": 7, "n": 1})
    ticks = [(name, pa.int64()) for name in ("LE", "RE", "RE_new", "id", "n")]
    read = cz.read.kafka(
        topic.servers,
        topic.name,
        value=cz.json(pa.schema([("kind", pa.string()), *ticks])),
        time="LE",
        end="RE",
        kind="kind",
        new_end="RE_new",
        until="latest",
    )
    assert read.run().history == cz.from_items([*FIRST, *SECOND], FIRST[0].schema).run().history


def test_upserts_are_the_current_rows_and_a_key_without_one_gets_a_tombstone(make_topic: Make) -> None:
    topic = make_topic()
    written = sink(topic, records="upserts")
    written.take(epoch(0, FIRST))
    written.take(epoch(1, SECOND))
    current = [("7", {"id": 7, "n": 1}), ("8", {"id": 8, "n": 2}), ("7", {"id": 7, "n": 3}), ("8", None)]
    assert records(topic) == current


def test_a_start_knows_which_epoch_was_committed_last(make_topic: Make) -> None:
    topic = make_topic()
    first = sink(topic)
    assert first.last_epoch() is None
    first.take(epoch(0, FIRST))
    again = sink(topic)
    assert (again.last_epoch(), again.pending(0, ["out"]), again.pending(1, ["out"])) == (0, (), ["out"])


def test_an_epoch_that_was_cut_off_before_its_commit_is_not_there(make_topic: Make) -> None:
    topic = make_topic()
    target = sink(topic)._target
    cut = TopicWriter(target, "q")
    cut._producer.begin_transaction()
    cut.put(topic.name, [OutRecord(b"half", b"{}")])
    cut._notes.write(cut._producer, EpochNote("q", 0))
    cut.flush()  # in the topic, but not committed: the process ends here
    again = sink(topic)
    assert again.last_epoch() is None
    again.take(epoch(0, FIRST))
    assert [key for key, _ in records(topic)] == ["7", "8"]


def test_a_start_that_a_later_one_has_taken_over_from_can_commit_no_more(make_topic: Make) -> None:
    topic = make_topic()
    early, later = sink(topic), sink(topic)
    with pytest.raises(StreamError, match="another start of this query writes to topic"):
        early.take(epoch(0, FIRST))
    later.take(epoch(0, FIRST))
    assert len(records(topic)) == 2


def test_another_query_is_refused(make_topic: Make) -> None:
    topic = make_topic()
    sink(topic).take(epoch(0, FIRST))
    with pytest.raises(StreamError, match="was written from another checkpoint"):
        sink(topic, "another")


def test_a_note_that_the_broker_forgot_with_its_group_is_found_in_the_topic_of_notes(
    make_topic: Make,
) -> None:
    topic = make_topic()
    written = sink(topic)
    written.take(epoch(0, FIRST))
    written.take(epoch(1, SECOND))
    group = written._target.name(None)
    topic.admin.delete_consumer_groups([group])[group].result()
    assert sink(topic).last_epoch() == 1


def test_a_bucket_writes_its_epoch_once_and_an_attempt_that_was_overtaken_not_at_all(
    make_topic: Make,
) -> None:
    topic = make_topic(partitions=2)
    writer = sink(topic, punctuation=True).bucket_writer(0, 1)
    assert writer is not None
    zombie = TopicWriter(sink(topic)._target, "q", 0)
    with pytest.raises(StreamError, match="another start of this query"), zombie.epoch(0):
        writer(0, [*FIRST, cz.cti(9)], {})  # a later attempt, which commits first
        zombie.put(topic.name, [OutRecord(b"7", b"{}")])
    WRITERS.clear()
    writer(0, [*FIRST, cz.cti(9)], {})  # in another process
    topic.settle()
    back = cz.read.kafka_changes(topic.servers, topic.name, STREAM.schema, time=pa.int64(), until="latest")
    query = back.query()
    query.run()
    items = query.take("out")
    assert History.of(items, STREAM.schema) == History.of(FIRST, STREAM.schema)
    assert [item for item in items if not isinstance(item, Page)] == [cz.cti(9)]


def test_two_current_rows_of_a_key_stop_the_epoch_before_anything_is_written(make_topic: Make) -> None:
    topic = make_topic()
    written = sink(topic, records="upserts")
    with pytest.raises(StreamError, match="the key 7 has several current rows"):
        written.take(epoch(0, parse(" LE RE | id n |\n 1 inf | 7 1 | +\n 2 inf | 7 2 | +")))
    assert records(topic) == []
    written.take(epoch(0, FIRST))
    assert len(records(topic)) == 2
