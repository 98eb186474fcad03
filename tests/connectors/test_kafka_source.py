"""Topics of a real Kafka broker as sources in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from local_kafka import Broker
from topics import Topic

import caesura as cz
from caesura import Stream
from caesura.errors import CaesuraError, StreamError
from caesura.events import Page
from caesura.io.kafka import polling
from caesura.runtime import Query

ROWS = pa.schema([("ts", pa.int64()), ("n", pa.int64())])
Make = Callable[..., Topic]


def read(topic: Topic, until: str | None = "latest", **options: Any) -> Stream:
    given = {"value": cz.json(ROWS), "time": "ts", "punctuate": cz.delay(0), "until": until, **options}
    return cz.read.kafka(topic.servers, topic.name, **given)


def numbers(stream: Stream) -> list[int]:
    return sorted(stream.run().table().column("n").to_pylist())


def step_until(query: Query, done: Callable[[], bool]) -> None:
    """Lets a query that follows a topic work; one that never gets there is ended from outside."""
    while not done():
        query.step()


def taken(query: Query, into: list[int]) -> list[int]:
    into += [n for i in query.take("out") if isinstance(i, Page) for n in i.payload["n"].to_pylist()]
    return into


def chunks(query: Query) -> dict[str, bytes]:
    return {name: data for name, data in query.snapshot().items() if data is not None}


def test_all_partitions_are_read_to_their_end(make_topic: Make) -> None:
    topic = make_topic(partitions=3)
    topic.rows(range(5), partition=0)
    topic.rows(range(10, 15), partition=2)
    assert numbers(read(topic)) == [n * 10 for n in (*range(5), *range(10, 15))]


def test_holes_that_transactions_leave_are_passed_over_and_what_was_aborted_is_not_read(
    make_topic: Make,
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": topic.servers, "transactional.id": topic.name})
    producer.init_transactions()
    for n, ends in enumerate([producer.commit_transaction, producer.abort_transaction] * 2):
        producer.begin_transaction()
        producer.produce(topic.name, b'{"ts": %d, "n": %d}' % (n, n), partition=0)
        producer.flush()
        ends()
    query = read(topic).query()
    query.run()
    [reader] = query.runner._readers
    assert (taken(query, []), reader.offsets) == ([0, 2], {0: 8})


def test_what_a_transaction_that_is_open_holds_is_not_waited_for(make_topic: Make) -> None:
    topic = make_topic()
    topic.rows([1])
    producer = Producer({"bootstrap.servers": topic.servers, "transactional.id": topic.name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic.name, b'{"ts": 2, "n": 2}', partition=0)
    producer.flush()
    assert numbers(read(topic)) == [10]
    producer.abort_transaction()


def test_a_query_goes_on_from_its_saved_offsets(make_topic: Make) -> None:
    topic = make_topic(partitions=2)
    topic.rows([1, 2])
    first = read(topic, until=None).query()
    found: list[int] = []
    step_until(first, lambda: len(taken(first, found)) == 2)
    saved = chunks(first)
    first.close()
    topic.rows([3], partition=1)
    again = read(topic, until=None).query()
    again.restore(saved)
    step_until(again, lambda: len(taken(again, found)) == 3)
    again.close()
    assert found == [10, 20, 30]


def test_a_partition_that_is_added_is_read_from_its_beginning(
    make_topic: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "REFRESH_SECONDS", 0.0)
    topic = make_topic()
    topic.rows([5])
    query, found = read(topic, until=None).query(), list[int]()
    step_until(query, lambda: len(taken(query, found)) == 1)
    topic.widen(2)
    topic.put({"ts": 7, "n": 70}, partition=1)
    step_until(query, lambda: len(taken(query, found)) == 2)
    query.close()
    assert found == [50, 70]


@pytest.mark.parametrize("idle", [None, "1ms"])
def test_an_empty_partition_holds_answers_back_unless_idle_says_otherwise(
    make_topic: Make, idle: str | None
) -> None:
    topic = make_topic(partitions=2)
    topic.rows([5, 50])
    query = read(topic, until=None, punctuate=cz.delay(0, idle=idle)).query(output="final")
    found: list[int] = []
    counted = lambda: sum(cell.operator.counters.rows_in for cell in query.graph.cells)  # noqa: E731
    step_until(query, lambda: counted() >= 2)
    if idle is not None:
        step_until(query, lambda: len(taken(query, found)) >= 1)
    for _ in range(5):
        query.step()
    query.close()
    assert taken(query, found) == ([] if idle is None else [50])


def test_records_that_cannot_be_read_go_to_the_late_table(make_topic: Make) -> None:
    topic = make_topic()
    topic.put({"ts": 1, "n": 1}, b"{nonsense", {"ts": "x"}, None, {"ts": 2, "n": 2})
    done = read(topic).run()
    [late] = done.late.values()
    assert done.table().column("n").to_pylist() == [1, 2]
    assert late.column("offset").to_pylist() == [1, 2, 3]
    assert late.column("reason").to_pylist()[0].startswith(f"{topic.name}, partition 0, offset 1: its value")


def test_a_key_makes_a_table_and_a_tombstone_deletes_its_row(make_topic: Make) -> None:
    topic = make_topic()
    topic.put({"n": 1}, key="7", at=1_000)
    topic.put({"n": 2}, key="8", at=2_000)
    topic.put({"n": 3}, key="8", at=3_000)
    topic.put(None, key="7", at=4_000)
    value = cz.json(pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    table = read(topic, value=value, key="id", meta=["timestamp"], time="timestamp").run().table()
    rows = [(r["id"], r["n"], r["LE"].second, r["RE"] and r["RE"].second) for r in table.to_pylist()]
    assert sorted(rows, key=str) == [(7, 1, 1, 4), (8, 2, 2, 3), (8, 3, 3, None)]


def test_retention_behind_the_saved_offset_stops_the_query_or_is_skipped_and_told(make_topic: Make) -> None:
    topic = make_topic()
    topic.rows([1, 2])
    first, found = read(topic, until=None).query(), list[int]()
    step_until(first, lambda: len(taken(first, found)) == 2)
    saved = chunks(first)
    first.close()
    topic.rows([3, 4, 5])
    delete = topic.admin.delete_records([TopicPartition(topic.name, 0, 4)])
    next(iter(delete.values())).result()
    with pytest.raises(StreamError, match="is to be read on from 2, and it begins at 4 now"):
        read(topic, until=None).query().restore(saved)
    again = read(topic, until=None, on_gap="skip").query()
    again.restore(saved)
    step_until(again, lambda: len(taken(again, found)) == 3)
    again.close()
    [late] = again.late().values()
    assert found == [10, 20, 50]
    assert "2 offsets are gone" in late.column("reason")[0].as_py()


@pytest.mark.parametrize("more", [-1, 0, 2])
def test_a_topic_that_was_made_anew_is_not_read_on(make_topic: Make, more: int) -> None:
    topic = make_topic()
    topic.rows([1, 2, 3])
    first = read(topic).query()
    first.run()
    saved = chunks(first)
    first.close()
    again = read(topic).query()
    again.restore(saved)  # the same topic still
    again.close()
    topic.anew()
    topic.rows(range(3 + more))
    with pytest.raises(StreamError, match="was deleted and made anew since it was read"):
        read(topic).query().restore(saved)


def test_a_topic_that_is_made_anew_under_its_reader_stops_it(
    make_topic: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "REFRESH_SECONDS", 0.0)
    topic = make_topic()
    topic.rows([1])
    query, found = read(topic, until=None).query(), list[int]()
    step_until(query, lambda: len(taken(query, found)) == 1)
    topic.anew()
    topic.rows([1, 2])
    with pytest.raises(CaesuraError, match=r"made anew|no topic|no longer there"):
        step_until(query, lambda: False)
    query.close()


def test_what_cannot_be_replayed_says_why_and_from_where_on_it_can(make_topic: Make, tmp_path: Path) -> None:
    topic, compacted = make_topic(partitions=2), make_topic(cleanup_policy="compact,delete")
    for some in (topic, compacted):
        some.rows([1, 2, 3])
    assert read(topic).node.reader.cannot_replay() == ""
    assert "is compacted: of a key only the last" in read(compacted).node.reader.cannot_replay()
    windows = [read(topic).tumbling(size).agg(n=cz.count()) for size in (10, 20)]
    saved = {"checkpoint": tmp_path / "cp", "sink": tmp_path / "out"}
    windows[0].query(**saved).run()
    next(iter(topic.admin.delete_records([TopicPartition(topic.name, 0, 2)]).values())).result()
    whole = "cannot be rebuilt: .* from offset 2 of partition 0, 0 of partition 1 on"
    with pytest.raises(StreamError, match=whole):
        windows[1].query(**saved, on_change="rebuild")


def test_retention_that_overtakes_a_reader_stops_it(make_topic: Make) -> None:
    topic = make_topic()
    topic.rows([1, 2, 3])
    next(iter(topic.admin.delete_records([TopicPartition(topic.name, 0, 2)]).values())).result()
    reader = read(topic).node.reader
    with pytest.raises(StreamError, match="offset 1, and it begins at 2 now: 1 offsets are gone"):
        list(reader.read_between({0: 1}, {0: 3}))


def test_a_topic_that_is_deleted_stops_its_reader(make_topic: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "REFRESH_SECONDS", 0.0)
    topic = make_topic()
    topic.rows([1])
    query, found = read(topic, until=None).query(), list[int]()
    step_until(query, lambda: len(taken(query, found)) == 1)
    topic.admin.delete_topics([topic.name])[topic.name].result()
    with pytest.raises(CaesuraError, match=r"no topic|no longer there"):
        step_until(query, lambda: False)
    query.close()


def test_a_compacted_topic_is_read_to_its_end(make_topic: Make) -> None:
    topic = make_topic(
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="100",
    )
    last = 0
    while len(found := numbers(read(topic))) > last // 2 or last < 20:  # until records are compacted away
        topic.put({"ts": last, "n": last}, key=str(last % 2))
        last += 1
    assert {last - 1, last - 2} < set(found)


def test_a_broker_that_was_away_is_read_on_and_one_that_stays_away_is_named() -> None:
    with Broker() as broker:
        topic = Topic(broker.servers, 1, {})
        topic.rows([1])
        query, found = read(topic, until=None).query(), list[int]()
        step_until(query, lambda: len(taken(query, found)) == 1)
        broker.stop()
        for _ in range(20):
            query.step()
        broker.start()
        topic.rows([2])
        step_until(query, lambda: len(taken(query, found)) == 2)
        query.close()
        short = read(topic, until=None, timeout="5s").query()  # a broker that has just started is slow
        step_until(short, lambda: len(taken(short, found)) == 4)
        broker.stop()
        with pytest.raises(StreamError, match=r"no Kafka broker answers at .* within 5 s"):
            step_until(short, lambda: False)
        short.close()
    assert found == [10, 20, 10, 20]


def test_a_debezium_topic_is_the_current_table_across_a_restart(make_topic: Make) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": topic.servers})

    def tell(*changes: bytes | None) -> None:
        for change in changes:
            producer.produce(topic.name, change, key=b'{"id": 1}', partition=0)
        producer.flush()

    tell(
        b'{"op": "r", "after": {"id": 1, "v": "a"}, "source": {"ts_ms": 5, "lsn": 1}}',
        b'{"payload": {"op": "u", "after": {"id": 1, "v": "z"}, "source": {"ts_ms": 6, "lsn": 2}}}',
        b'{"op": "u", "after": {"id": 1, "v": "b"}, "source": {"ts_ms": 6, "lsn": 3}}',
    )
    table = pa.schema([("id", pa.int64()), ("v", pa.string())])
    options = {"servers": topic.servers, "topic": topic.name, "key": "id", "schema": table}
    now = cz.read.debezium(punctuate=cz.delay("0s"), **options)  # type: ignore[arg-type]
    first = now.query()
    step_until(first, lambda: "b" in values(first.take("out")))
    saved = chunks(first)
    tell(b'{"op": "d", "before": {"id": 1}, "source": {"ts_ms": 9, "lsn": 4}}', None)
    second = now.query()
    second.restore(saved)
    ended: list[int] = []

    def deleted() -> bool:
        pages = [item for item in second.take("out") if isinstance(item, Page)]
        ended.extend(int(end) for page in pages if page.re_new is not None for end in page.re_new)
        return bool(ended)

    step_until(second, deleted)
    assert ended == [9000]


def values(items: list[Any]) -> list[str]:
    return [value for item in items if isinstance(item, Page) for value in item.payload["v"].to_pylist()]
