"""Two pipelines joined by a topic: what is final behind them is what is final behind the one plan."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from cluster import Cluster
from depth import examples
from faults import Killed
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_broker import Entry, MemoryBroker

import caesura as cz
from caesura import Stream, io
from caesura.events import History, Item
from caesura.io.kafka.promised import HEADER
from caesura.plan import Raw
from caesura.punctuation import INFINITY, Pattern
from caesura.punctuation.writers import WriterPromise
from caesura.runtime.buckets.aligner import Epoch
from caesura.runtime.packets.packet import Packet
from caesura.runtime.sinks import kafka
from caesura.runtime.sinks.kafka import KafkaSink
from caesura.testing.spec import InputSpec
from caesura.testing.strategies import streams

SPEC = InputSpec({"id": "key", "name": "str"}, key="id", lifetimes="any", max_rows=6)
TOPIC, BUCKETS = "middle", 2


def first(items: list[Item], *, closes: bool = True) -> Stream:
    source = io.from_items(items, SPEC.schema, name="readings")
    return Stream(replace(source, policy=cz.at_end(closes=closes))).where(cz.col("id") != 2).distinct()


def second(stream: Stream) -> Stream:
    return stream.group_by("id").snapshot().agg(n=cz.count())


def sink(broker: MemoryBroker, **options: Any) -> KafkaSink:
    made: KafkaSink = cz.kafka(broker.servers, TOPIC, punctuation=True, **options)
    return made


def write(broker: MemoryBroker, stream: Stream, kills: list[int], **options: Any) -> None:
    """Runs the first pipeline into the topic, killed at some calls of its producer and started again."""
    checkpoint = f"memory://{uuid.uuid4().hex}"
    for kill in (*kills, -1):
        with broker.served(kill), suppress(Killed):
            query = stream.query(checkpoint=checkpoint, sink=sink(broker, **options), every="1h")
            while query.step():
                query.save()
            query.save()


def write_buckets(broker: MemoryBroker, stream: Stream, kills: list[int]) -> None:
    """The same in buckets, each a writer of its own, as on Spark; an epoch that was cut off runs again."""
    packets = [some for some in epochs_of(stream) if some]
    for number, some in enumerate(packets):
        for kill in (*(kills if number % 2 else ()), -1):
            with broker.served(kill), suppress(Killed):
                kafka.WRITERS.clear()
                written = sink(broker)
                written.open({"out": stream.node})
                written.attach("query")
                writer = written.bucket_writer(number, BUCKETS)
                for bucket in range(BUCKETS):
                    mine = [i for p in some if p.origin == str(bucket) for i in p.items]
                    writer(bucket, mine, {})


def epochs_of(stream: Stream) -> Iterator[list[Packet]]:
    """The packets that leave the plan, epoch by epoch."""
    cluster = Cluster({"out": stream.node}, BUCKETS)
    [source] = cluster.stages.sources
    left: list[Packet] = []
    with patch.object(cluster, "_collect", left.extend):
        for raw in source.read({}):
            cluster.epoch([(source, raw)])
            yield [p for p in left if p.label.startswith("out:")]
            left.clear()
        cluster.epoch([], closes=source.policy.closes)
        yield [p for p in left if p.label.startswith("out:")]


def middle(broker: MemoryBroker, like: Stream) -> Stream:
    return cz.read.kafka_changes(broker.servers, TOPIC, like.schema, time=pa.int64(), until="latest")


def final(stream: Stream) -> History:
    return stream.run(output="final").history


def final_in_parts(stream: Stream, steps: int) -> History:
    """The same by queries that are saved and made again after some steps."""
    items: list[Item] = []
    saved: dict[str, Any] = {}
    going = True
    while going:
        query = stream.query(output="final")
        if saved:
            query.restore({name: data for name, data in saved.items() if data is not None})
        going = all(query.step() for _ in range(steps))
        items += query.take("out")
        saved |= query.snapshot()
        query.close()
    return History.of(items, stream.schema)


def assert_alike(chained: Stream, whole: Stream, steps: int, *, closes: bool) -> None:
    """What is final of the chain, at once and in parts, is what is final of the one plan."""
    found = [final(chained), final_in_parts(chained, steps), final(whole)]
    if not closes:  # whether a row without end has left by then depends on what came before the promise
        ended = [[row for row in each.rows() if row[1] < INFINITY] for each in found]
        found = [History.from_rows(rows, chained.schema) for rows in ended]
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
@settings(max_examples=examples(6))
@given(
    drawn=streams(SPEC),
    closes=st.booleans(),
    partitions=st.integers(1, 3),
    kills=st.lists(st.integers(0, 30), max_size=3),
    poll=st.integers(1, 4),
    key=st.sampled_from([(), ("id",)]),
)
def test_final_of_two_chained_pipelines_is_final_of_the_one_plan(drawn, closes, partitions, kills, poll, key):
    broker, whole = MemoryBroker(poll), first(drawn[1][:-1], closes=closes)
    broker.make(TOPIC, partitions)
    write(broker, whole, kills, key=key)
    with broker.served():
        chained = second(middle(broker, whole))
        assert_alike(chained, second(whole), 2 + poll, closes=closes)


@pytest.mark.slow
@settings(max_examples=examples(6))
@given(
    drawn=streams(SPEC),
    closes=st.booleans(),
    partitions=st.integers(1, 3),
    kills=st.lists(st.integers(0, 9), max_size=2),
)
def test_buckets_that_write_each_by_itself_chain_too(drawn, closes, partitions, kills):
    broker, whole = MemoryBroker(poll=2), first(drawn[1][:-1], closes=closes)
    broker.make(TOPIC, partitions)
    write_buckets(broker, whole, kills)
    with broker.served():
        chained = second(middle(broker, whole))
        assert_alike(chained, second(whole), 3, closes=closes)


@settings(max_examples=examples(4))
@given(drawn=streams(SPEC), after=st.integers(0, 6), poll=st.integers(1, 3))
def test_partitions_that_are_added_while_it_is_written_hold_up_what_is_final(drawn, after, poll):
    broker, whole = MemoryBroker(poll), first(drawn[1][:-1])
    broker.make(TOPIC, 1)
    with broker.served():
        query = whole.query(checkpoint=f"memory://{uuid.uuid4().hex}", sink=sink(broker), every="1h")
        for step in count():
            if step == after:
                broker.make(TOPIC, 3)
            if not query.step():
                break
            query.save()
        query.save()
        assert final(second(middle(broker, whole))) == final(second(whole))


def test_punctuation_of_a_writer_that_has_not_all_partitions_in_view_waits_for_the_others():
    broker, whole = MemoryBroker(), first([])
    broker.make(TOPIC, 2)
    with broker.served():
        reader = middle(broker, whole).node
        ingress = reader.operator()
        empty = pa.RecordBatch.from_pylist([], reader.reader.schema)
        promise = WriterPromise(Pattern.before(9), 0, 1, 3)
        said = [ingress.raw(Raw(lane, 0, empty, ((0, promise),), gap=1)) for lane in range(3)]
    assert said == [[], [], [cz.cti(9)]]


def test_a_note_that_its_group_has_lost_is_found_among_the_records():
    broker = MemoryBroker()
    broker.make(TOPIC)
    with broker.served():
        for number in (0, 1):
            written = sink(broker)
            written.open({"out": first([]).node})
            written.attach("query")
            broker.groups.clear()
            assert written.last_epoch() == (number - 1 if number else None)
            written.take(Epoch(number, {"out": [cz.cti(number)]}, {}))


def test_punctuation_that_cannot_be_read_goes_to_the_late_table():
    broker, whole = MemoryBroker(), first([])
    broker.make(TOPIC)
    broker.topics[TOPIC][0].append(Entry(None, b"{}", [(HEADER, b"{")]))
    with broker.served():
        [late] = middle(broker, whole).run().late.values()
    assert late.column("reason")[0].as_py().startswith("its punctuation cannot be read")
